# SPDX-License-Identifier: BSD-3-Clause
"""Requests of started calls, and of persistent ones."""

import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .. import _errors as native
from .. import _native
from ._datatypes import BYTE, Datatype
from ._errors import ERR_REQUEST, Exception, of_native
from ._groups import UNDEFINED
from ._handles import Handle
from ._messages import Hook

_PAUSE = 0.00005


class Status:
    """MPI's status of a completed operation. For a collective it holds nothing but the error. A
    program may set the other fields."""

    def __init__(self, status: "Optional[Status]" = None) -> None:
        self._clear()
        if status is not None:
            vars(self).update(vars(status))

    def _clear(self) -> None:
        self.error = 0
        self.source = -1
        self.tag = -1
        self.cancelled = False
        self.count = 0  # bytes

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Status) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def Get_source(self) -> int:
        return self.source

    def Get_tag(self) -> int:
        return self.tag

    def Get_error(self) -> int:
        return self.error

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Elements of the datatype; UNDEFINED if the bytes are no multiple of one."""
        if self.count == 0:
            return 0
        whole = datatype.size > 0 and self.count % datatype.size == 0
        return self.count // datatype.size if whole else UNDEFINED

    def Get_elements(self, datatype: Datatype) -> int:
        """Base elements of the datatype."""
        return self.count // datatype.dtype.itemsize if self.count else 0

    def Set_source(self, source: int) -> None:
        self.source = source

    def Set_tag(self, tag: int) -> None:
        self.tag = tag

    def Set_error(self, error: int) -> None:
        self.error = error

    def Set_elements(self, datatype: Datatype, count: int) -> None:
        self.count = count * datatype.size

    def Set_cancelled(self, flag: bool) -> None:
        self.cancelled = bool(flag)

    def Is_cancelled(self) -> bool:
        return self.cancelled


Statuses = Optional[Sequence[Status]]
Some = tuple[Optional[list[int]], Optional[list[None]]]


def _fill(statuses: Statuses, count: int) -> None:
    """A list gets as many as there are operations, as mpi4py has it; a tuple has its own."""
    if statuses is None:
        return
    if isinstance(statuses, list):
        statuses += [Status() for _ in range(len(statuses), count)]
    for status in statuses[:count]:
        status._clear()


class Request:
    """A started collective. It is complete, and false, after Wait or a Test that succeeds.

    One thread at a time uses it. Its buffers stay in use until then.
    """

    def __init__(self, active: Optional[_native.Request] = None, unpack: Sequence[Hook] = (),
                 handle: Optional[Handle] = None) -> None:
        self._active = active
        self._unpack = unpack
        self._handle = handle  # hears of an error
        self._needs = handle  # does not end before this request
        if handle is not None:
            handle.begin_request()

    def Wait(self, status: Optional[Status] = None) -> bool:
        if self._active is not None:
            try:
                self._run(self._take().wait)
            finally:
                self._leave()
            self._finish()
            self._unpack = ()  # it has the buffers
        if status is not None:
            status._clear()
        return True

    def _take(self) -> _native.Request:
        active, self._active = self._active, None
        assert active is not None
        return active

    def _leave(self) -> None:
        if self._needs is not None:
            needs, self._needs = self._needs, None
            needs.end_request()

    def Test(self, status: Optional[Status] = None) -> bool:
        if self._active is not None and not self._run(self._active.done):
            return False
        return self.Wait(status)

    def Get_status(self, status: Optional[Status] = None) -> bool:
        """Whether it is complete; unlike Test, the request stays as it is."""
        if self._active is not None and not self._run(self._active.done):
            return False
        if status is not None:
            status._clear()
        return True

    def get_status(self, status: Optional[Status] = None) -> bool:
        return self.Get_status(status)

    def free(self) -> None:
        """As Free; it may be REQUEST_NULL."""
        if self:
            self.Free()

    def _finish(self) -> None:
        for unpack in self._unpack:
            unpack()

    def _run(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except native.Error as error:
            if self._handle is not None:
                self._handle.note(error)
            raise of_native(error) from error

    def wait(self, status: Optional[Status] = None) -> None:
        self.Wait(status)

    def test(self, status: Optional[Status] = None) -> tuple[bool, None]:
        return self.Test(status), None

    def Free(self) -> None:
        """The operation goes on, with its buffers."""
        self._active = None
        self._leave()

    def Cancel(self) -> None:
        """Ends it for all ranks, unless it is complete: the communicator then fails."""
        if self._active is not None:
            try:
                self._run(self._take().cancel)
            finally:
                self._leave()

    def cancel(self) -> None:
        self.Cancel()

    def __bool__(self) -> bool:
        return self._active is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self is other or (not self and not other)

    def __hash__(self) -> int:
        return id(self)

    def _is_active(self) -> bool:
        return self._active is not None

    @classmethod
    def Waitall(cls, requests: Sequence["Request"],
                statuses: Statuses = None) -> bool:
        for request in requests:
            request.Wait()
        _fill(statuses, len(requests))
        return True

    @classmethod
    def Testall(cls, requests: Sequence["Request"],
                statuses: Statuses = None) -> bool:
        _fill(statuses, len(requests))
        return all([request.Test() for request in requests])

    @classmethod
    def Get_status_all(cls, requests: Sequence["Request"], statuses: Statuses = None) -> bool:
        """Whether all are complete; unlike Testall, the requests stay as they are."""
        _fill(statuses, len(requests))
        return all([request.Get_status() for request in requests])

    @classmethod
    def Get_status_any(cls, requests: Sequence["Request"],
                       status: Optional[Status] = None) -> tuple[int, bool]:
        """As Testany; the requests stay as they are."""
        return cls._any(requests, status, lambda request: request.Get_status(status))

    @classmethod
    def _any(cls, requests: Sequence["Request"], status: Optional[Status],
             is_complete: Callable[["Request"], bool]) -> tuple[int, bool]:
        active = [i for i, request in enumerate(requests) if request._is_active()]
        if not active and status is not None:
            status._clear()
        found = next((i for i in active if is_complete(requests[i])), UNDEFINED)
        return found, found != UNDEFINED or not active

    @classmethod
    def Get_status_some(cls, requests: Sequence["Request"],
                        statuses: Statuses = None) -> Optional[list[int]]:
        """As Testsome; the requests stay as they are."""
        return cls._some(requests, statuses, lambda request: request.Get_status())

    @classmethod
    def _some(cls, requests: Sequence["Request"], statuses: Statuses,
              is_complete: Callable[["Request"], bool]) -> Optional[list[int]]:
        active = [i for i, request in enumerate(requests) if request._is_active()]
        if not active:
            return None
        done = [i for i in active if is_complete(requests[i])]
        _fill(statuses, len(done))
        return done

    @classmethod
    def Testany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, bool]:
        """The index of a request that is complete, and True; (UNDEFINED, False) if none is yet, and
        (UNDEFINED, True) if none is active."""
        return cls._any(requests, status, lambda request: request.Test(status))

    @classmethod
    def Testsome(cls, requests: Sequence["Request"],
                 statuses: Statuses = None) -> Optional[list[int]]:
        """The indexes of those that are complete; None if no request is active."""
        return cls._some(requests, statuses, lambda request: request.Test())

    @classmethod
    def Waitsome(cls, requests: Sequence["Request"],
                 statuses: Statuses = None) -> Optional[list[int]]:
        """As Testsome, when at least one is complete."""
        while True:
            done = cls.Testsome(requests, statuses)
            if done is None or done:
                return done
            time.sleep(_PAUSE)

    @classmethod
    def Waitany(cls, requests: Sequence["Request"], status: Optional[Status] = None) -> int:
        """The index of a request that is complete; UNDEFINED (-32766) if none is active."""
        while True:
            found, is_done = cls.Testany(requests, status)
            if is_done:
                return found
            time.sleep(_PAUSE)

    @classmethod
    def waitany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, None]:
        return cls.Waitany(requests, status), None

    @classmethod
    def testany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, bool, None]:
        return (*cls.Testany(requests, status), None)

    @classmethod
    def testall(cls, requests: Sequence["Request"],
                statuses: Statuses = None) -> tuple[bool, Optional[list[None]]]:
        is_done = cls.Testall(requests, statuses)
        return is_done, [None] * len(requests) if is_done else None

    @classmethod
    def testsome(cls, requests: Sequence["Request"],
                 statuses: Statuses = None) -> Some:
        done = cls.Testsome(requests, statuses)
        return done, None if done is None else [None] * len(done)

    @classmethod
    def waitsome(cls, requests: Sequence["Request"],
                 statuses: Statuses = None) -> Some:
        done = cls.Waitsome(requests, statuses)
        return done, None if done is None else [None] * len(done)

    @classmethod
    def get_status_any(cls, requests: Sequence["Request"],
                       status: Optional[Status] = None) -> tuple[int, bool]:
        return cls.Get_status_any(requests, status)

    @classmethod
    def get_status_all(cls, requests: Sequence["Request"], statuses: Statuses = None) -> bool:
        return cls.Get_status_all(requests, statuses)

    @classmethod
    def get_status_some(cls, requests: Sequence["Request"],
                        statuses: Statuses = None) -> Optional[list[int]]:
        return cls.Get_status_some(requests, statuses)

    @classmethod
    def waitall(cls, requests: Sequence["Request"],
                statuses: Statuses = None) -> list[None]:
        cls.Waitall(requests, statuses)
        return [None] * len(requests)


class Prequest(Request):
    """A prepared collective, for any number of starts. Where an error has made the communicator
    anew, the next start prepares it again, on all ranks."""

    def __init__(self, make: Callable[[_native.Communicator], _native.Plan],
                 comm: _native.Communicator, handle: Handle,
                 pack: Sequence[Hook], unpack: Sequence[Hook]) -> None:
        self._make: Optional[Callable[[_native.Communicator], _native.Plan]] = make
        self._comm = comm  # of the plan
        self._plan: Optional[_native.Plan] = make(comm)
        self._pack = pack
        self._is_started = False
        super().__init__(None, unpack, handle)

    def Start(self) -> None:
        if self._plan is None:
            raise Exception(ERR_REQUEST, "the request has been freed")
        if self._is_started:
            raise Exception(ERR_REQUEST, "the request is active; wait for it first")
        assert self._handle is not None
        self._handle.start(self._start_on)

    def _start_on(self, comm: _native.Communicator) -> None:
        assert self._plan is not None and self._make is not None
        for pack in self._pack:
            pack()
        if self._comm is not comm:
            self._plan.close()
            self._plan = self._make(comm)
            self._comm = comm
        self._plan.start()
        self._is_started = True

    def Wait(self, status: Optional[Status] = None) -> bool:
        if self._plan is not None and self._is_started:
            self._is_started = False
            self._run(self._plan.wait)
            self._finish()
        if status is not None:
            status._clear()
        return True

    def Test(self, status: Optional[Status] = None) -> bool:
        is_active = self._plan is not None and self._is_started
        if is_active and not self._run(self._plan.done):  # type: ignore[union-attr]
            return False
        return self.Wait(status)

    def Get_status(self, status: Optional[Status] = None) -> bool:
        is_active = self._plan is not None and self._is_started
        if is_active and not self._run(self._plan.done):  # type: ignore[union-attr]
            return False
        if status is not None:
            status._clear()
        return True

    def Free(self) -> None:
        if self._plan is not None:
            plan, self._plan = self._plan, None
            try:
                self._run(plan.close)
            finally:
                self._leave()
            self._pack = self._unpack = ()  # they have the buffers
            self._make = None  # as well

    def Cancel(self) -> None:
        raise Exception(ERR_REQUEST, "a persistent collective cannot be cancelled")

    def __bool__(self) -> bool:
        return self._plan is not None

    def _is_active(self) -> bool:
        return self._plan is not None and self._is_started

    @classmethod
    def Startall(cls, requests: Sequence["Prequest"]) -> None:
        for request in requests:
            request.Start()


REQUEST_NULL = Request()


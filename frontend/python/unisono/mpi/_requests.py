# SPDX-License-Identifier: BSD-3-Clause
"""Requests of started calls, and of persistent ones."""

import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .. import _errors as native
from .. import _native
from ._errors import ERR_REQUEST, Exception, of_native
from ._messages import Hook

_PAUSE = 0.00005
_UNDEFINED = -32766


class Status:
    """What MPI says of a completed operation; of a collective, nothing but its error."""

    def __init__(self) -> None:
        self.error = 0
        self.source = -1
        self.tag = -1
        self.cancelled = False

    def Get_error(self) -> int:
        return self.error

    def Is_cancelled(self) -> bool:
        return self.cancelled


class ActiveRequests:
    """How many requests of a communicator are active, and what ends it behind the last of them."""

    def __init__(self) -> None:
        self._count = 0
        self._comm: Optional[_native.Communicator] = None

    def begin(self) -> None:
        self._count += 1

    def end(self) -> None:
        self._count -= 1
        if self._count == 0 and self._comm is not None:
            self.close_after(self._comm)

    def close_after(self, comm: _native.Communicator) -> None:
        self._comm = comm if self._count else None
        if not self._count:
            comm.close()


class Request:
    """A started collective. It is complete, and false, after Wait or a Test that succeeds.

    One thread at a time uses it. Its buffers stay in use until then.
    """

    def __init__(self, active: Optional[_native.Request] = None, unpack: Sequence[Hook] = (),
                 note: Optional[Callable[[native.Error], None]] = None,
                 others: Optional[ActiveRequests] = None) -> None:
        self._active = active
        self._unpack = unpack
        self._note = note  # tells the communicator of an error
        self._others = others  # and the communicator's other ones
        if others is not None:
            others.begin()

    def Wait(self, status: Optional[Status] = None) -> bool:
        if self._active is not None:
            try:
                self._run(self._take().wait)
            finally:
                self._leave()
            self._finish()
            self._unpack = ()  # it has the buffers
        return True

    def _take(self) -> _native.Request:
        active, self._active = self._active, None
        assert active is not None
        return active

    def _leave(self) -> None:
        if self._others is not None:
            others, self._others = self._others, None
            others.end()

    def Test(self, status: Optional[Status] = None) -> bool:
        if self._active is not None and not self._run(self._active.done):
            return False
        return self.Wait(status)

    def _finish(self) -> None:
        for unpack in self._unpack:
            unpack()

    def _run(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except native.Error as error:
            if self._note is not None:
                self._note(error)
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

    def _is_active(self) -> bool:
        return self._active is not None

    @classmethod
    def Waitall(cls, requests: Sequence["Request"],
                statuses: Optional[Sequence[Status]] = None) -> bool:
        for request in requests:
            request.Wait()
        return True

    @classmethod
    def Testall(cls, requests: Sequence["Request"],
                statuses: Optional[Sequence[Status]] = None) -> bool:
        return all([request.Test() for request in requests])

    @classmethod
    def Testany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, bool]:
        """The index of a request that is complete, and True; (UNDEFINED, False) if none is yet, and
        (UNDEFINED, True) if none is active."""
        active = [i for i, request in enumerate(requests) if request._is_active()]
        for i in active:
            if requests[i].Test():
                return i, True
        return _UNDEFINED, not active

    @classmethod
    def Testsome(cls, requests: Sequence["Request"],
                 statuses: Optional[Sequence[Status]] = None) -> Optional[list[int]]:
        """The indexes of those that are complete; None if no request is active."""
        active = [i for i, request in enumerate(requests) if request._is_active()]
        return [i for i in active if requests[i].Test()] if active else None

    @classmethod
    def Waitsome(cls, requests: Sequence["Request"],
                 statuses: Optional[Sequence[Status]] = None) -> Optional[list[int]]:
        """As Testsome, when at least one is complete."""
        while True:
            done = cls.Testsome(requests)
            if done is None or done:
                return done
            time.sleep(_PAUSE)

    @classmethod
    def Waitany(cls, requests: Sequence["Request"], status: Optional[Status] = None) -> int:
        """The index of a request that is complete; UNDEFINED (-32766) if none is active."""
        waiting = [i for i, request in enumerate(requests) if request._is_active()]
        while waiting:
            for i in waiting:
                if requests[i].Test():
                    return i
            time.sleep(_PAUSE)
        return _UNDEFINED

    @classmethod
    def waitany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, None]:
        return cls.Waitany(requests), None

    @classmethod
    def testany(cls, requests: Sequence["Request"],
                status: Optional[Status] = None) -> tuple[int, bool, None]:
        return (*cls.Testany(requests), None)

    @classmethod
    def testall(cls, requests: Sequence["Request"],
                statuses: Optional[Sequence[Status]] = None) -> tuple[bool, Optional[list[None]]]:
        is_done = cls.Testall(requests)
        return is_done, [None] * len(requests) if is_done else None

    @classmethod
    def waitall(cls, requests: Sequence["Request"],
                statuses: Optional[Sequence[Status]] = None) -> list[None]:
        cls.Waitall(requests)
        return [None] * len(requests)


class Prequest(Request):
    """A prepared collective, for any number of starts. Where an error has made the communicator
    anew, the next start prepares it again, on all ranks."""

    def __init__(self, make: Callable[[_native.Communicator], _native.Plan],
                 comm: _native.Communicator,
                 run_with: Callable[[Callable[[_native.Communicator], None]], None],
                 pack: Sequence[Hook], unpack: Sequence[Hook],
                 note: Callable[[native.Error], None]) -> None:
        super().__init__(None, unpack, note)
        self._make: Optional[Callable[[_native.Communicator], _native.Plan]] = make
        self._comm = comm  # of the plan
        self._run_with = run_with  # a call on what is the communicator now
        self._plan: Optional[_native.Plan] = make(comm)
        self._pack = pack
        self._is_started = False

    def Start(self) -> None:
        if self._plan is None:
            raise Exception(ERR_REQUEST, "the request has been freed")
        if self._is_started:
            raise Exception(ERR_REQUEST, "the request is active; wait for it first")
        self._run_with(self._start_on)

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
        return True

    def Test(self, status: Optional[Status] = None) -> bool:
        is_active = self._plan is not None and self._is_started
        if is_active and not self._run(self._plan.done):  # type: ignore[union-attr]
            return False
        return self.Wait(status)

    def Free(self) -> None:
        if self._plan is not None:
            plan, self._plan = self._plan, None
            self._run(plan.close)
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


# SPDX-License-Identifier: BSD-3-Clause
"""Handles: what the communicator objects of one communicator share, as they do in MPI.

A handle holds the package's communicator, makes it anew after an error, and ends it behind its
last request. One thread at a time uses it.
"""

import builtins
import functools
from collections.abc import Sequence
from typing import Any, Callable, NoReturn, Optional, TypeVar, cast

import numpy

from .. import _errors as native
from .. import _native
from ._attributes import Attributes
from ._errors import ERR_COMM, ERR_OTHER, ERR_PROC_FAILED, Exception, of_native
from ._infos import Info

# After these a communicator has all its members.
_REPAIRABLE = (native.ArgumentError, native.DatatypeError, native.PeerArgumentError,
               native.CancelledError)

Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


def _text_of(error: builtins.Exception) -> str:
    """An exception's text, as the library takes it; or its type, if it has no text."""
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except builtins.Exception:
        return type(error).__name__


class Handle:
    def __init__(self, comm: Optional[_native.Communicator], members: Sequence[int] = (),
                 make: Optional[Callable[[], _native.Communicator]] = None) -> None:
        self.members = tuple(members)  # by rank, their ranks in COMM_WORLD
        self.name = ""
        self.attributes = Attributes()
        self.info = Info.Create()
        self._comm = comm
        self._first = comm  # the world ends with this object, also if another one has replaced it
        self._make = make
        self._is_freed = False
        self._is_failed = False
        self._why = ""  # it has failed
        self._calls = 0  # that this rank has made, the ones that failed included
        self._resume_at = 0  # a call of a lower number failed at another rank
        self._rest: Optional[_native.Communicator] = None  # of those that live, if some do not
        self._requests = 0  # that need it: active ones, and persistent ones until they are freed

    def __bool__(self) -> bool:
        return not self._is_freed and (self._comm is not None or self._make is not None)

    @property
    def comm(self) -> _native.Communicator:
        """Raises Exception for COMM_NULL."""
        if self._is_freed:
            self._raise_null()
        return self._kept()

    def _kept(self) -> _native.Communicator:
        """Also after Free, for persistent requests."""
        if self._comm is None and self._make is not None:
            self._comm = self._first = self._make()
        if self._comm is None:
            self._raise_null()
        return self._comm

    def _raise_null(self) -> NoReturn:
        raise Exception(ERR_COMM, "the communicator is COMM_NULL, or has been freed")

    def note(self, error: native.Error) -> None:
        # A call at the wrong time says nothing new, for instance a repair while a request waits.
        if not isinstance(error, native.StateError):
            self._is_failed = isinstance(error, _REPAIRABLE)
            self._why = str(error)

    def run(self, function: Callable[[_native.Communicator], Result]) -> Result:
        """Makes a call of this rank on the present communicator."""
        comm = self._comm
        if comm is None or self._is_freed:
            comm = self.comm
        return self._run(function, comm)

    def start(self, function: Callable[[_native.Communicator], Result]) -> Result:
        """The same for a persistent request, which may outlive Free."""
        return self._run(function, self._kept())

    def _run(self, function: Callable[[_native.Communicator], Result],
             comm: _native.Communicator) -> Result:
        call = self._calls
        self._calls = call + 1
        if self._is_failed or self._rest is not None or call < self._resume_at:
            comm = self._ready(comm, call)
        try:
            return function(comm)
        except native.Error as error:
            self.note(error)
            raise of_native(error) from error
        except builtins.Exception as error:
            # The others wait for this call.
            self._why = _text_of(error)
            comm.refuse(self._why)
            self._is_failed = True
            raise

    def _ready(self, comm: _native.Communicator, call: int) -> _native.Communicator:
        """The communicator for a call after an error."""
        if self._rest is not None:
            self._refuse_rest()
        if self._is_failed:
            try:
                comm = self._repair(comm, call)
            except native.Error as error:
                self.note(error)
                raise of_native(error) from error
        if call < self._resume_at:
            raise Exception(ERR_OTHER, "an earlier error ended this call at another rank: "
                            + self._why)
        return comm

    def _repair(self, before: _native.Communicator, call: int) -> _native.Communicator:
        """Makes the communicator anew, and finds the call with which all ranks go on."""
        comm = before.shrink()
        self._is_failed = False
        if comm.size != before.size:
            self._rest = comm
            self._refuse_rest()
        self._comm = comm
        calls = numpy.empty(comm.size, numpy.int64)
        comm.allgather(numpy.array([call]), calls)
        self._resume_at = int(calls.max())
        return comm

    def _refuse_rest(self) -> NoReturn:
        assert self._rest is not None
        size = self._kept().size
        raise Exception(ERR_PROC_FAILED, f"{size - self._rest.size} of the communicator's {size} "
                        "ranks have left or are lost; Shrink() makes one of the others")

    def shrink(self) -> _native.Communicator:
        """One of the ranks that live."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        return self.run(lambda comm: comm.shrink())

    # ---- its end --------------------------------------------------------------------------------

    def begin_request(self) -> None:
        self._requests += 1

    def end_request(self) -> None:
        self._requests -= 1
        if self._is_freed and self._requests == 0:
            self._close()

    def free(self) -> None:
        """Ends it; while requests need it, when the last of them does no more."""
        if self._comm is None or self._is_freed:
            return
        self._is_freed = True
        if self._requests > 0:
            return
        try:
            self._close()
        except native.Error as error:  # the program holds a request of the package
            self._is_freed = False
            raise of_native(error) from error

    def _close(self) -> None:
        if self._comm is not None:
            self._comm.close()
            self._comm = self._first = None


def tells_others(method: Method) -> Method:
    """A method that all ranks call: if the arguments do not fit its signature, the others are told.

    They would wait for this rank's call.
    """
    @functools.wraps(method)
    def told(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:
                raise  # of the method's body
            wrong = error

        def fail(comm: _native.Communicator) -> NoReturn:
            raise wrong
        return self._handle.run(fail)
    return cast(Method, told)


def all_tell_others(methods: Class) -> Class:
    for name, method in list(vars(methods).items()):
        if not name.startswith("_"):
            method.__qualname__ = f"Comm.{name}"  # in the text of the error
            setattr(methods, name, tells_others(method))
    return methods

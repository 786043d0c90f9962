# SPDX-License-Identifier: BSD-3-Clause
"""Communicators with mpi4py's methods, over those of the package.

A call with a wrong argument is an error on every rank that would wait, with MPI's error class.
After it the communicator goes on, as in MPI: its next call first makes it anew with all members,
which each rank does (unisono_shrink). A rank may have heard of the error some calls later than
others. Then these calls are errors on the others, too, and all go on with the same one. After a
lost rank it stays failed; Shrink() makes one of the rest.
"""

import builtins
import functools
import os
import sys
from collections.abc import Sequence
from typing import Any, Callable, Final, NoReturn, Optional, TypeVar, Union

import numpy

from .. import _errors as native
from .. import _native
from . import _calls, _objects
from ._calls import Call
from ._errors import ERR_COMM, ERR_OTHER, ERR_PROC_FAILED, Exception, of_native
from ._messages import BufferSpec
from ._operators import SUM, Op
from ._requests import ActiveRequests, Prequest, Request

UNDEFINED: Final = -32766
# After these a communicator has all its members.
_REPAIRABLE = (native.ArgumentError, native.DatatypeError, native.PeerArgumentError,
               native.CancelledError)

Result = TypeVar("Result")
Combine = Union[Op, Callable[[Any, Any], Any]]
Spec = BufferSpec


class _Base:
    """The communicator of the package, and how calls go to it."""

    def __init__(self, comm: Optional[_native.Communicator],
                 make: Optional[Callable[[], _native.Communicator]] = None) -> None:
        self._comm = comm
        self._first = comm  # the world ends with this object, also if another one has replaced it
        self._make = make
        self._is_failed = False
        self._why = ""  # it has failed
        self._calls = 0  # that this rank has made, the ones that failed included
        self._resume_at = 0  # a call of a lower number failed at another rank
        self._rest: Optional[_native.Communicator] = None  # of those that live, if some do not
        self._requests = ActiveRequests()

    @property
    def unisono(self) -> _native.Communicator:
        """The communicator of the package unisono, for its own calls."""
        if self._comm is None and self._make is not None:
            self._comm = self._first = self._make()
        if self._comm is None:
            raise Exception(ERR_COMM, "the communicator is COMM_NULL, or has been freed")
        return self._comm

    def _note(self, error: native.Error) -> None:
        # Of a call at the wrong time it is no news, for instance of a repair while a request waits.
        if not isinstance(error, native.StateError):
            self._is_failed = isinstance(error, _REPAIRABLE)
            self._why = str(error)

    def _with(self, function: Callable[[_native.Communicator], Result]) -> Result:
        comm = self._ready()
        try:
            return function(comm)
        except native.Error as error:
            self._note(error)
            raise of_native(error) from error
        except builtins.Exception as error:
            # The others wait for this call.
            comm.refuse(str(error))
            self._is_failed = True
            self._why = str(error)
            raise

    def _ready(self) -> _native.Communicator:
        """The communicator for the next call of this rank."""
        comm = self.unisono
        call, self._calls = self._calls, self._calls + 1
        if self._rest is not None:
            self._refuse_rest()
        if self._is_failed:
            try:
                comm = self._repair(call)
            except native.Error as error:
                self._note(error)
                raise of_native(error) from error
        if call < self._resume_at:
            raise Exception(ERR_OTHER, "an earlier error ended this call at another rank: "
                            + self._why)
        return comm

    def _repair(self, call: int) -> _native.Communicator:
        """Makes the communicator anew, and finds the call with which all ranks go on."""
        before = self.unisono
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
        size = self.unisono.size
        raise Exception(ERR_PROC_FAILED, f"{size - self._rest.size} of the communicator's {size} "
                        "ranks have left or are lost; Shrink() makes one of the others")

    def _call(self, prepare: Callable[..., Call], *arguments: Any) -> None:
        def run(comm: _native.Communicator) -> None:
            call = prepare(comm, *arguments)
            for pack in call.pack:
                pack()
            getattr(comm, call.name)(*call.arguments)
            for unpack in call.unpack:
                unpack()
        self._with(run)

    def _start(self, prepare: Callable[..., Call], *arguments: Any) -> Request:
        def start(comm: _native.Communicator) -> Request:
            call = prepare(comm, *arguments)
            for pack in call.pack:
                pack()
            started = getattr(comm, call.name + "_start")(*call.arguments)
            return Request(started, call.unpack, self._note, self._requests)
        return self._with(start)

    def _plan(self, prepare: Callable[..., Call], *arguments: Any) -> Prequest:
        def plan(comm: _native.Communicator) -> Prequest:
            call = prepare(comm, *arguments)

            def make(comm: _native.Communicator) -> _native.Plan:
                made: _native.Plan = getattr(comm, call.name + "_plan")(*call.arguments)
                return made
            return Prequest(make, comm, self._with, call.pack, call.unpack, self._note)
        return self._with(plan)


class _Blocking(_Base):
    def Barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._call(_calls.barrier)

    def Bcast(self, buf: Spec, root: int = 0) -> None:
        """Copies the root's buffer to that of every rank."""
        self._call(_calls.bcast, buf, root)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """The root receives the buffers of all ranks, one behind the other."""
        self._call(_calls.gather, sendbuf, recvbuf, root)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """As Gather, with counts and displacements at the root."""
        self._call(_calls.gatherv, sendbuf, recvbuf, root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Each rank receives its block of the root's buffer."""
        self._call(_calls.scatter, sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """As Scatter, with counts and displacements at the root."""
        self._call(_calls.scatterv, sendbuf, recvbuf, root)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Every rank receives the buffers of all ranks, one behind the other."""
        self._call(_calls.allgather, sendbuf, recvbuf)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As Allgather, with counts and displacements, the counts alike at all ranks."""
        self._call(_calls.allgatherv, sendbuf, recvbuf)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Rank r receives block r of the buffer of each rank."""
        self._call(_calls.alltoall, sendbuf, recvbuf)

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As Alltoall, with counts and displacements for each pair of ranks."""
        self._call(_calls.alltoallv, sendbuf, recvbuf)

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """As Alltoallv, with a datatype for each block; displacements are bytes."""
        self._call(_calls.alltoallw, sendbuf, recvbuf)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """The root receives the elements of all ranks, combined by op."""
        self._call(_calls.reduce, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Every rank receives the elements of all ranks, combined by op, with the same bits."""
        self._call(_calls.allreduce, sendbuf, recvbuf, op)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Rank r receives block r of the elements of all ranks, combined by op."""
        self._call(_calls.reduce_scatter_block, sendbuf, recvbuf, op)

    def Reduce_scatter(self, sendbuf: Any, recvbuf: Any,
                       recvcounts: Optional[Sequence[int]] = None, op: Op = SUM) -> None:
        """As Reduce_scatter_block, with recvcounts[r] elements for rank r."""
        self._call(_calls.reduce_scatter, sendbuf, recvbuf, recvcounts, op)

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Rank r receives the elements of ranks 0 to r, combined by op."""
        self._call(_calls.scan, sendbuf, recvbuf, op)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Rank r receives the elements of ranks 0 to r - 1, combined by op; rank 0 nothing."""
        self._call(_calls.exscan, sendbuf, recvbuf, op)


class _NonBlocking(_Base):
    """The same collectives, started: each returns a Request."""

    def Ibarrier(self) -> Request:
        return self._start(_calls.barrier)

    def Ibcast(self, buf: Spec, root: int = 0) -> Request:
        return self._start(_calls.bcast, buf, root)

    def Igather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        return self._start(_calls.gather, sendbuf, recvbuf, root)

    def Igatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        return self._start(_calls.gatherv, sendbuf, recvbuf, root)

    def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        return self._start(_calls.scatter, sendbuf, recvbuf, root)

    def Iscatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        return self._start(_calls.scatterv, sendbuf, recvbuf, root)

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        return self._start(_calls.allgather, sendbuf, recvbuf)

    def Iallgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        return self._start(_calls.allgatherv, sendbuf, recvbuf)

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        return self._start(_calls.alltoall, sendbuf, recvbuf)

    def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        return self._start(_calls.alltoallv, sendbuf, recvbuf)

    def Ialltoallw(self, sendbuf: Any, recvbuf: Any) -> Request:
        return self._start(_calls.alltoallw, sendbuf, recvbuf)

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        return self._start(_calls.reduce, sendbuf, recvbuf, op, root)

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        return self._start(_calls.allreduce, sendbuf, recvbuf, op)

    def Ireduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        return self._start(_calls.reduce_scatter_block, sendbuf, recvbuf, op)

    def Ireduce_scatter(self, sendbuf: Any, recvbuf: Any,
                        recvcounts: Optional[Sequence[int]] = None, op: Op = SUM) -> Request:
        return self._start(_calls.reduce_scatter, sendbuf, recvbuf, recvcounts, op)

    def Iscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        return self._start(_calls.scan, sendbuf, recvbuf, op)

    def Iexscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        return self._start(_calls.exscan, sendbuf, recvbuf, op)


class _Persistent(_Base):
    """The same collectives, prepared: each returns a Prequest."""

    def Barrier_init(self) -> Prequest:
        return self._plan(_calls.barrier)

    def Bcast_init(self, buf: Spec, root: int = 0) -> Prequest:
        return self._plan(_calls.bcast, buf, root)

    def Gather_init(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Prequest:
        return self._plan(_calls.gather, sendbuf, recvbuf, root)

    def Gatherv_init(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Prequest:
        return self._plan(_calls.gatherv, sendbuf, recvbuf, root)

    def Scatter_init(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Prequest:
        return self._plan(_calls.scatter, sendbuf, recvbuf, root)

    def Scatterv_init(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Prequest:
        return self._plan(_calls.scatterv, sendbuf, recvbuf, root)

    def Allgather_init(self, sendbuf: Any, recvbuf: Any) -> Prequest:
        return self._plan(_calls.allgather, sendbuf, recvbuf)

    def Allgatherv_init(self, sendbuf: Any, recvbuf: Any) -> Prequest:
        return self._plan(_calls.allgatherv, sendbuf, recvbuf)

    def Alltoall_init(self, sendbuf: Any, recvbuf: Any) -> Prequest:
        return self._plan(_calls.alltoall, sendbuf, recvbuf)

    def Alltoallv_init(self, sendbuf: Any, recvbuf: Any) -> Prequest:
        return self._plan(_calls.alltoallv, sendbuf, recvbuf)

    def Alltoallw_init(self, sendbuf: Any, recvbuf: Any) -> Prequest:
        return self._plan(_calls.alltoallw, sendbuf, recvbuf)

    def Reduce_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Prequest:
        return self._plan(_calls.reduce, sendbuf, recvbuf, op, root)

    def Allreduce_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Prequest:
        return self._plan(_calls.allreduce, sendbuf, recvbuf, op)

    def Reduce_scatter_block_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Prequest:
        return self._plan(_calls.reduce_scatter_block, sendbuf, recvbuf, op)

    def Reduce_scatter_init(self, sendbuf: Any, recvbuf: Any,
                            recvcounts: Optional[Sequence[int]] = None, op: Op = SUM) -> Prequest:
        return self._plan(_calls.reduce_scatter, sendbuf, recvbuf, recvcounts, op)

    def Scan_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Prequest:
        return self._plan(_calls.scan, sendbuf, recvbuf, op)

    def Exscan_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Prequest:
        return self._plan(_calls.exscan, sendbuf, recvbuf, op)


class _Objects(_Base):
    """Collectives on Python objects. They travel pickled.

    Reductions gather the objects and combine them in the order of ranks.
    """

    def barrier(self) -> None:
        self._call(_calls.barrier)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return self._with(lambda comm: _objects.bcast(comm, obj, root))

    def gather(self, sendobj: Any, root: int = 0) -> Optional[list[Any]]:
        return self._with(lambda comm: _objects.gather(comm, sendobj, root))

    def scatter(self, sendobj: Optional[Sequence[Any]], root: int = 0) -> Any:
        return self._with(lambda comm: _objects.scatter(comm, sendobj, root))

    def allgather(self, sendobj: Any) -> list[Any]:
        return self._with(lambda comm: _objects.allgather(comm, sendobj))

    def alltoall(self, sendobj: Optional[Sequence[Any]]) -> list[Any]:
        return self._with(lambda comm: _objects.alltoall(comm, sendobj))

    def reduce(self, sendobj: Any, op: Combine = SUM, root: int = 0) -> Any:
        values = self.gather(sendobj, root)
        return None if values is None else functools.reduce(op, values)

    def allreduce(self, sendobj: Any, op: Combine = SUM) -> Any:
        return functools.reduce(op, self.allgather(sendobj))

    def scan(self, sendobj: Any, op: Combine = SUM) -> Any:
        return functools.reduce(op, self.allgather(sendobj)[:self.unisono.rank + 1])

    def exscan(self, sendobj: Any, op: Combine = SUM) -> Any:
        values = self.allgather(sendobj)[:self.unisono.rank]
        return functools.reduce(op, values) if values else None


class Comm(_Blocking, _NonBlocking, _Persistent, _Objects):
    """A communicator. One thread at a time uses it; threads may use different ones at once."""

    name = ""

    @property
    def rank(self) -> int:
        return self.unisono.rank

    @property
    def size(self) -> int:
        return self.unisono.size

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Get_name(self) -> str:
        return self.name

    def Set_name(self, name: str) -> None:
        self.name = name

    is_inter = False
    is_intra = True

    def Is_inter(self) -> bool:
        return False

    def Is_intra(self) -> bool:
        return True

    def Dup(self) -> "Intracomm":
        return Intracomm(self._with(lambda comm: comm.dup()))

    def Clone(self) -> "Intracomm":
        return self.Dup()

    def Idup(self) -> tuple["Intracomm", Request]:
        """As Dup; the request is complete."""
        return self.Dup(), Request()

    def Split(self, color: int = 0, key: int = 0) -> "Comm":
        """A communicator for each color; COMM_NULL where it is UNDEFINED."""
        number = -1 if color == UNDEFINED else color
        made = self._with(lambda comm: comm.split(number, key))
        return COMM_NULL if made is None else Intracomm(made)

    def Shrink(self) -> "Intracomm":
        """A communicator of the ranks that live, after an error; it ends this one."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return Intracomm(rest)
        return Intracomm(self._with(lambda comm: comm.shrink()))

    def Free(self) -> None:
        """Ends it; while requests of it are active, when the last of them is complete."""
        if self._comm is None:
            return
        comm, self._comm, self._first = self._comm, None, None
        try:
            self._requests.close_after(comm)
        except native.Error as error:
            raise of_native(error) from error

    def Abort(self, errorcode: int = 0) -> NoReturn:
        """Ends this process at once; the other ranks learn it by their next call."""
        sys.stdout.flush()
        sys.stderr.write(f"unisono.mpi: Abort({errorcode}) by rank {self.rank}\n")
        sys.stderr.flush()
        os._exit(errorcode & 0xFF or ERR_OTHER)

    def __bool__(self) -> bool:
        return self._comm is not None or self._make is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comm):
            return NotImplemented
        return self is other or (not self and not other)

    def __hash__(self) -> int:
        return id(self)


class Intracomm(Comm):
    """A communicator of one set of ranks: all are."""


COMM_NULL: Final = Intracomm(None)


def _of_this_rank() -> _native.Communicator:
    return _native.init_with(0, 1, lambda data: data)


COMM_SELF: Final = Intracomm(None, _of_this_rank)
COMM_WORLD: Final = Intracomm(_native.init())
COMM_SELF.name = "MPI_COMM_SELF"
COMM_WORLD.name = "MPI_COMM_WORLD"

# SPDX-License-Identifier: BSD-3-Clause
"""Communicators with mpi4py's methods, over those of the package.

A call with a wrong argument is an error on every rank that would wait, with MPI's error class.
After it the communicator goes on, as in MPI: its next call first makes it anew with all members,
which each rank does (unisono_shrink). A rank may have heard of the error some calls later than
others. Then these calls are errors on the others, too, and all go on with the same one. After a
lost rank it stays failed; Shrink() makes one of the rest.
"""

import functools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Final, NoReturn, Optional, TypeVar, Union

import numpy

from .. import _native
from . import _attributes, _calls, _environment, _objects
from ._calls import Call
from ._attributes import CopyFunction, DeleteFunction
from ._errors import ERR_ARG, ERR_GROUP, ERR_OTHER, ERRORS_RETURN, Errhandler, Exception
from ._groups import CONGRUENT, IDENT, UNDEFINED, UNEQUAL, Group, similarity
from ._handles import Handle, all_tell_others, tells_others
from ._infos import INFO_NULL, Info
from ._messages import BufferSpec
from ._operators import SUM, Op
from ._requests import Prequest, Request

COMM_TYPE_SHARED: Final = 1

Result = TypeVar("Result")
Base = TypeVar("Base", bound="_Base")
Own = TypeVar("Own", bound="Comm")
Combine = Union[Op, Callable[[Any, Any], Any]]
Spec = BufferSpec


class _Base:
    """A handle, and how calls go to it. A copy, as Intracomm(comm), has the same one."""

    _handle: Handle

    def __new__(cls: type[Base], comm: "Optional[_Base]" = None) -> Base:
        made = object.__new__(cls)
        made._handle = Handle(None) if comm is None else comm._handle
        return made

    @property
    def unisono(self) -> _native.Communicator:
        """The communicator of the package unisono, for its own calls."""
        return self._handle.comm

    def _with(self, function: Callable[[_native.Communicator], Result]) -> Result:
        return self._handle.run(function)

    def _like(self: Base, handle: Handle) -> Base:
        made = type(self).__new__(type(self))
        made._handle = handle
        return made

    def _call(self, prepare: Callable[..., Call], *arguments: Any) -> None:
        def run(comm: _native.Communicator) -> None:
            call = prepare(comm, *arguments)
            for pack in call.pack:
                pack()
            getattr(comm, call.name)(*call.arguments)
            for unpack in call.unpack:
                unpack()
        self._handle.run(run)

    def _start(self, prepare: Callable[..., Call], *arguments: Any) -> Request:
        def start(comm: _native.Communicator) -> Request:
            call = prepare(comm, *arguments)
            for pack in call.pack:
                pack()
            started = getattr(comm, call.name + "_start")(*call.arguments)
            return Request(started, call.unpack, self._handle)
        return self._handle.run(start)

    def _plan(self, prepare: Callable[..., Call], *arguments: Any) -> Prequest:
        def plan(comm: _native.Communicator) -> Prequest:
            call = prepare(comm, *arguments)

            def make(comm: _native.Communicator) -> _native.Plan:
                made: _native.Plan = getattr(comm, call.name + "_plan")(*call.arguments)
                return made
            return Prequest(make, comm, self._handle, call.pack, call.unpack)
        return self._handle.run(plan)


@all_tell_others
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


@all_tell_others
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


@all_tell_others
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


@all_tell_others
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

    @property
    def name(self) -> str:
        return self._handle.name

    @name.setter
    def name(self, name: str) -> None:
        self._handle.name = name

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

    topology = UNDEFINED
    is_topo = False

    def Get_topology(self) -> int:
        return UNDEFINED

    def Is_inter(self) -> bool:
        return False

    def Is_intra(self) -> bool:
        return True

    @tells_others
    def Dup(self: Own, info: Optional[Info] = None) -> Own:
        """One with the same ranks, and the attributes whose keys copy them."""
        made = self._like(Handle(self._with(lambda comm: comm.dup()), self._handle.members))
        self._handle.attributes.copied_to(self, made._handle.attributes)
        made._handle.info = self._handle.info if info is None else info.copy()
        return made

    def Dup_with_info(self: Own, info: Info) -> Own:
        return self.Dup(info)

    def Clone(self: Own) -> Own:
        return self.Dup()

    def Idup(self: Own, info: Optional[Info] = None) -> tuple[Own, Request]:
        """As Dup; the request is complete."""
        return self.Dup(info), Request()

    def Idup_with_info(self: Own, info: Info) -> tuple[Own, Request]:
        return self.Idup(info)

    @tells_others
    def Create(self, group: Group) -> "Comm":
        """A communicator of the group's members, in its order; COMM_NULL at other ranks. Ranks may
        pass groups that have no member in common."""
        def split(comm: _native.Communicator) -> Optional[_native.Communicator]:
            own = self._handle.members
            if not set(group.members) <= set(own):
                raise Exception(ERR_GROUP, "the group has members that the communicator has not",
                                comm.rank)
            is_member = group.rank != UNDEFINED
            return comm.split(own.index(group.members[0]) if is_member else -1, group.rank)
        made = self._of_some(self._with(split))
        if made and made._handle.members != group.members:
            made.Free()
            raise Exception(ERR_GROUP, "members of the group have passed another group")
        return made

    @tells_others
    def Split(self, color: int = 0, key: int = 0) -> "Comm":
        """A communicator for each color; COMM_NULL where it is UNDEFINED."""
        number = -1 if color == UNDEFINED else color
        return self._of_some(self._with(lambda comm: comm.split(number, key)))

    @tells_others
    def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> "Comm":
        """For COMM_TYPE_SHARED, a communicator for the ranks of each host."""
        def split(comm: _native.Communicator) -> Optional[_native.Communicator]:
            if split_type not in (COMM_TYPE_SHARED, UNDEFINED):
                raise Exception(ERR_ARG, f"split_type is {split_type}; it has to be "
                                "COMM_TYPE_SHARED or UNDEFINED", comm.rank)
            hosts = comm.allgather(_environment.own_host()).tolist()
            host = hosts.index(hosts[comm.rank])
            return comm.split(host if split_type == COMM_TYPE_SHARED else -1, key)
        return self._of_some(self._with(split))

    def _of_some(self, made: Optional[_native.Communicator]) -> "Comm":
        """A communicator of some ranks, which tell each other their numbers."""
        if made is None:
            return COMM_NULL
        own = numpy.array([_own_rank], numpy.int64)
        handle = Handle(made)
        handle.members = tuple(handle.run(lambda comm: comm.allgather(own)).reshape(-1).tolist())
        return self._like(handle)

    def Shrink(self) -> "Comm":
        """A communicator of the ranks that live, after an error; it ends this one."""
        return self._of_some(self._handle.shrink())

    def Compare(self, comm: "Comm") -> int:
        """IDENT: one communicator. CONGRUENT: the same ranks in the same order. SIMILAR: in another
        order. Otherwise UNEQUAL."""
        self.unisono, comm.unisono  # noqa: B018 (raises for COMM_NULL)
        first, second = self._handle.members, comm._handle.members
        if self._handle is comm._handle:
            return IDENT
        found = similarity(first, second)
        return CONGRUENT if found == IDENT else found

    def Free(self) -> None:
        """Ends it; while requests of it are active, when the last of them is complete. Persistent
        requests can be used until they are freed, and it ends behind them."""
        self._handle.attributes.delete_all(self)
        self._handle.free()

    def free(self) -> None:
        """As Free; COMM_NULL and the predefined ones stay as they are."""
        if self and self not in (COMM_WORLD, COMM_SELF):
            self.Free()

    def Disconnect(self) -> None:
        self.Free()

    @classmethod
    def Create_keyval(cls, copy_fn: CopyFunction = None, delete_fn: DeleteFunction = None,
                      nopython: bool = False) -> int:
        """For attributes. Dup copies an attribute by copy_fn(comm, keyval, value), if there is one;
        its end calls delete_fn(comm, keyval, value)."""
        return _attributes.create_key(copy_fn, delete_fn)

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        return _attributes.free_key(keyval)

    def Get_attr(self, keyval: int) -> Any:
        """None if there is none."""
        return self._handle.attributes.get(keyval)

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        self._handle.attributes.set(self, keyval, attrval)

    def Delete_attr(self, keyval: int) -> None:
        self._handle.attributes.delete(self, keyval)

    @property
    def group(self) -> Group:
        self.unisono  # noqa: B018 (raises for COMM_NULL)
        return Group.of(self._handle.members, _own_rank)

    def Get_group(self) -> Group:
        return self.group

    @property
    def info(self) -> Info:
        return self.Get_info()

    @info.setter
    def info(self, info: Info) -> None:
        self.Set_info(info)

    def Get_info(self) -> Info:
        """A copy."""
        return self._handle.info.copy()

    def Set_info(self, info: Info) -> None:
        """Nothing reads it but Get_info."""
        self._handle.info = info.copy()

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Errors are exceptions, as by default in mpi4py, whatever is set."""
        self._errhandler = errhandler

    def Get_errhandler(self) -> Errhandler:
        return self._errhandler

    _errhandler = ERRORS_RETURN

    def Abort(self, errorcode: int = 0) -> NoReturn:
        """Ends this process at once; the other ranks learn it by their next call."""
        sys.stdout.flush()
        sys.stderr.write(f"unisono.mpi: Abort({errorcode}) by rank {self.rank}\n")
        sys.stderr.flush()
        os._exit(errorcode & 0xFF or ERR_OTHER)

    def __bool__(self) -> bool:
        return bool(self._handle)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comm):
            return NotImplemented
        return self._handle is other._handle or (not self and not other)

    def __hash__(self) -> int:
        return id(self._handle)

    def __reduce__(self) -> Any:
        return _environment.reduced(self, globals(), "COMM_NULL", "COMM_SELF", "COMM_WORLD")

    if not TYPE_CHECKING:
        def __getattr__(self, name):
            raise AttributeError(_environment.missing(f"{type(self).__name__}.{name}"))


class Intracomm(Comm):
    """A communicator of one set of ranks: all are."""


COMM_NULL: Final = Intracomm()


def _of_this_rank() -> _native.Communicator:
    return _native.init_with(0, 1, lambda data: data)


def _of_world() -> Intracomm:
    comm = _native.init()
    return COMM_NULL._like(Handle(comm, range(comm.size)))


COMM_WORLD: Final = _of_world()
_own_rank: Final = COMM_WORLD.rank
COMM_SELF: Final = COMM_NULL._like(Handle(None, [_own_rank], _of_this_rank))
COMM_SELF.name = "MPI_COMM_SELF"
COMM_WORLD.name = "MPI_COMM_WORLD"

# SPDX-License-Identifier: BSD-3-Clause
"""From the arguments of MPI's collectives on buffers to calls of the package's communicators.

Data moves as bytes, so both sides may name different datatypes for it, as in MPI. Reductions take
arrays of the datatype. Functions raise ValueError, TypeError or Exception for wrong arguments.
"""

from collections.abc import Sequence
from typing import Any, Final, Optional, Union

import numpy

from .. import IN_PLACE as NATIVE_IN_PLACE
from .. import _native
from .._whole import whole
from ._errors import ERR_ARG, ERR_ROOT, Exception
from ._messages import Blocks, BufferSpec, Hook, Message, Wire, has_entries
from ._operators import Op


class _InPlace:
    """Stands for a buffer of which the other one takes the part."""

    def __repr__(self) -> str:
        return "unisono.mpi.IN_PLACE"


IN_PLACE: Final = _InPlace()


class Call:
    """A method of the package's communicator, its arguments, and hooks before and after it."""

    def __init__(self, name: str, *arguments: Any, wires: Sequence[Wire] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.pack: list[Hook] = [wire.pack for wire in wires if wire.pack is not None]
        self.unpack: list[Hook] = [wire.unpack for wire in wires if wire.unpack is not None]


def check_root(comm: _native.Communicator, root: int) -> None:
    if not 0 <= whole(root, "root") < comm.size:
        raise Exception(ERR_ROOT, f"the root is {root}; the communicator has {comm.size} ranks",
                        comm.rank)


def _is_in_place(message: Any) -> bool:
    return message is IN_PLACE or message is None  # as mpi4py has it


def _require(message: Any, name: str) -> None:
    if message is None:
        raise Exception(ERR_ARG, f"{name} is None")


def barrier(comm: _native.Communicator) -> Call:
    return Call("barrier")


def bcast(comm: _native.Communicator, buf: BufferSpec, root: int) -> Call:
    check_root(comm, root)
    is_root = comm.rank == root
    wire = Message(buf).wire(is_input=is_root, is_output=not is_root)
    return Call("broadcast", wire.memory, root, wires=[wire])


def gather(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, root: int) -> Call:
    check_root(comm, root)
    if comm.rank != root:
        send = Message(sendbuf).wire(is_input=True)
        return Call("gather", send.memory, None, root, wires=[send])
    return _gathered(comm, "gather", sendbuf, recvbuf, [root])


def allgather(comm: _native.Communicator, sendbuf: Any, recvbuf: Any) -> Call:
    return _gathered(comm, "allgather", sendbuf, recvbuf, [])


def _gathered(comm: _native.Communicator, name: str, sendbuf: Any, recvbuf: Any,
              rest: list[int]) -> Call:
    _require(recvbuf, "recvbuf")
    message = Message(recvbuf, comm.size)
    receive = message.wire(is_input=_is_in_place(sendbuf), is_output=True)
    if _is_in_place(sendbuf):
        return Call(name, NATIVE_IN_PLACE, receive.memory, *rest, wires=[receive])
    send = Message(sendbuf).wire(is_input=True)
    return Call(name, send.memory, receive.memory, *rest, wires=[send, receive])


def scatter(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, root: int) -> Call:
    check_root(comm, root)
    if comm.rank != root:
        receive = Message(recvbuf).wire(is_output=True)
        return Call("scatter", None, receive.memory, root, wires=[receive])
    _require(sendbuf, "sendbuf")
    send = Message(sendbuf, comm.size).wire(is_input=True)
    if _is_in_place(recvbuf):
        return Call("scatter", _writable(send.memory), NATIVE_IN_PLACE, root, wires=[send])
    receive = Message(recvbuf).wire(is_output=True)
    return Call("scatter", send.memory, receive.memory, root, wires=[send, receive])


def _writable(memory: Any) -> Any:
    """In place, the library wants memory that it could write; it does not."""
    return memory if memory.flags.writeable else memory.copy()


def alltoall(comm: _native.Communicator, sendbuf: Any, recvbuf: Any) -> Call:
    receive = Message(recvbuf, comm.size).wire(_is_in_place(sendbuf), is_output=True)
    if _is_in_place(sendbuf):
        return Call("alltoall", NATIVE_IN_PLACE, receive.memory, wires=[receive])
    send = Message(sendbuf, comm.size).wire(is_input=True)
    return Call("alltoall", send.memory, receive.memory, wires=[send, receive])


# ---- counts for each rank -----------------------------------------------------------------------


def gatherv(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, root: int) -> Call:
    check_root(comm, root)
    if comm.rank != root:
        send = Message(sendbuf).wire(is_input=True)
        return Call("gatherv", send.memory, None, None, None, root, wires=[send])
    return _gathered_blocks(comm, "gatherv", sendbuf, recvbuf, [root])


def allgatherv(comm: _native.Communicator, sendbuf: Any, recvbuf: Any) -> Call:
    return _gathered_blocks(comm, "allgatherv", sendbuf, recvbuf, [])


def _gathered_blocks(comm: _native.Communicator, name: str, sendbuf: Any, recvbuf: Any,
                     rest: list[int]) -> Call:
    _require(recvbuf, "recvbuf")
    receive = Blocks(recvbuf, comm.size).wire(_is_in_place(sendbuf), is_output=True)
    send = (Wire(NATIVE_IN_PLACE) if _is_in_place(sendbuf)
            else Message(sendbuf).wire(is_input=True))
    return Call(name, send.memory, receive.memory, receive.counts, receive.displacements, *rest,
                wires=[send, receive])


def scatterv(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, root: int) -> Call:
    check_root(comm, root)
    receive = (Wire(NATIVE_IN_PLACE) if _is_in_place(recvbuf)
               else Message(recvbuf).wire(is_output=True))
    if comm.rank != root:
        return Call("scatterv", None, receive.memory, None, None, root, wires=[receive])
    _require(sendbuf, "sendbuf")
    send = Blocks(sendbuf, comm.size).wire(is_input=True)
    memory = _writable(send.memory) if _is_in_place(recvbuf) else send.memory
    return Call("scatterv", memory, receive.memory, send.counts, send.displacements, root,
                wires=[send, receive])


def alltoallv(comm: _native.Communicator, sendbuf: Any, recvbuf: Any,
              is_typed: bool = False) -> Call:
    receive = Blocks(recvbuf, comm.size, is_typed).wire(_is_in_place(sendbuf), is_output=True)
    if _is_in_place(sendbuf):
        return Call("alltoallv", NATIVE_IN_PLACE, None, receive.memory, receive.counts, None,
                    receive.displacements, wires=[receive])
    send = Blocks(sendbuf, comm.size, is_typed).wire(is_input=True)
    return Call("alltoallv", send.memory, send.counts, receive.memory, receive.counts,
                send.displacements, receive.displacements, wires=[send, receive])


def alltoallw(comm: _native.Communicator, sendbuf: Any, recvbuf: Any) -> Call:
    return alltoallv(comm, sendbuf, recvbuf, is_typed=True)


# ---- reductions ---------------------------------------------------------------------------------


def reduce(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, op: Op, root: int) -> Call:
    check_root(comm, root)
    if comm.rank != root:
        return Call("reduce", Message(sendbuf).typed(), None, op.native, root)
    return _reduced("reduce", sendbuf, recvbuf, op, [root])


def allreduce(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    return _reduced("allreduce", sendbuf, recvbuf, op, [])


def scan(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    return _reduced("scan", sendbuf, recvbuf, op, [])


def exscan(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    return _reduced("exscan", sendbuf, recvbuf, op, [])


def _reduced(name: str, sendbuf: Any, recvbuf: Any, op: Op, rest: list[int]) -> Call:
    _require(recvbuf, "recvbuf")
    receive = Message(recvbuf).typed()
    if _is_in_place(sendbuf):
        return Call(name, NATIVE_IN_PLACE, receive, op.native, *rest)
    send = Message(sendbuf).typed()
    # The receive buffer may be longer, as in MPI.
    return Call(name, send, receive[:len(send)] if len(send) else receive[:0], op.native, *rest)


def reduce_scatter_block(comm: _native.Communicator, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    if _is_in_place(sendbuf):
        return Call("reduce_scatter", NATIVE_IN_PLACE, Message(recvbuf, comm.size).typed(),
                    op.native)
    receive = Message(recvbuf).typed()
    send = Message(sendbuf, comm.size).typed()
    return Call("reduce_scatter", send, receive[:len(send) // comm.size], op.native)


def reduce_scatter(comm: _native.Communicator, sendbuf: Any, recvbuf: Any,
                   recvcounts: Optional[Union[int, Sequence[int]]], op: Op) -> Call:
    """Without counts the ranks first exchange the lengths of their receive buffers."""
    receive = Message(recvbuf).typed()
    is_in_place = _is_in_place(sendbuf)
    if recvcounts is None:
        if is_in_place:
            raise ValueError("in place, recvcounts are needed")
        counts = comm.allgather(numpy.array([len(receive)], numpy.int64)).reshape(-1).tolist()
    elif has_entries(recvcounts):
        counts = [whole(count, "an entry of recvcounts") for count in recvcounts]
    else:
        counts = [whole(recvcounts, "recvcounts")] * comm.size
    if is_in_place:
        return Call("reduce_scatter", NATIVE_IN_PLACE, receive[:sum(counts)], op.native, counts)
    own = counts[comm.rank] if len(counts) == comm.size else len(receive)
    return Call("reduce_scatter", Message(sendbuf).typed(), receive[:own], op.native, counts)

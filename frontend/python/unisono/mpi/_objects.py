# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on Python objects, which travel pickled: the methods of lower case.

Objects come from the ranks of the job only, which share the user and the program; as any pickles
they may run code.
"""

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

import numpy

from .. import _native
from ._calls import check_root

# A broadcast begins with a message of this length: eight bytes for the pickle's length, then as
# much of it as there is room for. So short objects take one collective.
_HEAD = 256
_LENGTH = 8


class Pickle:
    """How objects become bytes. A program may call __init__ of `unisono.mpi.pickle` again, with
    functions of another package, at all ranks."""

    def __init__(self, dumps: Optional[Callable[..., bytes]] = None,
                 loads: Optional[Callable[[Any], Any]] = None,
                 protocol: Optional[int] = None) -> None:
        is_own = dumps is None
        self._dumps = pickle.dumps if dumps is None else dumps
        self._loads = pickle.loads if loads is None else loads
        self.PROTOCOL = pickle.HIGHEST_PROTOCOL if is_own and protocol is None else protocol

    def dumps(self, obj: Any) -> bytes:
        if self.PROTOCOL is None:
            return self._dumps(obj)
        return self._dumps(obj, self.PROTOCOL)

    def loads(self, data: Any) -> Any:
        return self._loads(data)


of_job = Pickle()


def _pickled(value: Any) -> bytes:
    return of_job.dumps(value)


def _bytes(data: bytes) -> Any:
    return numpy.frombuffer(data, numpy.uint8) if data else numpy.empty(0, numpy.uint8)


def _split(data: Any, lengths: Sequence[int]) -> Iterator[Any]:
    begin = 0
    for length in lengths:
        yield of_job.loads(data[begin:begin + length])
        begin += length


def bcast(comm: _native.Communicator, value: Any, root: int) -> Any:
    check_root(comm, root)
    head = bytearray(_HEAD)
    if comm.rank == root:
        data = _pickled(value)
        head[:_LENGTH] = len(data).to_bytes(_LENGTH, "little")
        first = data[:_HEAD - _LENGTH]
        head[_LENGTH:_LENGTH + len(first)] = first
        comm.broadcast(head, root)
        if len(data) > len(first):
            comm.broadcast(_bytes(data[len(first):]), root)
        return of_job.loads(data)
    comm.broadcast(head, root)
    length = int.from_bytes(head[:_LENGTH], "little")
    received = head[_LENGTH:_LENGTH + length]
    if length > len(received):
        rest = bytearray(length - len(received))
        comm.broadcast(rest, root)
        received += rest
    return of_job.loads(received)


def gather(comm: _native.Communicator, value: Any, root: int) -> Optional[list[Any]]:
    check_root(comm, root)
    data = _bytes(_pickled(value))
    lengths = comm.gather(numpy.array([len(data)], numpy.int64), None, root)
    if comm.rank != root:
        comm.gatherv(data, None, None, None, root)
        return None
    counts = lengths.reshape(-1).tolist()
    received = bytearray(sum(counts))
    comm.gatherv(data, received, counts, None, root)
    return list(_split(received, counts))


def scatter(comm: _native.Communicator, values: Optional[Sequence[Any]], root: int) -> Any:
    check_root(comm, root)
    length = numpy.empty(1, numpy.int64)
    if comm.rank != root:
        comm.scatter(None, length, root)
        received = bytearray(int(length[0]))
        comm.scatterv(None, received, None, None, root)
        return of_job.loads(received)
    parts = [_pickled(value) for value in _for_each_rank(comm, values)]
    counts = [len(part) for part in parts]
    comm.scatter(numpy.array(counts, numpy.int64), length, root)
    received = bytearray(counts[root])
    comm.scatterv(_bytes(b"".join(parts)), received, counts, None, root)
    return of_job.loads(received)


def allgather(comm: _native.Communicator, value: Any) -> list[Any]:
    data = _bytes(_pickled(value))
    counts = comm.allgather(numpy.array([len(data)], numpy.int64)).reshape(-1).tolist()
    received = bytearray(sum(counts))
    comm.allgatherv(data, received, counts=counts)
    return list(_split(received, counts))


def alltoall(comm: _native.Communicator, values: Optional[Sequence[Any]]) -> list[Any]:
    parts = [_pickled(value) for value in _for_each_rank(comm, values)]
    give = [len(part) for part in parts]
    take = comm.alltoall(numpy.array(give, numpy.int64)).tolist()
    received = bytearray(sum(take))
    comm.alltoallv(_bytes(b"".join(parts)), give, received, take)
    return list(_split(received, take))


def _for_each_rank(comm: _native.Communicator, values: Optional[Sequence[Any]]) -> list[Any]:
    found = [None] * comm.size if values is None else list(values)
    if len(found) != comm.size:
        raise ValueError(f"expecting {comm.size} objects, one for each rank, not {len(found)}")
    return found

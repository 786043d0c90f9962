# SPDX-License-Identifier: BSD-3-Clause
"""Buffer specifications of mpi4py, and the memory that they mean.

A specification is a buffer, or a list or tuple of a buffer, counts, displacements and a datatype.
Buffers are arrays of NumPy, objects with the buffer protocol, and tensors in host memory by DLPack.
"""

import ctypes
import os
from collections.abc import Sequence
from typing import Any, Callable, Final, Optional, TypeGuard, Union

import numpy

from .. import _native
from .._whole import whole
from ._datatypes import Datatype, Memory, of_argument, of_dtype

class _Bottom:
    """The start of the address space: datatypes then hold addresses."""

    def __repr__(self) -> str:
        return "unisono.mpi.BOTTOM"


BOTTOM: Final = _Bottom()


def Get_address(location: Any) -> int:
    """Where a buffer begins."""
    return int(memory_of(location)[0].ctypes.data)


Hook = Callable[[], None]


class Wire:
    """The bytes that the library moves, and the functions to call before and after."""

    def __init__(self, memory: Any, pack: Optional[Hook] = None, unpack: Optional[Hook] = None,
                 counts: Sequence[int] = (), displacements: Sequence[int] = ()) -> None:
        self.memory = memory
        self.pack = pack
        self.unpack = unpack
        self.counts = list(counts)
        self.displacements = list(displacements)


def _bytes_of(array: Any) -> Memory:
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
    elif array.flags.f_contiguous:
        flat = array.T.reshape(-1)
    else:
        raise ValueError("message: the array is not contiguous; pass a copy that is")
    found: Memory = flat.view(numpy.uint8) if flat.size else numpy.empty(0, numpy.uint8)
    return found


def _at_address(address: int, length: int, is_read_only: bool, owner: object) -> Memory:
    if length == 0:
        return numpy.empty(0, numpy.uint8)
    bytes_there: Any = (ctypes.c_uint8 * length).from_address(address)
    bytes_there.owner = owner  # lives as long as the array
    memory: Memory = numpy.frombuffer(bytes_there, numpy.uint8)
    if is_read_only:
        memory.flags.writeable = False
    return memory


def _is_readable(address: int, length: int) -> bool:
    """Whether this process may read the first and the last byte: asks the kernel."""
    reader, writer = os.pipe()
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return all(libc.write(writer, ctypes.c_void_p(at), 1) == 1
                   for at in (address, address + length - 1))
    finally:
        os.close(reader)
        os.close(writer)


def _of_device_array(buffer: Any) -> tuple[Memory, Datatype]:
    """Memory that a GPU's library describes, where the host can read it: managed or pinned."""
    interface = buffer.__cuda_array_interface__
    dtype = numpy.dtype(interface["typestr"])
    address, is_read_only = interface["data"]
    length = int(numpy.prod(interface["shape"], dtype=numpy.int64)) * dtype.itemsize
    if interface.get("strides") is not None:
        raise ValueError("message: an array on a device has strides; pass a copy without")
    if length and not _is_readable(address, length):
        raise ValueError("message: the array is in memory of a device, which the host cannot "
                         "read; copy it to the host")
    return _at_address(address, length, is_read_only, buffer), of_dtype(dtype)


def _of_array(array: Any) -> tuple[Memory, Datatype]:
    datatype = of_dtype(array.dtype)
    return _bytes_of(array), datatype


def memory_of(buffer: Any) -> tuple[Memory, Datatype]:
    """A buffer's bytes, and the datatype of its elements. Raises ValueError or TypeError."""
    if isinstance(buffer, numpy.ndarray):
        return _of_array(numpy.asarray(buffer))
    if isinstance(buffer, numpy.generic):
        copy = numpy.array(buffer)
        copy.flags.writeable = False  # what is received there would be lost
        return _of_array(copy)
    try:
        view = memoryview(buffer)
    except TypeError:
        view = None
    if view is not None:
        return _of_array(numpy.asarray(view))
    if hasattr(buffer, "__dlpack__"):
        held = _native.memory_of(buffer)
        dtype = numpy.dtype(held.type_name or f"V{held.item_bytes}")
        return (_at_address(held.address, held.bytes, held.is_read_only, held), of_dtype(dtype))
    if hasattr(buffer, "__cuda_array_interface__"):
        return _of_device_array(buffer)
    raise TypeError(f"message: expecting a buffer or a list or tuple, not {type(buffer).__name__}")


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _is_datatype(value: Any) -> bool:
    return isinstance(value, (Datatype, str))


def _both(value: Any, has_lists: bool) -> bool:
    """Counts and displacements in one entry: two of them, or a list or tuple of two lists."""
    if not _is_list(value) or len(value) != 2:
        return False
    return not has_lists or isinstance(value, tuple) or hasattr(value[0], "__iter__")


def _parts(message: Any, has_lists: bool) -> tuple[Any, Any, Any, Any]:
    """Buffer, counts, displacements and datatype; None for those that are not given. `has_lists`:
    a list of two may be the counts of two ranks."""
    if not _is_list(message):
        return message, None, None, None
    if not 1 <= len(message) <= 4:
        raise ValueError(f"message: expecting 1 to 4 entries, not {len(message)}")
    buffer, *rest = message
    datatype = None
    if rest and (_is_datatype(rest[-1])
                 or (_is_list(rest[-1]) and rest[-1] and _is_datatype(rest[-1][0]))):
        datatype = rest.pop()
    elif len(rest) == 3:
        rest.pop()  # None
    if len(rest) == 1 and _both(rest[0], has_lists):
        rest = list(rest[0])
    if len(rest) > 2:
        raise ValueError("message: expecting (buffer, counts, displacements, datatype)")
    counts, displacements = (*rest, None, None)[:2]
    return buffer, counts, displacements, datatype


def _elements(memory: Memory, begin: int, datatype: Datatype) -> int:
    if datatype.extent <= 0:
        raise ValueError(f"message: the datatype has an extent of {datatype.extent}; give a count")
    elements, rest = divmod(memory.size - begin, datatype.extent)
    if begin > memory.size or rest:
        raise ValueError(f"message: the buffer has {memory.size} bytes from byte {begin} on, which "
                         f"is no multiple of the datatype's extent of {datatype.extent}")
    return elements


def _parts_of(elements: int, ranks: int) -> int:
    if elements % ranks:
        raise ValueError(f"message: {elements} elements are no multiple of the {ranks} ranks")
    return elements // ranks


class Message:
    """One block, or equal blocks one behind the other: `blocks` times `count` elements."""

    def __init__(self, message: Any, blocks: int = 1) -> None:
        buffer, count, displacement, datatype = _parts(message, has_lists=False)
        if message is None:
            raise TypeError("message: expecting a buffer or a list or tuple, not None")
        if buffer is None:  # an empty message, as mpi4py has it
            self.memory, found = numpy.empty(0, numpy.uint8), of_argument("B")
        else:
            self.memory, found = memory_of(buffer)
        self.datatype = found if datatype is None else of_argument(datatype)
        self.begin = whole(displacement or 0, "message: a displacement") * self.datatype.extent
        if count is None:
            self.count = _parts_of(_elements(self.memory, self.begin, self.datatype), blocks)
        else:
            self.count = whole(count, "message: a count")
        if self.count < 0 or self.begin < 0:
            raise ValueError("message: a count or a displacement is negative")
        self.blocks = blocks
        self.datatype.check_room(self.memory, self.begin, self.count * blocks)

    @property
    def total(self) -> int:
        return self.count * self.blocks

    def typed(self) -> Any:
        """The elements as an array, for a reduction. Raises TypeError for derived datatypes."""
        if not self.datatype.is_predefined:
            raise TypeError("a reduction takes elements of a predefined datatype")
        end = self.begin + self.total * self.datatype.extent
        return self.memory[self.begin:end].view(self.datatype.dtype)

    def wire(self, is_input: bool = False, is_output: bool = False) -> Wire:
        datatype, memory, begin, total = self.datatype, self.memory, self.begin, self.total
        if datatype.is_dense:
            return Wire(memory[begin:begin + total * datatype.extent])
        packed = numpy.empty(total * datatype.size, numpy.uint8)

        def pack() -> None:
            packed[:] = datatype.pack(memory, begin, total)

        def unpack() -> None:
            datatype.unpack(memory, begin, total, packed)

        if is_output and not memory.flags.writeable:
            packed.flags.writeable = False  # the library refuses it
        return Wire(packed, pack if is_input else None, unpack if is_output else None)


def has_entries(value: Any) -> TypeGuard[Sequence[Any]]:
    """Not a number, as which an array of no dimension counts."""
    return hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0


def _numbers(value: Any, ranks: int, name: str) -> list[int]:
    numbers = [whole(each, f"message: an entry of {name}") for each in value]
    if len(numbers) != ranks:
        raise ValueError(f"message: expecting {ranks} {name}, not {len(numbers)}")
    return numbers


class Blocks:
    """A block for each rank, with counts, displacements and datatypes of its own."""

    def __init__(self, message: Any, ranks: int, is_typed: bool = False) -> None:
        buffer, counts, displacements, datatype = _parts(message, has_lists=True)
        is_bottom = buffer is BOTTOM
        if is_bottom and not (is_typed and counts is not None and datatype is not None):
            raise ValueError("message: BOTTOM needs counts and a datatype for each rank")
        # None is an empty message, as mpi4py has it.
        self.memory, found = memory_of(b"" if is_bottom or buffer is None else buffer)
        if is_typed:
            self.datatypes = _datatypes(datatype, found, ranks)
        else:
            if _is_list(datatype):
                raise TypeError("message: expecting one datatype, not a list")
            self.datatypes = [found if datatype is None else of_argument(datatype)] * ranks
        extent = 1 if is_typed else self.datatypes[0].extent
        if counts is None and is_typed:  # each datatype says where its block lies
            counts, displacements = 1, [0] * ranks
        elif counts is None:
            elements = _elements(self.memory, 0, self.datatypes[0])
            counts = [elements // ranks + (rank < elements % ranks) for rank in range(ranks)]
        self.counts = (_numbers(counts, ranks, "counts") if has_entries(counts)
                       else [whole(counts, "message: a count")] * ranks)
        if any(count < 0 for count in self.counts):
            raise ValueError("message: a count is negative")
        self.begins = self._begins(displacements, extent, ranks)
        if is_bottom:
            self._use_addresses()
        for datatype_of, begin, count in zip(self.datatypes, self.begins, self.counts):
            datatype_of.check_room(self.memory, begin, count)

    def _use_addresses(self) -> None:
        """The memory from the first byte of a block to the last one of any."""
        spans = [datatype.span(begin, count) for datatype, begin, count
                 in zip(self.datatypes, self.begins, self.counts) if count and datatype.size]
        first = min((span[0] for span in spans), default=0)
        end = max((span[1] for span in spans), default=0)
        self.memory = _at_address(first, end - first, False, None)
        self.begins = [begin - first for begin in self.begins]

    def _begins(self, displacements: Any, extent: int, ranks: int) -> list[int]:
        if displacements is None:
            begins, next_one = [], 0
            for datatype, count in zip(self.datatypes, self.counts):
                begins.append(next_one)
                next_one += count * datatype.extent
            return begins
        if not has_entries(displacements):
            step = whole(displacements, "message: a displacement") * extent
            return [rank * step for rank in range(ranks)]
        return [each * extent for each in _numbers(displacements, ranks, "displacements")]

    def wire(self, is_input: bool = False, is_output: bool = False) -> Wire:
        lengths = [count * datatype.size for datatype, count in zip(self.datatypes, self.counts)]
        if all(datatype.is_dense for datatype in self.datatypes):
            # A block of no bytes has no place.
            begins = [begin if length else 0 for begin, length in zip(self.begins, lengths)]
            return Wire(self.memory, counts=lengths, displacements=begins)
        starts = [sum(lengths[:rank]) for rank in range(len(lengths))]
        packed = numpy.empty(sum(lengths), numpy.uint8)
        memory = self.memory
        blocks = list(zip(self.datatypes, self.begins, self.counts, starts, lengths))

        def pack() -> None:
            for datatype, begin, count, start, length in blocks:
                packed[start:start + length] = datatype.pack(memory, begin, count)

        def unpack() -> None:
            for datatype, begin, count, start, length in blocks:
                datatype.unpack(memory, begin, count, packed[start:start + length])

        if is_output and not memory.flags.writeable:
            packed.flags.writeable = False  # the library refuses it
        return Wire(packed, pack if is_input else None, unpack if is_output else None, lengths,
                    starts)


def _datatypes(value: Any, found: Datatype, ranks: int) -> list[Datatype]:
    if value is None:
        return [found] * ranks
    if not _is_list(value):
        return [of_argument(value)] * ranks
    if len(value) != ranks:
        raise ValueError(f"message: expecting {ranks} datatypes, not {len(value)}")
    return [of_argument(each) for each in value]


BufferSpec = Union[Any, Sequence[Any]]

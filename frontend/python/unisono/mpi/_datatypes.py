# SPDX-License-Identifier: BSD-3-Clause
"""Datatypes: elements of NumPy's types, and layouts of them that MPI derives.

A derived datatype has base elements of one type. Collectives pack its elements into a block and
unpack them at the receiver, as MPI libraries do.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, Optional, Union

import numpy
from numpy.typing import NDArray

from ._errors import ERR_ARG, ERR_TYPE, Exception

Places = NDArray[numpy.int64]
Memory = NDArray[numpy.uint8]

ORDER_C: Final = 56
ORDER_FORTRAN: Final = 57
ORDER_F: Final = ORDER_FORTRAN


class Datatype:
    """One element is `itemsize` bytes of `dtype` at each of `places`, bytes from its start.

    The next element begins `extent` bytes later; its first byte lies `lower` bytes from the start.
    Immutable but for its name and its end, so any thread may use it. A copy, as Datatype(INT), is
    equal.
    """

    _is_freed = False

    def __new__(cls, datatype: "Optional[Datatype]" = None) -> "Datatype":
        made = object.__new__(cls)
        if datatype is None:
            made._define("MPI_DATATYPE_NULL", None)
        else:
            vars(made).update(vars(datatype))
        return made

    def _define(self, name: str, dtype: Optional[numpy.dtype[Any]],
                places: Optional[Places] = None, lower: int = 0, extent: int = 0) -> None:
        self.name = name
        self._identity = object() if dtype is not None else None  # copies have the same one
        self._dtype = dtype
        self._places = places
        self.lb = lower
        itemsize = 0 if dtype is None else dtype.itemsize
        self.size = itemsize if places is None else itemsize * len(places)
        self.extent = itemsize if places is None else extent
        self.is_dense = places is None or (
            lower == 0 and self.extent == self.size
            and bool(numpy.array_equal(places, numpy.arange(len(places)) * itemsize)))

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """NumPy's type of its base elements. Raises Exception for DATATYPE_NULL."""
        if self._dtype is None:
            raise Exception(ERR_TYPE, f"{self.name} is no datatype here")
        return self._dtype

    @property
    def is_predefined(self) -> bool:
        return self._places is None

    def __reduce__(self) -> Union[str, tuple[Any, ...]]:
        """A predefined datatype is pickled by its name here."""
        name = "INT_INT" if self.name == "MPI_2INT" else self.name.removeprefix("MPI_")
        known: object = globals().get(name)
        if known is self:
            return name
        if isinstance(known, Datatype) and known == self:  # of a copy
            return type(self), (known,)
        return super().__reduce__()

    @property
    def ub(self) -> int:
        return self.lb + self.extent

    @property
    def typechar(self) -> str:
        return "" if self._dtype is None else "c" if self._dtype == "S1" else self._dtype.char

    @property
    def typestr(self) -> str:
        return "" if self._dtype is None else self._dtype.str.lstrip("<>|=")

    def tocode(self) -> str:
        return self.dtype.char

    def Get_size(self) -> int:
        return self.size

    def Get_extent(self) -> tuple[int, int]:
        return self.lb, self.extent

    @property
    def is_named(self) -> bool:
        return self.is_predefined

    @property
    def true_lb(self) -> int:
        own = self._own_places()
        return int(own.min()) if len(own) else 0

    @property
    def true_extent(self) -> int:
        own = self._own_places()
        return int(own.max() - own.min()) + self.dtype.itemsize if len(own) else 0

    @property
    def true_ub(self) -> int:
        return self.true_lb + self.true_extent

    def Get_true_extent(self) -> tuple[int, int]:
        return self.true_lb, self.true_extent

    @classmethod
    def fromcode(cls, code: str) -> "Datatype":
        """From a letter of NumPy's types."""
        return of_dtype(numpy.dtype(code))

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> "Datatype":
        """The datatype of a TYPECLASS and so many bytes."""
        found = _BY_SIZE.get((typeclass, size))
        if found is None:
            raise Exception(ERR_ARG, f"no datatype of the class {typeclass} has {size} bytes")
        return found

    def Get_name(self) -> str:
        return self.name

    def Set_name(self, name: str) -> None:
        self.name = name

    def Commit(self) -> "Datatype":
        return self

    def Free(self) -> None:
        """It is DATATYPE_NULL then; pending calls keep what they need."""
        if self.is_predefined:
            raise Exception(ERR_TYPE, f"{self.name} is predefined, or has been freed")
        self._is_freed = True

    def free(self) -> None:
        """As Free; it may be DATATYPE_NULL, and predefined datatypes stay as they are."""
        if self and not self.is_predefined:
            self.Free()

    def __repr__(self) -> str:
        return f"unisono.mpi.{self.name.removeprefix('MPI_')}"

    def __bool__(self) -> bool:
        return self._dtype is not None and not self._is_freed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Datatype):
            return NotImplemented
        return self._identity is other._identity if self and other else bool(self) == bool(other)

    def __hash__(self) -> int:
        return hash(self._identity)

    # ---- derived datatypes ----------------------------------------------------------------------

    def _own_places(self) -> Places:
        return numpy.zeros(1, numpy.int64) if self._places is None else self._places

    def _derive(self, starts: Places) -> "Datatype":
        """Elements of this type at `starts`, bytes from the new element's start."""
        own = self._own_places()
        places = (starts.reshape(-1, 1) + own.reshape(1, -1)).reshape(-1)
        lower = int(starts.min()) + self.lb if len(starts) else 0
        upper = int(starts.max()) + self.ub if len(starts) else 0
        return _made("derived", self.dtype, places, lower, upper - lower)

    def _blocks(self, lengths: Sequence[int], starts: Sequence[int]) -> "Datatype":
        if len(lengths) != len(starts):
            raise ValueError(f"{len(lengths)} block lengths for {len(starts)} displacements")
        if any(length < 0 for length in lengths):
            raise ValueError("a block length is negative")
        parts = [start + numpy.arange(length, dtype=numpy.int64) * self.extent
                 for length, start in zip(lengths, starts)]
        return self._derive(numpy.concatenate(parts) if parts else numpy.zeros(0, numpy.int64))

    def Dup(self) -> "Datatype":
        return _made(self.name, self.dtype, self._own_places(), self.lb, self.extent)

    def Create_contiguous(self, count: int) -> "Datatype":
        return self._blocks([count], [0])

    def Create_vector(self, count: int, blocklength: int, stride: int) -> "Datatype":
        return self.Create_hvector(count, blocklength, stride * self.extent)

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> "Datatype":
        return self._blocks([blocklength] * count, [i * stride for i in range(count)])

    def Create_indexed(self, blocklengths: Sequence[int],
                       displacements: Sequence[int]) -> "Datatype":
        return self._blocks(blocklengths, [each * self.extent for each in displacements])

    def Create_hindexed(self, blocklengths: Sequence[int],
                        displacements: Sequence[int]) -> "Datatype":
        return self._blocks(blocklengths, displacements)

    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> "Datatype":
        return self.Create_indexed([blocklength] * len(displacements), displacements)

    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> "Datatype":
        return self._blocks([blocklength] * len(displacements), displacements)

    def Create_subarray(self, sizes: Sequence[int], subsizes: Sequence[int],
                        starts: Sequence[int], order: int = ORDER_C) -> "Datatype":
        if not len(sizes) == len(subsizes) == len(starts):
            raise ValueError("sizes, subsizes and starts have different lengths")
        for size, part, start in zip(sizes, subsizes, starts):
            if not 0 <= start <= start + part <= size:
                raise ValueError(f"a part of {part} from {start} is not within {size}")
        letter: Literal["C", "F"] = "F" if order == ORDER_FORTRAN else "C"
        total = int(numpy.prod(sizes))
        numbers = numpy.arange(total, dtype=numpy.int64).reshape(tuple(sizes), order=letter)
        part_of = tuple(slice(start, start + part) for start, part in zip(starts, subsizes))
        chosen = numbers[part_of].ravel(order=letter)
        return self._derive(chosen * self.extent).Create_resized(0, total * self.extent)

    @staticmethod
    def Create_struct(blocklengths: Sequence[int], displacements: Sequence[int],
                      datatypes: Sequence["Datatype"]) -> "Datatype":
        """Blocks at byte displacements; all have the same base elements."""
        if not len(blocklengths) == len(displacements) == len(datatypes) > 0:
            raise ValueError("block lengths, displacements and datatypes are not equally many")
        if any(each.dtype != datatypes[0].dtype for each in datatypes):
            raise Exception(ERR_TYPE, "a datatype has base elements of one type")
        parts = [each._blocks([length], [displacement])
                 for each, length, displacement in zip(datatypes, blocklengths, displacements)]
        places = numpy.concatenate([part._own_places() for part in parts])
        lower = min(part.lb for part in parts)
        extent = max(part.ub for part in parts) - lower
        return _made("derived", datatypes[0].dtype, places, lower, extent)

    def Create_resized(self, lb: int, extent: int) -> "Datatype":
        return _made("derived", self.dtype, self._own_places(), lb, extent)

    # ---- packing --------------------------------------------------------------------------------

    def _indexes(self, begin: int, count: int) -> Places:
        own = self._own_places()
        starts = begin + numpy.arange(count, dtype=numpy.int64) * self.extent
        places = (starts.reshape(-1, 1) + own.reshape(1, -1)).reshape(-1, 1)
        return (places + numpy.arange(self.dtype.itemsize)).reshape(-1)

    def span(self, begin: int, count: int) -> tuple[int, int]:
        """The first byte of `count` elements from byte `begin`, and the one behind the last."""
        own = self._own_places()
        if count == 0 or self.size == 0:
            return begin, begin
        ends = begin, begin + (count - 1) * self.extent
        return min(ends) + int(own.min()), max(ends) + int(own.max()) + self.dtype.itemsize

    def check_room(self, memory: Memory, begin: int, count: int) -> None:
        """Raises ValueError if `count` elements from byte `begin` are not within the memory."""
        if count == 0 or self.size == 0:
            return
        first, end = self.span(begin, count)
        if count < 0 or first < 0 or end > memory.size:
            raise ValueError(f"message: {count} elements of {self.extent} bytes from byte {begin} "
                             f"are not within the buffer of {memory.size} bytes")

    def pack(self, memory: Memory, begin: int, count: int) -> Memory:
        packed: Memory = memory[self._indexes(begin, count)]
        return packed

    def unpack(self, memory: Memory, begin: int, count: int, packed: Memory) -> None:
        memory[self._indexes(begin, count)] = packed


def _made(name: str, dtype: Optional[numpy.dtype[Any]], places: Optional[Places] = None,
          lower: int = 0, extent: int = 0) -> Datatype:
    made = Datatype()
    made._define(name, dtype, places, lower, extent)
    return made


def _of(name: str, char: str) -> Datatype:
    return _made(f"MPI_{name}", numpy.dtype(char))


def _pair(name: str, value: str) -> Datatype:
    return _made(f"MPI_{name}", numpy.dtype([("value", value), ("index", "i4")], align=True))


DATATYPE_NULL: Final = Datatype()
# No element of the library has more than 64 bits, so these do not exist here.
LONG_DOUBLE: Final = DATATYPE_NULL
C_LONG_DOUBLE_COMPLEX: Final = DATATYPE_NULL

BYTE: Final = _of("BYTE", "u1")
PACKED: Final = _of("PACKED", "u1")
CHAR: Final = _of("CHAR", "S1")
CHARACTER: Final = _of("CHARACTER", "S1")
WCHAR: Final = _of("WCHAR", "U1")
C_BOOL: Final = _of("C_BOOL", "?")
CXX_BOOL: Final = C_BOOL
BOOL: Final = C_BOOL
SIGNED_CHAR: Final = _of("SIGNED_CHAR", "b")
SHORT: Final = _of("SHORT", "h")
INT: Final = _of("INT", "i")
LONG: Final = _of("LONG", "l")
LONG_LONG: Final = _of("LONG_LONG", "q")
UNSIGNED_CHAR: Final = _of("UNSIGNED_CHAR", "B")
UNSIGNED_SHORT: Final = _of("UNSIGNED_SHORT", "H")
UNSIGNED: Final = _of("UNSIGNED", "I")
UNSIGNED_INT: Final = UNSIGNED
UNSIGNED_LONG: Final = _of("UNSIGNED_LONG", "L")
UNSIGNED_LONG_LONG: Final = _of("UNSIGNED_LONG_LONG", "Q")
FLOAT: Final = _of("FLOAT", "f")
DOUBLE: Final = _of("DOUBLE", "d")
C_FLOAT_COMPLEX: Final = _of("C_FLOAT_COMPLEX", "F")
C_COMPLEX: Final = C_FLOAT_COMPLEX
CXX_FLOAT_COMPLEX: Final = C_FLOAT_COMPLEX
C_DOUBLE_COMPLEX: Final = _of("C_DOUBLE_COMPLEX", "D")
CXX_DOUBLE_COMPLEX: Final = C_DOUBLE_COMPLEX
REAL2: Final = _of("REAL2", "e")
INT8_T: Final = _of("INT8_T", "i1")
INT16_T: Final = _of("INT16_T", "i2")
INT32_T: Final = _of("INT32_T", "i4")
INT64_T: Final = _of("INT64_T", "i8")
UINT8_T: Final = _of("UINT8_T", "u1")
UINT16_T: Final = _of("UINT16_T", "u2")
UINT32_T: Final = _of("UINT32_T", "u4")
UINT64_T: Final = _of("UINT64_T", "u8")
AINT: Final = _of("AINT", "i8")
OFFSET: Final = _of("OFFSET", "i8")
COUNT: Final = _of("COUNT", "i8")
INTEGER: Final = _of("INTEGER", "i4")
INTEGER1: Final = _of("INTEGER1", "i1")
INTEGER2: Final = _of("INTEGER2", "i2")
INTEGER4: Final = _of("INTEGER4", "i4")
INTEGER8: Final = _of("INTEGER8", "i8")
REAL: Final = _of("REAL", "f4")
REAL4: Final = _of("REAL4", "f4")
REAL8: Final = _of("REAL8", "f8")
DOUBLE_PRECISION: Final = _of("DOUBLE_PRECISION", "f8")
COMPLEX: Final = _of("COMPLEX", "F")
COMPLEX8: Final = _of("COMPLEX8", "F")
COMPLEX16: Final = _of("COMPLEX16", "D")
DOUBLE_COMPLEX: Final = _of("DOUBLE_COMPLEX", "D")
SHORT_INT: Final = _pair("SHORT_INT", "h")
INT_INT: Final = _pair("2INT", "i")
TWOINT: Final = INT_INT
LONG_INT: Final = _pair("LONG_INT", "l")
FLOAT_INT: Final = _pair("FLOAT_INT", "f")
DOUBLE_INT: Final = _pair("DOUBLE_INT", "d")

# Other names that mpi4py has for them.
SIGNED_SHORT: Final = SHORT
SIGNED_INT: Final = INT
SIGNED_LONG: Final = LONG
SIGNED_LONG_LONG: Final = LONG_LONG
SINT8_T: Final = INT8_T
SINT16_T: Final = INT16_T
SINT32_T: Final = INT32_T
SINT64_T: Final = INT64_T
F_INT: Final = INTEGER
F_FLOAT: Final = REAL
F_DOUBLE: Final = DOUBLE_PRECISION
F_COMPLEX: Final = COMPLEX
F_FLOAT_COMPLEX: Final = COMPLEX
F_DOUBLE_COMPLEX: Final = DOUBLE_COMPLEX

# By the letters of NumPy's types, as mpi4py has them.
_typedict: Final = {each.dtype.char: each for each in (
    C_BOOL, SIGNED_CHAR, SHORT, INT, LONG, LONG_LONG, UNSIGNED_CHAR, UNSIGNED_SHORT, UNSIGNED,
    UNSIGNED_LONG, UNSIGNED_LONG_LONG, FLOAT, DOUBLE, C_FLOAT_COMPLEX, C_DOUBLE_COMPLEX, REAL2)}


TYPECLASS_REAL: Final = 1
TYPECLASS_INTEGER: Final = 2
TYPECLASS_COMPLEX: Final = 3
_BY_SIZE: Final = {
    (TYPECLASS_INTEGER, 1): INTEGER1, (TYPECLASS_INTEGER, 2): INTEGER2,
    (TYPECLASS_INTEGER, 4): INTEGER4, (TYPECLASS_INTEGER, 8): INTEGER8,
    (TYPECLASS_REAL, 2): REAL2, (TYPECLASS_REAL, 4): REAL4, (TYPECLASS_REAL, 8): REAL8,
    (TYPECLASS_COMPLEX, 8): COMPLEX8, (TYPECLASS_COMPLEX, 16): COMPLEX16}


def of_dtype(dtype: numpy.dtype[Any]) -> Datatype:
    """The datatype of an array's elements. Raises ValueError for Python's objects."""
    if dtype.hasobject:
        raise ValueError("message: the array holds Python objects; use a method of lower case")
    found = _typedict.get(dtype.char) if dtype.isnative else None
    return found or _made(str(dtype), dtype)


def of_argument(argument: Union[Datatype, str]) -> Datatype:
    """The datatype that a buffer specification names, also by a letter such as "d"."""
    if isinstance(argument, Datatype):
        if argument._is_freed:
            raise Exception(ERR_TYPE, f"the datatype {argument.name} has been freed")
        if argument.is_predefined:
            argument.dtype  # noqa: B018 (raises for DATATYPE_NULL)
        return argument
    try:
        return of_dtype(numpy.dtype(argument))
    except TypeError as error:
        raise KeyError(argument) from error


__all__ = [
    "ORDER_C", "ORDER_FORTRAN", "DATATYPE_NULL", "LONG_DOUBLE", "C_LONG_DOUBLE_COMPLEX", "BYTE",
    "PACKED", "CHAR", "CHARACTER", "WCHAR", "C_BOOL", "CXX_BOOL", "BOOL", "SIGNED_CHAR", "SHORT",
    "INT", "LONG", "LONG_LONG", "UNSIGNED_CHAR", "UNSIGNED_SHORT", "UNSIGNED", "UNSIGNED_INT",
    "UNSIGNED_LONG", "UNSIGNED_LONG_LONG", "FLOAT", "DOUBLE", "C_FLOAT_COMPLEX", "C_COMPLEX",
    "CXX_FLOAT_COMPLEX", "C_DOUBLE_COMPLEX", "CXX_DOUBLE_COMPLEX", "REAL2", "INT8_T", "INT16_T",
    "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T", "AINT", "OFFSET",
    "COUNT", "INTEGER", "INTEGER1", "INTEGER2", "INTEGER4", "INTEGER8", "REAL", "REAL4", "REAL8",
    "DOUBLE_PRECISION", "COMPLEX", "COMPLEX8", "COMPLEX16", "DOUBLE_COMPLEX", "SHORT_INT",
    "TYPECLASS_COMPLEX", "TYPECLASS_INTEGER", "TYPECLASS_REAL",
    "ORDER_F", "SIGNED_SHORT", "SIGNED_INT", "SIGNED_LONG", "SIGNED_LONG_LONG", "SINT8_T",
    "SINT16_T", "SINT32_T", "SINT64_T", "F_INT", "F_FLOAT", "F_DOUBLE", "F_COMPLEX",
    "F_FLOAT_COMPLEX", "F_DOUBLE_COMPLEX",
    "INT_INT", "TWOINT", "LONG_INT", "FLOAT_INT", "DOUBLE_INT", "Datatype",
]

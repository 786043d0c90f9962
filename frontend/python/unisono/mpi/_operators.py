# SPDX-License-Identifier: BSD-3-Clause
"""Operators of reductions: the library's own by name, and functions of the caller.

Reductions of buffers take the operator's native form. Those of Python objects call the operator as
a function of two objects.
"""

import operator
from typing import Any, Callable, Final, Optional, Union

import numpy

from .._operators import Op as NativeOp
from ._datatypes import Datatype, of_dtype
from ._errors import ERR_OP, Exception
from ._messages import Message

# MPI's form: combines both buffers, of elements of the datatype, into the second one.
# Or it combines two Python objects; then the datatype is None, and it returns the result.
BufferFunction = Callable[[Any, Any, Optional[Datatype]], Any]


class Op:
    """An operator. Call it to combine two objects. A copy, as Op(SUM), is equal."""

    def __new__(cls, op: "Optional[Op]" = None) -> "Op":
        made = object.__new__(cls)
        if op is None:
            made._define("OP_NULL", None, None)
        else:
            vars(made).update(vars(op))
        return made

    def _define(self, name: str, native: Union[str, NativeOp, None],
                of_objects: Optional[Callable[[Any, Any], Any]], is_commutative: bool = True,
                is_predefined: bool = True) -> None:
        self.name = name
        self._identity = object() if native is not None else None  # copies have the same one
        self._native = native
        self._of_objects = of_objects
        self.is_commutative = is_commutative
        self.is_predefined = is_predefined

    @classmethod
    def Create(cls, function: BufferFunction, commute: bool = False) -> "Op":
        """An operator from a function of two buffers and a datatype, which writes to the second.

        For Python objects it gets two of them and None, and returns their combination.
        All ranks create and use their operators in the same order. An operator lives until the
        process ends, also after Free.
        """

        def native(left: Any, right: Any) -> Any:
            result: Any = numpy.array(right)
            function(memoryview(left).cast("B"), memoryview(result).cast("B"),
                     of_dtype(result.dtype))
            return result

        def of_objects(left: Any, right: Any) -> Any:
            return function(left, right, None)

        made = cls()
        made._define("created", NativeOp(native, commutative=commute), of_objects, commute, False)
        return made

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:
        """inoutbuf = inbuf op inoutbuf, element by element, at this rank alone."""
        left, right = Message(inbuf).typed(), Message(inoutbuf).typed()
        if left.dtype != right.dtype:
            raise ValueError(f"Reduce_local: the buffers have {left.dtype} and {right.dtype}")
        if len(left) != len(right):
            raise ValueError(f"Reduce_local: the buffers have {len(left)} and {len(right)} "
                             "elements")
        native = self.native
        if isinstance(native, NativeOp):
            right[...] = native.function(left, right)
        elif native in _LOCAL:
            right[...] = _LOCAL[native](left, right)
        else:
            raise Exception(ERR_OP, f"{self.name} has no local form")

    def Free(self) -> None:
        """It is OP_NULL then; pending calls keep what they need."""
        if self.is_predefined:
            raise Exception(ERR_OP, f"{self.name} is predefined, or has been freed")
        self._define("OP_NULL", None, None)

    def free(self) -> None:
        """As Free; it may be OP_NULL, and predefined operators stay as they are."""
        if self and not self.is_predefined:
            self.Free()

    def Is_commutative(self) -> bool:
        return self.is_commutative

    @property
    def native(self) -> Union[str, NativeOp]:
        """As the package unisono takes it. Raises Exception for OP_NULL."""
        if self._native is None:
            raise Exception(ERR_OP, f"{self.name} is no operator")
        return self._native

    def __call__(self, left: Any, right: Any) -> Any:
        if self._of_objects is None:
            raise Exception(ERR_OP, f"{self.name} does not take Python objects")
        return self._of_objects(left, right)

    def __reduce__(self) -> Union[str, tuple[Any, ...]]:
        """A predefined operator is pickled by its name."""
        if not self.is_predefined:
            return super().__reduce__()
        known = globals()[self.name]
        return self.name if known is self else (type(self), (known,))

    def __bool__(self) -> bool:
        return self._native is not None

    def __eq__(self, other: object) -> bool:
        return self._identity is other._identity if isinstance(other, Op) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"unisono.mpi.{self.name}"


_LOCAL: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum,
    "logical_and": numpy.logical_and, "logical_or": numpy.logical_or,
    "logical_xor": numpy.logical_xor, "bitwise_and": numpy.bitwise_and,
    "bitwise_or": numpy.bitwise_or, "bitwise_xor": numpy.bitwise_xor,
}


def _larger(left: Any, right: Any) -> Any:
    return right if right > left else left


def _smaller(left: Any, right: Any) -> Any:
    return right if right < left else left


def _place_of(is_better: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def choose(left: Any, right: Any) -> Any:
        (value, place), (other, other_place) = left, right
        if value == other:
            return (other, other_place) if other_place < place else (value, place)
        return (value, place) if is_better(value, other) else (other, other_place)
    return choose


def _second(left: Any, right: Any) -> Any:
    return right


def _first(left: Any, right: Any) -> Any:
    return left


def _made(name: str, native: Union[str, NativeOp],
          of_objects: Callable[[Any, Any], Any], is_commutative: bool = True) -> Op:
    made = Op()
    made._define(name, native, of_objects, is_commutative)
    return made


OP_NULL: Final = Op()
SUM: Final = _made("SUM", "sum", operator.add)
PROD: Final = _made("PROD", "prod", operator.mul)
MAX: Final = _made("MAX", "max", _larger)
MIN: Final = _made("MIN", "min", _smaller)
LAND: Final = _made("LAND", "logical_and", lambda left, right: bool(left) and bool(right))
LOR: Final = _made("LOR", "logical_or", lambda left, right: bool(left) or bool(right))
LXOR: Final = _made("LXOR", "logical_xor", lambda left, right: bool(left) != bool(right))
BAND: Final = _made("BAND", "bitwise_and", operator.and_)
BOR: Final = _made("BOR", "bitwise_or", operator.or_)
BXOR: Final = _made("BXOR", "bitwise_xor", operator.xor)
MAXLOC: Final = _made("MAXLOC", "maxloc", _place_of(operator.gt))
MINLOC: Final = _made("MINLOC", "minloc", _place_of(operator.lt))
REPLACE: Final = _made("REPLACE", NativeOp(_second, commutative=False), _second, False)
NO_OP: Final = _made("NO_OP", NativeOp(_first, commutative=False), _first, False)

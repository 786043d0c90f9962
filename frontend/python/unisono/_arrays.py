# SPDX-License-Identifier: BSD-3-Clause
"""What the extension module needs of NumPy, which is imported at the first use only."""

from typing import Any, Callable, Optional

# The numbers of unisono.h
_NAMES = ["byte", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def empty(like: Any, shape: tuple[int, ...]) -> Any:
    """An array for a result: a tensor for a tensor, otherwise one of NumPy."""
    if hasattr(like, "new_empty"):
        return like.new_empty(shape)
    import numpy
    dtype = like.dtype if isinstance(like, (numpy.ndarray, numpy.generic)) else None
    if dtype is None:
        dtype = (of_number(like) if isinstance(like, (int, float, complex))
                 else numpy.asarray(memoryview(like))).dtype
    return numpy.empty(shape, dtype)


def of_number(number: Any) -> Any:
    """An array of one element: int64, float64, complex128 or bool."""
    import numpy
    return numpy.asarray(number, dtype=numpy.int64 if type(number) is int else None)


def of_other_elements(array: Any) -> tuple[Optional[Any], str]:
    """A view as integers of an array that lends no buffer, and its type's name."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.hasobject or not hasattr(array, "view"):
        return None, str(dtype or type(array))
    if dtype.itemsize in (1, 2, 4, 8):
        return array.view(f"u{dtype.itemsize}"), dtype.name
    return array.view(f"V{dtype.itemsize}"), dtype.name


def dtype_of(number: int) -> Any:
    """NumPy's type for one of unisono.h's."""
    import numpy
    name = _NAMES[number] if number < len(_NAMES) else "a pair"
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise TypeError("a function as operator on bfloat16 needs the package ml_dtypes"
                            ) from error
        return numpy.dtype(ml_dtypes.bfloat16)
    if name in ("byte", "a pair"):
        raise TypeError(f"a function as operator does not take elements of type {name}")
    return numpy.dtype(name)


def apply(function: Callable[[Any, Any], Any], target: memoryview, left: memoryview,
          right: memoryview, number: int) -> None:
    """target = function(left, right), for the library."""
    import numpy
    dtype = dtype_of(number)
    result = function(numpy.frombuffer(left, dtype), numpy.frombuffer(right, dtype))
    numpy.copyto(numpy.frombuffer(target, dtype), result, casting="same_kind")


def type_number(name: Any) -> int:
    """The number of a type by its name, or by a type of NumPy."""
    text = name if isinstance(name, str) else str(getattr(name, "name", name))
    if text not in _NAMES:
        raise TypeError(f"{name!r} is none of {', '.join(_NAMES)}")
    return _NAMES.index(text)

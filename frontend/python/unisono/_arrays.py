# SPDX-License-Identifier: BSD-3-Clause
"""The part of NumPy that the extension module needs. NumPy is imported at the first use only."""

import operator
from typing import Any, Callable, Optional

from . import _errors, _native

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
        dtype = _type_of_elements(like)
    return numpy.empty(shape, dtype)


def _type_of_elements(like: Any) -> Any:
    """NumPy's type for those of a number, of a buffer, or of an object that has DLPack only."""
    import numpy
    if isinstance(like, (int, float, complex)):
        return of_number(like).dtype
    try:
        return numpy.asarray(memoryview(like)).dtype
    except TypeError:
        memory = _native.memory_of(like)
    if memory.type_name in _NAMES:
        return dtype_of(_NAMES.index(memory.type_name))
    return numpy.dtype("bool" if memory.type_name == "bool" else f"V{memory.item_bytes}")


def empty_shared(comm: Any, shape: Any, dtype: Any) -> Any:
    """An array in memory that all ranks of the host can read. It keeps that memory alive."""
    import math

    import numpy
    kind = _numpy_type(dtype)
    if kind.hasobject:
        raise _errors.DatatypeError(f"empty: {kind} holds Python objects, which mean nothing in "
                                    "another process", comm.rank)
    try:
        extents = [shape] if hasattr(shape, "__index__") else list(shape)
        whole = [operator.index(extent) for extent in extents]
    except TypeError as error:
        raise _errors.ArgumentError(f"empty: the shape {shape!r} is neither an integer nor a "
                                    "sequence of integers", comm.rank) from error
    if any(extent < 0 for extent in whole):
        raise _errors.ArgumentError(f"empty: the shape {shape!r} has a negative extent", comm.rank)
    length_bytes = math.prod(whole) * kind.itemsize
    if length_bytes >= 2**63:
        raise _errors.ResourcesError(f"empty: an array of the shape {shape!r} has {length_bytes} "
                                     "bytes, more than any address space", comm.rank)
    return numpy.ndarray(whole, kind, memoryview(_native.SharedMemory(comm, length_bytes)))


def _numpy_type(dtype: Any) -> Any:
    """NumPy's type; "bfloat16" as well, which NumPy knows only once ml_dtypes is imported."""
    import numpy
    if dtype == "bfloat16":
        return dtype_of(_NAMES.index("bfloat16"))
    try:
        return numpy.dtype(dtype)
    except TypeError as error:
        raise _errors.DatatypeError(f"empty: {dtype!r} is no type of NumPy: {error}") from error


def has_known_fields() -> bool:
    """Whether arrays of NumPy lie in memory as the extension module reads them."""
    import numpy
    if numpy.__version__.split(".")[0] not in ("1", "2"):
        return False
    whole = numpy.arange(6, dtype="f4").reshape(2, 3)
    read_only = whole.copy()
    read_only.flags.writeable = False
    views = [whole, whole.T, whole[:, :2], whole[1], whole[:0], read_only, whole.astype(">f4"),
             numpy.array(5)]
    kinds = [numpy.ones((2, 1), kind) for kind in
             "? b B h H i I l L q Q e f d g F D G O S1 U1 V3 M8[s] m8[s]".split()]
    return all(_native.fields_of(array) == _fields(array) for array in views + kinds)


def _fields(array: Any) -> tuple[int, tuple[int, ...], bool, bool, bool, int, int]:
    dtype = array.dtype
    name = "uint8" if dtype.kind == "b" else dtype.name
    is_known = dtype.kind in "biufc" and name in _NAMES
    return (array.__array_interface__["data"][0], array.shape, array.flags.c_contiguous,
            array.flags.writeable, dtype.isnative, _NAMES.index(name) if is_known else -1,
            dtype.itemsize if is_known else 0)


def of_number(number: Any) -> Any:
    """An array of one element: int64, float64, complex128 or bool."""
    import numpy
    return numpy.asarray(number, dtype=numpy.int64 if type(number) is int else None)


def has_mask(array: Any) -> bool:
    """Whether it is a masked array with masked elements, which would count as all others."""
    import numpy
    return isinstance(array, numpy.ma.MaskedArray) and numpy.ma.is_masked(array)


def of_scalar(scalar: Any) -> Any:
    """An array of one element, of a scalar of NumPy."""
    import numpy
    return numpy.asarray(scalar)


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
            raise TypeError("NumPy's bfloat16 needs the package ml_dtypes") from error
        return numpy.dtype(ml_dtypes.bfloat16)
    if name in ("byte", "a pair"):
        raise TypeError(f"a function as operator does not take elements of type {name}")
    return numpy.dtype(name)


def apply(function: Callable[[Any, Any], Any], target: memoryview, left: memoryview,
          right: memoryview, number: int) -> None:
    """target = function(left, right), for the library. It uses the memory again afterwards, so a
    function that may keep its arrays gets copies, and nothing here is kept by an exception."""
    import numpy
    views = (left, right, target)
    arrays: list[Any] = []
    try:
        dtype = dtype_of(number)
        arrays += [numpy.frombuffer(view, dtype) for view in views]
        if type(function) is numpy.ufunc and _is_of_pairs(function):
            function(arrays[0], arrays[1], out=arrays[2])
        else:
            result = function(arrays[0].copy(), arrays[1].copy())
            numpy.copyto(arrays[2], result, casting="same_kind")
    finally:
        arrays.clear()
        for view in views:
            view.release()


def why_no_operator(function: Any) -> Optional[str]:
    """A ufunc of one input would write to its second argument, and give a wrong result. Python's
    sum adds up its first argument alone, from the second one on."""
    import numpy
    if function is sum or function is numpy.sum:
        return "op is the function sum, which adds up one array; give the name 'sum'"
    if type(function) is not numpy.ufunc or (function.nargs == 3 and function.nout == 1):
        return None
    return (f"op is numpy.{function.__name__}, with {function.nargs - function.nout} inputs and "
            f"{function.nout} outputs; an operator has 2 and 1")


def _is_of_pairs(ufunc: Any) -> bool:
    """From two elements to one."""
    types: str = ufunc.types[0]  # for instance dd->d
    return ufunc.signature is None and len(types) == 5 and types.find("->") == 2


def on_bools(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function on truth values that lie in arrays of uint8."""
    def apply_to_bools(left: Any, right: Any) -> Any:
        import numpy
        result = numpy.empty(left.shape, bool)
        numpy.copyto(result, function(left.view(bool), right.view(bool)), casting="same_kind")
        return result
    return apply_to_bools


def type_number(name: Any) -> int:
    """The number of a type by its name, or by a type of NumPy."""
    text = name if isinstance(name, str) else str(getattr(name, "name", name))
    if text not in _NAMES:
        raise TypeError(f"{name!r} is none of {', '.join(_NAMES)}")
    return _NAMES.index(text)

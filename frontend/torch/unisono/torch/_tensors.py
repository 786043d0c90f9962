# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as the back end in Python gives them to the library, and torch's reductions. A
BadArgument says what is wrong with a tensor, and all ranks hear of it."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ._calls import BadArgument

_WORDS: dict[str, Any] = {
    "SUM": "sum", "AVG": "sum", "PREMUL_SUM": "sum", "PRODUCT": "prod", "MIN": "min", "MAX": "max",
    "BAND": "bitwise_and", "BOR": "bitwise_or", "BXOR": "bitwise_xor"}
_COMBINED: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum,
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor}
_NOT_DIVIDED = (torch.uint16, torch.uint32, torch.uint64)  # by torch


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Its values in host memory, in one piece: the tensor's own memory where that is possible."""
    if tensor.device.type == "meta" or tensor.layout != torch.strided:
        raise BadArgument(ValueError, f"a tensor on {tensor.device} of layout {tensor.layout} has "
                           "no dense values in host memory")
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().view(-1)


def result(tensor: torch.Tensor) -> torch.Tensor:
    """flat() of a tensor that takes a result."""
    if not tensor.is_contiguous() and torch._debug_has_internal_overlap(tensor) == 1:
        raise BadArgument(ValueError, "a tensor that takes a result has elements that share "
                          "memory, as after expand(); pass a clone()")
    return flat(tensor)


def moved(values: torch.Tensor) -> torch.Tensor:
    """For collectives that add nothing up: types that the library does not know as bytes."""
    return values if is_known(values.dtype) else values.view(torch.uint8)


def is_known(dtype: torch.dtype) -> bool:
    return (dtype in (torch.bool, torch.complex64, torch.complex128)
            or not dtype.is_complex and dtype.itemsize >= (2 if dtype.is_floating_point else 1))


def write(target: torch.Tensor, values: torch.Tensor) -> None:
    """Back to where the values of flat(target) come from."""
    if values.data_ptr() != target.data_ptr() or target.device.type != "cpu":
        target.detach().copy_(values.view(target.shape))


def only(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensor of a list that has one, as torch.distributed passes it. Callers of a ProcessGroup
    may pass others."""
    if len(tensors) != 1:
        raise BadArgument(ValueError, f"the call takes one tensor of this rank, not {len(tensors)}")
    return tensors[0]


def first_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The first tensor of a list that has one or more."""
    if not tensors:
        raise BadArgument(ValueError, "the call has no tensor of this rank")
    return tensors[0]


def pairs(outputs: Sequence[Any], inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Each input with its output."""
    first_of(inputs)
    if len(outputs) != len(inputs):
        raise BadArgument(ValueError, f"there are {len(outputs)} outputs for {len(inputs)} inputs")
    return list(zip(outputs, inputs))


def require_equal(tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.dtype != like.dtype:
            raise BadArgument(TypeError, "tensors have different types, "
                              f"{tensor.dtype} and {like.dtype}")
        if tensor.numel() != like.numel():
            raise BadArgument(ValueError, f"a tensor of this rank has {tensor.numel()} elements, "
                              f"another tensor has {like.numel()}")


def combine(word: str, values: torch.Tensor, more: torch.Tensor) -> None:
    """`values` with those of another tensor of this rank."""
    _COMBINED[word](values, more, out=values)


def copy_to_all(values: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """`values` may be one of them."""
    for tensor in tensors:
        if tensor is not values:
            tensor.detach().copy_(values.detach().reshape(tensor.shape))


def same_size(tensors: Sequence[torch.Tensor]) -> bool:
    return all(tensor.numel() == tensors[0].numel() for tensor in tensors)


def share_memory(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether two of them may have an element in common."""
    places = []
    for tensor in tensors:
        if tensor.layout == torch.strided and tensor.numel() > 0:
            last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
            begin = tensor.data_ptr()
            places.append((begin, begin + (last + 1) * tensor.element_size()))
    places.sort()
    return any(after[0] < before[1] for before, after in zip(places, places[1:]))


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    return (a.data_ptr() < b.data_ptr() + b.numel() * b.element_size()
            and b.data_ptr() < a.data_ptr() + a.numel() * a.element_size())


def operator(op: Any, tensor: torch.Tensor) -> Any:
    name = next((word for word in _WORDS if op == getattr(dist.ReduceOp, word)), None)
    if name is None:
        raise BadArgument(TypeError, f"the reduction {op} is unknown")
    dtype = tensor.dtype
    real = dtype.is_floating_point or dtype.is_complex
    is_wrong = (not is_known(dtype) or name.startswith("B") and real
                or name in ("MIN", "MAX") and dtype.is_complex
                or name == "AVG" and dtype == torch.bool
                or name == "PREMUL_SUM" and not real)
    if is_wrong:
        raise BadArgument(TypeError, f"{name} does not take tensors of type {dtype}")
    return _WORDS[name]


def prepared(op: Any, values: torch.Tensor) -> torch.Tensor:
    """The summands: with PREMUL_SUM the products with its factor."""
    if op != dist.ReduceOp.PREMUL_SUM:
        return values
    factor = op.__getstate__()[1]  # its only way to Python
    return values * (factor.to(values) if isinstance(factor, torch.Tensor) else factor)


def finish(op: Any, values: torch.Tensor, summands: int) -> None:
    """An average is the sum of so many tensors, divided."""
    if op == dist.ReduceOp.AVG and values.dtype in _NOT_DIVIDED:
        numbers = values.numpy()
        numbers //= summands
    elif op == dist.ReduceOp.AVG:
        is_real = values.is_floating_point() or values.is_complex()
        values.div_(summands, rounding_mode=None if is_real else "trunc")

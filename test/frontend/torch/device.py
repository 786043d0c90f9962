# SPDX-License-Identifier: BSD-3-Clause
"""A device of this machine without a GPU: tensors that torch knows to be on "npy", and that can be
made and copied only. Their values lie in tensors of their own, so code that takes their address as
one of host memory fails."""

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "npy"
copies = {"to host": 0, "to device": 0}


def _new(size, dtype):
    dtype = dtype or torch.get_default_dtype()
    tensor = torch._C._acc.create_empty_tensor(tuple(size), dtype)
    tensor.elements = torch.zeros(tuple(size), dtype=dtype)
    return tensor


def register():
    _setup_privateuseone_for_python_backend(NAME)

    @torch.library.impl("aten::empty.memory_format", "privateuseone")
    def _(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return _new(size, dtype)

    @torch.library.impl("aten::empty_strided", "privateuseone")
    def _(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
        return _new(size, dtype)

    @torch.library.impl("aten::_copy_from", "privateuseone")
    def _(source, target, non_blocking=False):
        if source.device.type == NAME:
            copies["to host"] += 1
        if target.device.type == NAME:
            copies["to device"] += 1
        getattr(target, "elements", target).copy_(getattr(source, "elements", source))
        return target

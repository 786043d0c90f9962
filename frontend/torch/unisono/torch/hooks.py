# SPDX-License-Identifier: BSD-3-Clause
"""Hooks for the gradients of DistributedDataParallel.

    from unisono.torch import hooks
    model.register_comm_hook(None, hooks.bfloat16_with_float32_sums)
"""

from typing import Any

import torch
import torch.distributed as dist

from ._python import PythonBackend


def bfloat16_with_float32_sums(
        group: Any,
        bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """Averages gradients that travel as bfloat16 and are added up as float32.

    Each rank adds up one part of the gradients of all ranks, in the order of ranks. It rounds the
    average once, and sends it to all. So a rank sends half of the bytes of an allreduce of float32,
    and the error does not grow with the number of ranks. An allreduce of bfloat16, as torch's
    `bf16_compress_hook` makes it, rounds after each addition.

    `group` is a process group of the back end "unisono", or None for the default one; TypeError for
    another back end. Returns a future of the bucket's buffer, which holds the average.
    """
    group = group if group is not None else dist.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL, torch puts one around it that checks arguments.
    backend = getattr(backend, "wrapped_pg", backend)
    if isinstance(backend, PythonBackend):
        work = backend.average_as_bfloat16(bucket.buffer())
    else:
        from . import _c10d  # type: ignore[attr-defined]
        work = _c10d.average_as_bfloat16(backend, bucket.buffer())
    average: torch.futures.Future[torch.Tensor] = work.get_future().then(
        lambda future: future.value()[0])
    return average

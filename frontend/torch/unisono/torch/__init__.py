# SPDX-License-Identifier: BSD-3-Clause
"""The back end "unisono" of torch.distributed, for tensors in host memory. Tensors of devices are
copied to host memory and back.

    torch.distributed.init_process_group("unisono")
    torch.distributed.init_process_group("cpu:unisono,cuda:nccl")

torch imports this module by itself and calls register(), unless TORCH_DEVICE_BACKEND_AUTOLOAD=0 is
set. Then `import unisono.torch` does it.
"""

from typing import Any

import torch
import torch.distributed as dist

_NAME = "unisono"


def _minor(version: str) -> list[str]:
    return version.split("+")[0].split(".")[:2]


def _create(options: Any, _: Any) -> Any:
    """The back end of a new group. torch.distributed calls it."""
    from . import _c10d  # type: ignore[attr-defined]
    if _minor(_c10d.torch_version) != _minor(torch.__version__):
        raise ImportError(
            f"unisono.torch was built for torch {_c10d.torch_version}, and this is torch "
            f"{torch.__version__}; build it anew: pip install --no-build-isolation "
            "--force-reinstall ./frontend/torch")
    return _c10d.create(options.store, options.group_rank, options.group_size, options.timeout)


def register() -> None:
    if dist.is_available() and _NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(_NAME, _create, extended_api=True, devices=["cpu", "cuda"])


register()

# SPDX-License-Identifier: BSD-3-Clause
"""Tensors in memory that the other ranks of the host can read, for the back end in Python. So long
reductions copy once less. A block may outlive its group."""

import os
import threading
import weakref
from typing import Any

import torch
import torch.distributed as dist
import unisono

# Freed blocks that are kept for requests of the same size: new ones are made by system calls.
_MOST_KEPT = 8


class Blocks:
    """Those of one group that are free. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collection of garbage may free a block within it
        self._kept: list[Any] = []
        self._process = os.getpid()

    def tensor(self, comm: Any, count: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of `count` elements; in ordinary memory if the ranks can share none."""
        if self._process != os.getpid():
            raise dist.DistBackendError("unisono: an allocation: a forked child has no part in the "
                                        "group of its parent")
        block = self._take(count * dtype.itemsize)
        try:
            if block is None:
                block = comm.empty(count * dtype.itemsize, "uint8")
        except unisono.Error:
            return torch.empty(count, dtype=dtype)
        # torch keeps the view, so the block is free when no tensor has its memory any more.
        view = block[:]
        weakref.finalize(view, self._give_back, block).atexit = False
        return torch.from_numpy(view).view(dtype)

    def _take(self, length_bytes: int) -> Any:
        with self._lock:
            for index, block in enumerate(self._kept):
                if len(block) == length_bytes:
                    return self._kept.pop(index)
        return None

    def _give_back(self, block: Any) -> None:
        if self._process != os.getpid():
            return
        with self._lock:
            if len(self._kept) < _MOST_KEPT:
                self._kept.append(block)

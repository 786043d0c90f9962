# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group make their job over a store of torch, in Python."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
import unisono

_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-4, 2e-2  # seconds between two questions to the store


def join(store: Any, rank: int, size: int, timeout: datetime.timedelta,
         has_ended: Callable[[], bool]) -> unisono.Communicator:
    """The communicator of a group. A value in the store is deleted when all ranks have read it."""
    round_number = 0

    def allgather(own: bytes) -> bytes:
        nonlocal round_number
        keys = [f"unisono/python/{round_number}/{each}" for each in range(size)]
        store.set(keys[rank], own.hex())
        _wait(store, keys, rank, timeout, has_ended)
        every = b"".join(bytes.fromhex(store.get(key).decode()) for key in keys)
        # A rank that has written to this round has read the one before.
        if round_number > 0:
            store.delete_key(f"unisono/python/{round_number - 1}/{rank}")
        round_number += 1
        return every

    limit = min(timeout.total_seconds(), 24 * 3600.0)
    try:
        comm = unisono.init_with(rank, size, allgather, limit)
    except unisono.Error as error:
        raise dist.DistBackendError(str(error)) from error
    if store.add("unisono/python/ready", 1) >= size:
        for each in range(size):
            store.delete_key(f"unisono/python/{round_number - 1}/{each}")
        store.delete_key("unisono/python/ready")
    return comm


def _wait(store: Any, keys: list[str], rank: int, timeout: datetime.timedelta,
          has_ended: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not store.check(keys):  # a wait in a TCPStore logs warnings when it is over
        elapsed = time.monotonic() - begin
        if has_ended():
            raise dist.DistBackendError("unisono: the group has been aborted")
        if elapsed < timeout.total_seconds():
            time.sleep(min(max(elapsed / 4, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            continue
        missing = [str(each) for each, key in enumerate(keys) if not store.check([key])]
        raise dist.DistBackendError(
            f"unisono: rank {rank} waited {timeout} for the group to start; missing are ranks "
            f"{', '.join(missing)}")

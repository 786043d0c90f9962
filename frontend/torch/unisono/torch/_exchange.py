# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group make their job over a store of torch, in Python."""

import datetime
import secrets
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
    try:
        if store.add("unisono/python/ready", 1) >= size:
            for each in range(size):
                store.delete_key(f"unisono/python/{round_number - 1}/{each}")
            store.delete_key("unisono/python/ready")
    except dist.DistError:
        pass  # the rank that has the store has ended, with all that is in it
    return comm


def _value(store: Any, key: str) -> str:
    """Empty: there is none."""
    return store.get(key).decode() if store.check([key]) else ""


class _Session:
    """As session.hpp of the compiled back end: a part of the store without values of ranks that an
    elastic agent has started earlier."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._number = secrets.token_hex(16)
        self._begin = time.monotonic()
        self._name = ""

    def open(self) -> Any:
        if self._size == 1:
            self._name = self._number
        elif self._rank == 0:
            self._lead()
        else:
            self._follow()
        return dist.PrefixStore(self._name, self._store)

    def _lead(self) -> None:
        others, proposed, count = range(1, self._size), [""], 0
        while True:
            numbers = [_value(self._store, f"unisono/python/hello/{rank}") for rank in others]
            if all(numbers) and numbers != proposed:
                self._name, proposed = f"{self._number}.{count}", numbers
                count += 1
                self._store.set("unisono/python/proposal", " ".join([self._name, *numbers]))
            missing = [rank for rank in others if not self._name
                       or _value(self._store, f"unisono/python/answer/{rank}") != self._name]
            if not missing and numbers == proposed:
                break
            self._pause(missing)
        self._store.set("unisono/python/agreed", self._name)

    def _follow(self) -> None:
        own = [f"unisono/python/{what}/{self._rank}" for what in ("hello", "answer")]
        self._store.set(own[0], self._number)
        while True:
            name, *numbers = (_value(self._store, "unisono/python/proposal") or " ").split(" ")
            if numbers[self._rank - 1:self._rank] == [self._number] and name != self._name:
                self._name = name
                self._store.set(own[1], name)
            if self._name and _value(self._store, "unisono/python/agreed") == self._name:
                break
            self._pause([rank for rank in range(1, self._size)
                         if not self._store.check([f"unisono/python/hello/{rank}"])] or [0])
        for key in own:
            self._store.delete_key(key)

    def _pause(self, missing: list[int]) -> None:
        elapsed = time.monotonic() - self._begin
        if elapsed >= self._timeout.total_seconds():
            raise dist.DistBackendError(
                f"unisono: rank {self._rank} waited {self._timeout} for the group to start; "
                f"missing are ranks {', '.join(map(str, missing))}")
        time.sleep(min(max(elapsed / 4, _SHORTEST_PAUSE), _LONGEST_PAUSE))


def open_session(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    """All ranks of a group call it."""
    return _Session(store, rank, size, timeout).open()


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

# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group make their job over a store of torch, in Python."""

import datetime
import secrets
import time
from collections.abc import Callable
from typing import Any, Optional

import torch.distributed as dist
import unisono

_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-4, 2e-2  # seconds between two questions to the store


_TURN = 0.5  # seconds between two looks whether a rank has left


def departure_key(rank: int) -> str:
    return f"unisono/python/left/{rank}"


def join(store: Any, rank: int, size: int, timeout: datetime.timedelta,
         has_ended: Callable[[], bool],
         who_left: Callable[[], Optional[int]] = lambda: None) -> unisono.Communicator:
    """The communicator of a group. A value in the store is deleted when all ranks have read it.
    A wait ends when a rank has left."""
    round_number = 0

    def allgather(own: bytes) -> bytes:
        nonlocal round_number
        keys = [f"unisono/python/{round_number}/{each}" for each in range(size)]
        store.set(keys[rank], own.hex())
        _wait(store, keys, rank, timeout, has_ended, who_left)
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


def _values(store: Any, keys: list[str]) -> list[str]:
    """Empty: not all of them are there."""
    return [value.decode() for value in store.multi_get(keys)] if store.check(keys) else []


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
        return dist.distributed_c10d.PrefixStore(self._name, self._store)

    def _hello(self, rank: int) -> str:
        return f"unisono/python/hello/{rank}"

    def _lead(self) -> None:
        keys, proposed, count = [self._hello(rank) for rank in range(1, self._size)], [""], 0
        self._store.set("unisono/python/agreed", "")
        while True:
            hellos = _values(self._store, keys)
            numbers = [hello.split(" ")[0] for hello in hellos]
            if numbers and all(numbers) and numbers != proposed:
                self._name, proposed = f"{self._number}.{count}", numbers
                count += 1
                self._store.set("unisono/python/proposal", " ".join([self._name, *numbers]))
            elif hellos == [f"{number} {self._name}" for number in proposed]:
                break
            self._pause()
        self._store.set("unisono/python/agreed", self._name)

    def _follow(self) -> None:
        hello, own = self._hello(self._rank), f"{self._number} "
        keys = ["unisono/python/proposal", "unisono/python/agreed", hello]
        self._store.set(hello, own)
        while True:
            if seen := _values(self._store, keys):
                name, *numbers = seen[0].split(" ")
                if numbers[self._rank - 1:self._rank] == [self._number]:
                    self._name, own = name, f"{self._number} {name}"
                if self._name and seen[1] == self._name:
                    break
                if seen[2] != own:
                    self._store.set(hello, own)
            self._pause()
        if seen[2] == own:
            self._store.set(hello, "")

    def _missing(self) -> list[int]:
        """Ranks that have not come, or not answered to the proposal that this one has answered."""
        has_rank_0 = self._rank == 0 or self._store.check(["unisono/python/proposal"])
        ranks = [] if has_rank_0 else [0]
        for rank in range(1, self._size):
            hello = "".join(_values(self._store, [self._hello(rank)]))
            if rank != self._rank and hello.split(" ")[1:] != [self._name]:
                ranks.append(rank)
        return ranks or [0][:self._rank]

    def _pause(self) -> None:
        elapsed = time.monotonic() - self._begin
        if elapsed >= self._timeout.total_seconds() and (missing := self._missing()):
            raise dist.DistBackendError(
                f"unisono: rank {self._rank} waited {self._timeout} for the group to start; "
                f"missing are ranks {', '.join(map(str, missing))}")
        time.sleep(min(max(elapsed / 4, _SHORTEST_PAUSE), _LONGEST_PAUSE))


def open_session(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    """All ranks of a group call it."""
    return _Session(store, rank, size, timeout).open()


def _wait(store: Any, keys: list[str], rank: int, timeout: datetime.timedelta,
          has_ended: Callable[[], bool], who_left: Callable[[], Optional[int]]) -> None:
    begin = time.monotonic()
    next_look = _TURN
    while not store.check(keys):  # a wait in a TCPStore logs warnings when it is over
        elapsed = time.monotonic() - begin
        if has_ended():
            raise dist.DistBackendError("unisono: the group has been aborted")
        if elapsed >= next_look:
            next_look = elapsed + _TURN
            gone = who_left()
            # It writes its last value before it says that it has left.
            if gone is not None and not store.check(keys):
                raise dist.DistBackendError(f"unisono: rank {gone} has left the group")
        if elapsed < timeout.total_seconds():
            time.sleep(min(max(elapsed / 4, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            continue
        missing = [str(each) for each, key in enumerate(keys) if not store.check([key])]
        raise dist.DistBackendError(
            f"unisono: rank {rank} waited {timeout} for the group to start; missing are ranks "
            f"{', '.join(missing)}")

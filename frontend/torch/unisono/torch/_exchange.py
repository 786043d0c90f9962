# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a group make their job over a store of torch, in Python."""

import datetime
import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
import torch.distributed as dist
import unisono

_TCPStore: Any = torch._C._distributed_c10d.TCPStore  # torch's types have not all of it
_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-4, 2e-2  # seconds between two questions to the store


_TURN = 0.5  # seconds between two looks whether a rank has left
# Seconds in which the library notices the end of a rank that hosted the store.
_NOTICING = 1.0
# Seconds for a connection to a store. The server of a TCPStore asks the DNS for the name of each
# address that connects. Meanwhile it serves nobody, and a lost answer costs 5 s.
_PATIENCE = 0.1
_MOST_TO_CONNECT = 10


class Peer(NamedTuple):
    """The other rank of a job of two that exchange messages, by its number in the group."""
    message: str  # for errors: "unisono: recv of rank 1 from rank 2"
    prefix: str  # of the job's keys in the store of the group
    rank: int
    may_leave: bool  # a rank that has left the group is not waited for
    why_lost: Callable[[], str]  # empty: it is not lost, as far as is known


class _Connection:
    """The further connection to one store, of all groups that have it."""

    def __init__(self, base: Any) -> None:
        self._base = base
        self._changed = threading.Condition()
        self._made: Any = None
        self._thread: Optional[threading.Thread] = None
        self._begin = 0.0
        self.users = 0

    def get(self, look: Callable[[], None]) -> Any:
        """None: it is not made yet, and torch is slow."""
        with self._changed:
            if self._thread is None:
                self._begin = time.monotonic()
                self._thread = threading.Thread(target=self._connect, daemon=True)
                self._thread.start()
        while self._made is None and time.monotonic() - self._begin < _PATIENCE:
            with self._changed:
                self._changed.wait_for(lambda: self._made is not None, _LONGEST_PAUSE)
            if self._made is None:
                look()
        return self._made

    def _connect(self) -> None:
        try:
            made = _connected_again(self._base)
        except Exception:  # a store that has ended fails there, too
            made = self._base
        with self._changed:
            self._made = made
            self._changed.notify_all()

    def end(self) -> None:
        if self._thread is not None:
            self._thread.join()


def _connected_again(base: Any) -> Any:
    """The end of the last group waits for it. A store's own limit may be 30 min."""
    if not isinstance(base, _TCPStore):
        return base.clone()
    limit = min(base.timeout, datetime.timedelta(seconds=_MOST_TO_CONNECT))
    made = _TCPStore(base.host, base.port, None, False, limit, wait_for_workers=False,
                         use_libuv=getattr(base, "libuvBackend", None))
    made.set_timeout(base.timeout)
    return made


class StoreConnection:
    """One further connection to the store of a group, for its threads of messages. A thread of the
    program may wait for long in the group's own connection, which serves one thread at a time. No
    thread waits in this one. All groups of the process that have the same store share it. While
    torch is slow to make it, or if it cannot be made, the group's own one takes its place. Any
    thread."""

    _lock = threading.Lock()  # for the next one
    _all: dict[tuple[int, int], _Connection] = {}  # by process and store, which they keep alive

    def __init__(self, base: Any, prefix: str) -> None:
        """The group's keys begin with `prefix`. `base`: without_prefixes() of the store."""
        self._prefix = prefix
        self.own = dist.distributed_c10d.PrefixStore(prefix, base)
        self._key = (os.getpid(), id(base))
        self._connection: Optional[_Connection] = None
        if hasattr(base, "clone"):
            with self._lock:
                self._connection = self._all.setdefault(self._key, _Connection(base))
                self._connection.users += 1

    def get(self, look: Callable[[], None]) -> Any:
        """The first call of the process makes it. `look` is called meanwhile, and raises to end
        it."""
        connection = self._connection
        made = connection.get(look) if connection is not None else None
        return self.own if made is None else dist.distributed_c10d.PrefixStore(self._prefix, made)

    def release(self) -> None:
        """The group needs it no longer. Ends the connection if no other group has it."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None or self._key[0] != os.getpid():
                return
            connection.users -= 1
            if connection.users > 0:
                return
            del self._all[self._key]
        connection.end()


def without_prefixes(store: Any) -> Any:
    """The store without the prefixes that torch has given it."""
    while isinstance(store, dist.distributed_c10d.PrefixStore):
        store = store.underlying_store
    return store


def departure_key(rank: int) -> str:
    return f"unisono/python/left/{rank}"


def join(store: Any, rank: int, size: int, timeout: datetime.timedelta,
         has_ended: Callable[[], bool], peer: Optional[Peer] = None,
         end: Optional[float] = None) -> unisono.Communicator:
    """The communicator of a group. A value in the store is deleted when all ranks have read it.
    A wait ends when the peer is lost, and the first one at `end`."""
    round_number, prefix = 0, peer.prefix if peer is not None else ""

    def allgather(own: bytes) -> bytes:
        try:
            return exchange(own)
        except dist.DistBackendError:
            raise
        except dist.DistError:
            if why := _late_loss(peer, has_ended):
                raise dist.DistBackendError(why) from None
            raise

    def exchange(own: bytes) -> bytes:
        nonlocal round_number
        keys = [f"{prefix}unisono/python/{round_number}/{each}" for each in range(size)]
        store.set(keys[rank], own.hex())
        _wait(store, keys, rank, timeout, has_ended, peer, end if round_number == 0 else None)
        every = b"".join(bytes.fromhex(store.get(key).decode()) for key in keys)
        # A rank that has written to this round has read the one before.
        if round_number > 0:
            store.delete_key(f"{prefix}unisono/python/{round_number - 1}/{rank}")
        round_number += 1
        return every

    limit = min(timeout.total_seconds(), 24 * 3600.0)
    try:
        comm = unisono.init_with(rank, size, allgather, limit)
    except unisono.Error as error:
        raise dist.DistBackendError(str(error)) from error
    try:
        if store.add(f"{prefix}unisono/python/ready", 1) >= size:
            for each in range(size):
                store.delete_key(f"{prefix}unisono/python/{round_number - 1}/{each}")
            store.delete_key(f"{prefix}unisono/python/ready")
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

    def open(self) -> str:
        if self._size == 1:
            self._name = self._number
        elif self._rank == 0:
            self._lead()
        else:
            self._follow()
        return self._name

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


def open_session(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> str:
    """All ranks of a group call it. A prefix of keys for which there are no values yet, in whatever
    part of the store they lie."""
    return _Session(store, rank, size, timeout).open()


def _late_loss(peer: Optional[Peer], has_ended: Callable[[], bool]) -> str:
    """After an error of the store, whose host may be the peer."""
    limit = time.monotonic() + _NOTICING
    while peer is not None and not has_ended() and time.monotonic() < limit:
        if why := peer.why_lost():
            return f"{peer.message}: {why}"
        time.sleep(_LONGEST_PAUSE)
    return ""


def _require(peer: Peer, store: Any, key: str) -> None:
    if peer.may_leave and store.check([departure_key(peer.rank)]):
        why = f"rank {peer.rank} has left the group"
    else:
        why = peer.why_lost()
    # It writes its last value before it says that it has left.
    if why and not store.check([key]):
        raise dist.DistBackendError(f"{peer.message}: {why}")


def _wait(store: Any, keys: list[str], rank: int, timeout: datetime.timedelta,
          has_ended: Callable[[], bool], peer: Optional[Peer], end: Optional[float]) -> None:
    begin = time.monotonic()
    limit = timeout.total_seconds() if end is None else end - begin
    next_look = _TURN
    while not store.check(keys):  # a wait in a TCPStore logs warnings when it is over
        elapsed = time.monotonic() - begin
        if has_ended():
            raise dist.DistBackendError("unisono: the group has been aborted")
        if peer is not None and elapsed >= next_look:
            next_look = elapsed + _TURN
            _require(peer, store, keys[1 - rank])
        if elapsed < limit:
            time.sleep(min(max(elapsed / 4, _SHORTEST_PAUSE), _LONGEST_PAUSE))
            continue
        if peer is not None:
            raise dist.DistBackendError(
                f"{peer.message}: timed out after {timeout}: rank {peer.rank} has not begun its "
                "part of the message")
        missing = [str(each) for each, key in enumerate(keys) if not store.check([key])]
        raise dist.DistBackendError(
            f"unisono: rank {rank} waited {timeout} for the group to start; missing are ranks "
            f"{', '.join(missing)}")

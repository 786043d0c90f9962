# SPDX-License-Identifier: BSD-3-Clause
"""Messages from one rank to another, in their order, for the back end in Python. Each pair of ranks
and direction has a job of its own, made at its first message. A message is two broadcasts of the
sender: its tag and length, then its bytes. A thread of the pair makes them, so a message waits for
no collective."""

import datetime
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Optional

import torch
import torch.distributed as dist

from ._calls import BadArgument, Calls, Work
from ._exchange import Peer, StoreConnection

# A message of at most this length is copied, and its send is complete at once, as with Gloo's
# sockets. Ranks may so send to each other before they receive.
_BUFFERED_BYTES = 64 * 1024


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise ValueError(f"unisono: a message is a dense tensor, not one on {tensor.device} of "
                         f"layout {tensor.layout}")
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().view(-1).view(
        torch.uint8)


class _Channel:
    """One direction between two ranks, as one of them sees it."""

    def __init__(self, store: StoreConnection, group: Calls, source: int, target: int, rank: int,
                 timeout: datetime.timedelta) -> None:
        is_source = rank == source
        self._name = (f"send from rank {source} to rank {target}" if is_source
                      else f"recv of rank {target} from rank {source}")
        other = target if is_source else source
        # A rank that leaves takes no messages any more, but those that it has sent are to come.
        peer = Peer(f"unisono: {self._name}", f"unisono/{source}-to-{target}/", other, is_source,
                    lambda: group.why_lost(other))

        def connect() -> Any:
            def look() -> None:
                if self.calls.has_ended:
                    raise dist.DistBackendError(f"{peer.message}: the group has been aborted")
            return store.get(look)

        self.calls = Calls(connect, int(not is_source), 2, timeout, peer, (source, target))
        self.is_receiver = rank == target
        self._source = source
        self._lock = threading.Lock()  # for the next two: no tag is in both
        self._posted: list[tuple[int, torch.Tensor, Work]] = []
        self._early: list[tuple[int, torch.Tensor]] = []  # that nobody waits for yet
        self._error: Optional[BaseException] = None  # of a buffered send

    def _submit(self, tensor: torch.Tensor, operation: Callable[[], None]) -> Any:
        options = SimpleNamespace(asyncOp=True, timeout=self.calls.timeout)
        return self.calls.submit(self._name, options, [tensor], operation)

    def send(self, tensor: torch.Tensor, tag: int) -> Any:
        if self._error is not None:
            raise dist.DistBackendError(str(self._error)) from self._error
        data = _bytes_of(tensor)
        is_buffered = data.numel() <= _BUFFERED_BYTES
        if is_buffered:
            data = data.clone()

        def run() -> None:
            self.calls.comm.broadcast(torch.tensor([tag, data.numel()]), 0)
            if data.numel() > 0:
                self.calls.comm.broadcast(data, 0)

        work = self._submit(tensor, run)
        if not is_buffered:
            return work
        work.get_future().add_done_callback(lambda _: self._note(work.error))
        sent = Work([tensor])
        sent.complete(None)
        return sent

    def _note(self, error: Optional[Exception]) -> None:
        self._error = self._error or error

    def receive(self, tensor: torch.Tensor, tag: int) -> Any:
        _bytes_of(tensor[:0] if tensor.dim() > 0 else tensor)  # refuses what cannot be received
        work = Work([tensor])

        def run() -> None:  # the messages of other receives on the way are theirs
            while not work.is_completed():
                self._receive_one()

        def note(error: Optional[Exception]) -> None:
            if error is None:
                return
            with self._lock:
                self._posted = [each for each in self._posted if each[2] is not work]
            if not work.is_completed():
                work.complete(error)

        with self._lock:
            data = self._take_early(tag)
            if data is None:
                served = self._submit(tensor, run)
                self._posted.append((tag, tensor, work))
        if data is None:
            served.get_future().add_done_callback(lambda _: note(served.error))
        else:
            self._deliver(data, tensor, work)
        return work

    def _receive_one(self) -> None:
        """To the first receive of its tag, or to the early ones."""
        header = torch.empty(2, dtype=torch.int64)
        self.calls.comm.broadcast(header, 0)
        tag, length = header.tolist()
        data = torch.empty(length, dtype=torch.uint8)
        if length > 0:
            self.calls.comm.broadcast(data, 0)
        with self._lock:
            found = next((each for each in self._posted if each[0] == tag), None)
            if found is None:
                self._early.append((tag, data))
            else:
                self._posted = [each for each in self._posted if each is not found]
        if found is not None:
            self._deliver(data, *found[1:])

    def _deliver(self, data: torch.Tensor, tensor: torch.Tensor, work: Work) -> None:
        length = tensor.numel() * tensor.element_size()
        error: Optional[Exception] = None
        if data.numel() == length:
            tensor.detach().copy_(data.view(tensor.dtype).view(tensor.shape))
        else:
            error = dist.DistBackendError(f"unisono: recv: rank {self._source} has sent "
                                          f"{data.numel()} bytes, and the tensor has {length}")
        work.complete(error)

    def _take_early(self, tag: int) -> Optional[torch.Tensor]:
        for index, (sent_tag, data) in enumerate(self._early):
            if sent_tag == tag:
                del self._early[index]
                return data
        return None

    def finish(self) -> None:
        """Waits until what was sent has been taken; nobody waits for a receive any more."""
        if self.is_receiver:
            self.calls.abort()
        self.calls.finish()


class Messages:
    """Those of one rank in one group."""

    def __init__(self, store: StoreConnection, group: Calls, rank: int, size: int,
                 timeout: datetime.timedelta) -> None:
        self._store, self._group = store, group
        self._rank, self._size = rank, size
        self.timeout = timeout
        self._is_closing = False
        self._lock = threading.Lock()
        self._channels: dict[tuple[int, int], _Channel] = {}

    def _between(self, source: int, target: int) -> _Channel:
        peer = target if source == self._rank else source
        if not 0 <= peer < self._size or peer == self._rank:
            raise ValueError(f"unisono: rank {self._rank} cannot exchange messages with rank "
                             f"{peer} of {self._size} ranks")
        with self._lock:
            if (source, target) not in self._channels:
                self._channels[source, target] = _Channel(self._store, self._group, source, target,
                                                          self._rank, self.timeout)
            found = self._channels[source, target]
            if self._is_closing:
                found.calls.stop_accepting()
        found.calls.timeout = self.timeout
        return found

    def send(self, tensor: torch.Tensor, target: int, tag: int) -> Any:
        return self._between(self._rank, target).send(tensor, tag)

    def receive(self, tensor: torch.Tensor, source: int, tag: int) -> Any:
        return self._between(source, self._rank).receive(tensor, tag)

    def _every(self) -> list[_Channel]:
        with self._lock:
            return list(self._channels.values())

    def count_under_way(self) -> int:
        """Messages that have been sent, and not been taken."""
        return sum(each.calls.pending for each in self._every() if not each.is_receiver)

    def stop_accepting(self) -> None:
        self._is_closing = True
        for channel in self._every():
            channel.calls.stop_accepting()

    def abort(self) -> None:
        for channel in self._every():
            channel.calls.abort()

    def finish(self) -> None:
        for channel in self._every():
            channel.finish()

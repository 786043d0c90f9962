# SPDX-License-Identifier: BSD-3-Clause
"""Messages from one rank to another, in their order, for the back end in Python. Each pair of ranks
and direction has a job of its own, made at its first message. A message is two broadcasts of the
sender: its tag and length, then its bytes. A thread of the pair makes them, so a message waits for
no collective."""

import datetime
import threading
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(eq=False)
class _Receipt:
    """A receive that waits for its message."""

    tag: int
    tensor: torch.Tensor
    work: Work


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
        self._posted: list[_Receipt] = []
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
        receipt = _Receipt(tag, tensor, Work([tensor]))
        with self._lock:
            data = self._take_early(tag)
            if data is None:
                served, uncalled = self._serve(receipt)
                self._posted.append(receipt)
        if data is None:
            self._follow(receipt, served, uncalled)
        else:
            receipt.work.complete(self._put(data, tensor))
        return receipt.work

    def _serve(self, receipt: _Receipt) -> tuple[Any, list[Any]]:
        """Takes messages until this receive has ended, or one that has callbacks. These run after
        the turn on the communicator: they may wait for other messages of this channel. The list
        then has the future that runs them."""
        uncalled: list[Any] = []

        def run() -> None:  # the messages of other receives on the way are theirs
            while not uncalled and self._is_posted(receipt):
                self._receive_one(uncalled)

        return self._submit(receipt.tensor, run), uncalled

    def _follow(self, receipt: _Receipt, served: Any, uncalled: list[Any]) -> None:
        """When it has been served: the callbacks, and another thread goes on beside them."""
        def after(_: Any) -> None:
            if served.error is not None:
                self._give_up(receipt, served.error)
            elif self._is_posted(receipt):
                self._go_on(receipt)
            for future in uncalled:
                future.set_result(None)

        served.get_future().add_done_callback(after)

    def _go_on(self, receipt: _Receipt) -> None:
        try:
            served, uncalled = self._serve(receipt)
        except dist.DistBackendError as error:  # the group has been shut down
            self._give_up(receipt, error)
        else:
            self._follow(receipt, served, uncalled)

    def _is_posted(self, receipt: _Receipt) -> bool:
        with self._lock:
            return receipt in self._posted

    def _give_up(self, receipt: _Receipt, error: Exception) -> None:
        with self._lock:
            is_posted = receipt in self._posted
            if is_posted:
                self._posted.remove(receipt)
        if is_posted:
            receipt.work.complete(error)

    def _receive_one(self, uncalled: list[Any]) -> None:
        """To the first receive of its tag, or to the early ones."""
        header = torch.empty(2, dtype=torch.int64)
        self.calls.comm.broadcast(header, 0)
        tag, length = header.tolist()
        data = torch.empty(length, dtype=torch.uint8)
        if length > 0:
            self.calls.comm.broadcast(data, 0)
        with self._lock:
            found = next((each for each in self._posted if each.tag == tag), None)
            if found is None:
                self._early.append((tag, data))
            else:
                self._posted.remove(found)
        if found is None:
            return
        future = found.work.end(self._put(data, found.tensor))
        if future is not None:
            uncalled.append(future)

    def _put(self, data: torch.Tensor, tensor: torch.Tensor) -> Optional[Exception]:
        length = tensor.numel() * tensor.element_size()
        if data.numel() != length:
            return dist.DistBackendError(f"unisono: recv: rank {self._source} has sent "
                                         f"{data.numel()} bytes, and the tensor has {length}")
        try:
            tensor.detach().copy_(data.view(tensor.dtype).view(tensor.shape))
        except RuntimeError as error:  # of torch: the channel goes on
            return error
        return None

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

    @staticmethod
    def _message_of(tensors: list[torch.Tensor]) -> torch.Tensor:
        if len(tensors) != 1:
            raise ValueError(f"unisono: a message is one tensor, not {len(tensors)}")
        return tensors[0]

    def send(self, tensors: list[torch.Tensor], target: int, tag: int) -> Any:
        return self._between(self._rank, target).send(self._message_of(tensors), tag)

    def receive(self, tensors: list[torch.Tensor], source: int, tag: int) -> Any:
        return self._between(source, self._rank).receive(self._message_of(tensors), tag)

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

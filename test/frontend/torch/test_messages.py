# SPDX-License-Identifier: BSD-3-Clause
"""Messages: their first connection, lost ranks, late ranks, and what a profiler shows of them."""

import datetime
import os
import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist
import unisono
from jobs import run
from torch.profiler import ProfilerActivity, profile

KINDS = ["compiled", "python"]
GOOD = (4,)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", request.param)
    return request.param


def lost(path):
    """Rank 2 ends without a message. Whatever waits for it would do so for two minutes."""
    dist.barrier()
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if dist.get_rank() == 1:
        sent = dist.isend(torch.ones(100_000), 2)
        dist.isend(torch.ones(GOOD), 2).wait()  # which the end of the group does not wait for
        with pytest.raises(dist.DistBackendError, match="recv of rank 1 from rank 2: rank 2 is"):
            dist.recv(torch.ones(GOOD), 2)
        with pytest.raises(dist.DistBackendError, match="send from rank 1 to rank 2: rank 2 is"):
            sent.wait()
        dist.destroy_process_group()
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    while not path.exists():  # the rank that hosts the store stays
        time.sleep(0.01)
    return True


def expect_complete(function, tmp_path, ranks):
    """Some ranks kill themselves, so the job has no result; the file says that all was right."""
    with pytest.raises(unisono.SpawnError, match="killed by signal 9"):
        run(function, tmp_path, ranks, tmp_path / "complete")
    assert (tmp_path / "complete").exists()


def test_a_lost_rank_is_not_waited_for(tmp_path, kind):
    expect_complete(lost, tmp_path, 3)


def two_lost(path):
    """Two ranks end without a message. Whatever waits for the second one would do so for long."""
    dist.barrier()
    if dist.get_rank() in (1, 3):
        os.kill(os.getpid(), signal.SIGKILL)
    if dist.get_rank() == 2:
        for lost_rank in (3, 1, 3):
            with pytest.raises(dist.DistBackendError, match=f": rank {lost_rank} is lost"):
                dist.recv(torch.ones(GOOD), lost_rank)
            with pytest.raises(dist.DistBackendError, match=f": rank {lost_rank} is lost"):
                dist.isend(torch.ones(100_000), lost_rank).wait()
        dist.destroy_process_group()
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    while not path.exists():
        time.sleep(0.01)
    return True


def test_none_of_two_lost_ranks_is_waited_for(tmp_path, kind):
    expect_complete(two_lost, tmp_path, 4)


def late():
    group = dist.new_group([1, 2], timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() == 1:
        with pytest.raises(dist.DistBackendError,
                           match="recv of rank 0 from rank 1: timed out .* rank 1 has not begun"):
            dist.recv(torch.ones(GOOD), 2, group=group)
    dist.barrier()
    return True


def test_a_late_rank_is_named_by_its_number_in_the_group(tmp_path, kind):
    assert run(late, tmp_path, 3) == [True] * 3


def late_later():
    group = dist.new_group([1, 2], timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() == 1:
        dist.send(torch.ones(GOOD), 2, group=group)
    if dist.get_rank() == 2:
        dist.recv(torch.ones(GOOD), 1, group=group)
        with pytest.raises(dist.DistBackendError, match="rank 1 timed out.*not called by rank 0"):
            dist.recv(torch.ones(GOOD), 1, group=group)
    dist.barrier()
    return True


def test_a_late_rank_of_an_open_channel(tmp_path, kind):
    assert run(late_later, tmp_path, 3) == [True] * 3


def answered_in_turn():
    """Both receives wait already when the first message comes. The second one is sent when the
    first has been answered."""
    first, second = torch.zeros(1), torch.zeros(1)
    if dist.get_rank() == 0:
        dist.barrier()
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.recv(first, 1, tag=9)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    else:
        works = [dist.irecv(second, 0, tag=2), dist.irecv(first, 0, tag=1)]
        dist.barrier()
        works[1].wait()
        dist.send(first, 0, tag=9)
        works[0].wait()
        assert (first.item(), second.item()) == (1.0, 2.0)
    dist.barrier()
    return True


def test_a_receive_ends_while_an_earlier_one_waits(tmp_path, kind):
    assert run(answered_in_turn, tmp_path, 2) == [True, True]


def callback_of_the_second():
    """The callback of a receive waits for an earlier one of the same channel."""
    tensors = [torch.zeros(1), torch.zeros(1)]
    if dist.get_rank() == 0:
        dist.barrier()
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    else:
        works = [dist.irecv(each, 0, tag=tag) for each, tag in zip(tensors, (2, 1))]
        both = works[1].get_future().then(lambda _: works[0].wait())
        dist.barrier()
        both.wait()
        assert tensors == [torch.tensor([2.0]), torch.tensor([1.0])]
    dist.barrier()
    return True


def test_a_callback_waits_for_an_earlier_receive(tmp_path, kind):
    assert run(callback_of_the_second, tmp_path, 2) == [True, True]


def nobody_sends():
    """The receives end together at the timeout of the group, and not one timeout after another."""
    count, limit = 12, 1.0
    group = dist.new_group(timeout=datetime.timedelta(seconds=limit))
    begin = time.monotonic()
    if dist.get_rank() == 1:
        works = [dist.irecv(torch.ones(GOOD), 0, group=group, tag=tag) for tag in range(count)]
        for work in works:
            with pytest.raises(dist.DistBackendError, match="from rank 0: timed out .* rank 0 has"):
                work.wait()
    elapsed = time.monotonic() - begin
    dist.barrier()
    return dist.get_rank() == 0 or limit <= elapsed < count * limit


def test_receives_that_nobody_sends_to_end_at_the_timeout(tmp_path, kind):
    assert run(nobody_sends, tmp_path, 2) == [True, True]


class SlowStore(dist.Store):
    """Its clone comes when `may_come` is set."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.may_come = inner, threading.Event()

    def clone(self):
        self.may_come.wait()
        return self.inner


def test_a_slow_connection_to_the_store_is_not_waited_for():
    exchange = pytest.importorskip("unisono.torch._exchange")
    inner = dist.HashStore()
    slow = SlowStore(inner)
    connections = [exchange.StoreConnection(slow, name) for name in ("first", "second")]
    for connection in connections:
        assert connection.get(lambda: None) is connection.own
    slow.may_come.set()
    for connection in connections:
        while connection.get(lambda: None) is connection.own:
            time.sleep(0.001)
        connection.get(lambda: None).set("key", "1")
        connection.release()
    assert inner.check(["first/key", "second/key"])
    assert not exchange.StoreConnection._all


def shown():
    tensor, peer = torch.ones(3), 1 - dist.get_rank()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        dist.all_reduce(tensor, async_op=True).wait()
        dist.all_reduce(tensor)
        dist.all_gather_into_tensor(torch.empty(6), tensor)
        works = [dist.isend(tensor, peer), dist.irecv(torch.empty(3), peer)]
        for work in works:
            work.wait()
    return sorted((event.key, event.count, event.input_shapes)
                  for event in profiled.key_averages(group_by_input_shape=True)
                  if "unisono" in event.key)


def test_a_profiler_shows_operations_with_their_shapes(tmp_path):
    rows = [("all_gather_single", 1),
            ("all_reduce", 1), ("all_reduce", 1), ("recv", 1), ("send", 1)]
    expected = [(f"unisono:{name}", count, [[3]]) for name, count in rows]
    assert run(shown, tmp_path, 2) == [expected] * 2

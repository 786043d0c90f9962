# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls, lost and late ranks: exceptions that say what happened, and no hang."""

import datetime
import gc
import os
import signal
import threading

import pytest
import torch
import torch.distributed as dist
import unisono
from jobs import run

GOOD = (4,)
WRONG = {
    "type": (lambda: dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND), TypeError, "BAND"),
    "elements": (lambda: dist.all_reduce(torch.ones(4).to(torch.float8_e4m3fn)), TypeError,
                 "loat8"),
    "multiple": (lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)), ValueError,
                 "no multiple"),
    "splits": (lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 1], [1, 1]),
               ValueError, "split sizes"),
    "own output": (lambda: dist.all_gather([torch.ones(3) for _ in range(dist.get_world_size())],
                                           torch.ones(4)), ValueError, "3 elements"),
    "outputs": (lambda: dist.gather(torch.ones(4), group_dst=dist.get_rank(), gather_list=[
        torch.ones(3) for _ in range(dist.get_world_size())]), ValueError, "3 elements"),
    "shared elements": (lambda: dist.all_reduce(torch.ones(1).expand(4)), ValueError, "clone"),
    "root": (lambda: dist.broadcast(torch.ones(4), 7), ValueError, "root"),
    "device": (lambda: back_end().allreduce([torch.ones(4, device="meta")],
                                            dist.AllreduceOptions()).wait(), ValueError,
               "host memory"),
}


def back_end():
    return dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))


def wrong_call(name):
    call, kind, text = WRONG[name]
    if dist.get_rank() == 1:
        with pytest.raises(kind, match=text):
            call()
    else:
        with pytest.raises(dist.DistBackendError, match=f"rank 1.*{text}"):
            dist.all_reduce(torch.ones(GOOD))
            dist.barrier()
    return True


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_on_every_rank(tmp_path, name):
    assert run(wrong_call, tmp_path, 2, name) == [True, True]


def refused_by_all(rounds):
    """All ranks make the same wrong call, blocking or not, and some come late to it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for number in range(rounds):
        for call, kind, text in WRONG.values():
            first = torch.full(GOOD, float(rank))
            dist.broadcast(first, 0)  # from which rank 0 goes on at once
            assert first.tolist() == [0.0] * 4
            with pytest.raises(kind, match=text):
                call()
            tensor = torch.ones(GOOD)
            dist.all_reduce(tensor)
            assert tensor.tolist() == [float(size)] * 4
        with pytest.raises(TypeError, match="BAND"):
            dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND, async_op=True).wait()
        works = [dist.all_reduce(each, async_op=True) for each in (torch.ones(1), torch.ones(2))]
        for work in works:
            work.wait()
        assert back_end().allocate_tensor(4, dtype=torch.float32,
                                          device=torch.device("cpu")).numel() == 4
    dist.barrier()
    return True


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_group_goes_on_after_a_call_that_all_ranks_have_refused(tmp_path, monkeypatch, kind,
                                                                  ranks):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(refused_by_all, tmp_path, ranks, 3) == [True] * ranks


def refused_by_some():
    """Rank 0 makes the call that others refuse, after a call that all have refused."""
    with pytest.raises(TypeError, match="BAND"):
        dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND)
    if dist.get_rank() == 0:
        with pytest.raises(dist.DistBackendError, match="rank [12].*BAND"):
            dist.all_reduce(torch.ones(GOOD))
    else:
        with pytest.raises(TypeError, match="BAND"):
            dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND)
    for _ in range(2):
        with pytest.raises(dist.DistBackendError, match="BAND"):
            dist.all_reduce(torch.ones(GOOD))
    return True


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_a_group_ends_after_a_call_that_some_ranks_have_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(refused_by_some, tmp_path, 3) == [True] * 3


def mismatch():
    with pytest.raises(dist.DistBackendError, match="rank"):
        dist.all_reduce(torch.ones(3 + dist.get_rank()))
        dist.barrier()
    return True


def test_different_lengths(tmp_path):
    assert run(mismatch, tmp_path, 2) == [True, True]


def killed():
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work = dist.all_reduce(torch.ones(GOOD), async_op=True)
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        work.wait()
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        dist.all_reduce(torch.ones(GOOD))
    return True


def test_a_killed_rank_is_named(tmp_path):
    with pytest.raises(unisono.SpawnError, match="killed by signal 9") as caught:
        run(killed, tmp_path, 3)
    assert caught.value.rank == 1


def late():
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() == 0:
        with pytest.raises(dist.DistBackendError,
                           match="rank 0 .* its timeout of 1000 ms.*not called by rank 1"):
            dist.all_reduce(torch.ones(GOOD), group=group)
    dist.barrier()
    if dist.get_rank() == 1:
        with pytest.raises(dist.DistBackendError, match="rank 0"):
            dist.all_reduce(torch.ones(GOOD), group=group)  # may have all that it needs of rank 0
            dist.all_reduce(torch.ones(GOOD), group=group)
    return True


def test_a_late_rank_ends_the_group_at_its_timeout(tmp_path):
    assert run(late, tmp_path, 2) == [True, True]


def message_of_another_length():
    if dist.get_rank() == 0:
        dist.send(torch.ones(5), 1)
    else:
        with pytest.raises(dist.DistBackendError, match="has sent 20 bytes.*has 16"):
            dist.recv(torch.ones(GOOD), 0)
        with pytest.raises(ValueError, match="cannot exchange"):
            dist.recv(torch.ones(GOOD), 1)
    return True


def test_messages_that_do_not_fit(tmp_path):
    assert run(message_of_another_length, tmp_path, 2) == [True, True]


def ended():
    work = dist.all_reduce(torch.ones(GOOD), async_op=True)
    work.wait()
    back_end().shutdown()
    with pytest.raises(dist.DistBackendError, match="shut down"):
        dist.all_reduce(torch.ones(GOOD))
    return True


def test_a_group_after_its_end(tmp_path):
    assert run(ended, tmp_path, 2) == [True, True]


def leaving():
    dist.all_reduce(torch.ones(100_000), async_op=True)  # nobody waits for it
    return dist.get_rank()


def test_the_end_with_operations_in_flight(tmp_path):
    assert run(leaving, tmp_path, 2) == [0, 1]


def left_early():
    """Rank 1 leaves at once. Whatever waits for it would do so for two minutes."""
    if dist.get_rank() == 1:
        return True
    sent = dist.isend(torch.ones(100_000), 1)
    buffered = dist.isend(torch.ones(GOOD), 1)  # which the end of the group does not wait for
    buffered.wait()
    with pytest.raises(dist.DistBackendError, match="rank 1 has left the group"):
        sent.wait()
    return True


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_a_rank_that_has_left_is_not_waited_for(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(left_early, tmp_path, 2) == [True, True]


def part_of_input():
    """Into a part of its own input, as optimizers of shards do."""
    size, rank = dist.get_world_size(), dist.get_rank()
    whole = torch.arange(2.0 * size)
    dist.reduce_scatter_tensor(whole[2 * rank:2 * rank + 2], whole)
    return whole[2 * rank:2 * rank + 2].tolist()


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_a_result_may_be_a_part_of_the_input(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(part_of_input, tmp_path, 3) == [[0.0, 3.0], [6.0, 9.0], [12.0, 15.0]]


def in_place_with_splits():
    rank = dist.get_rank()
    tensor, splits = torch.arange(3.0) + 10 * rank, [1, 2] if rank == 0 else [2, 1]
    dist.all_to_all_single(tensor, tensor, splits, splits)
    return tensor.tolist()


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_an_exchange_in_place_with_split_sizes(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(in_place_with_splits, tmp_path, 2) == [[0.0, 10.0, 11.0], [1.0, 2.0, 12.0]]


def forked():
    """In a child: no call, and an end without a wait for the parent's threads."""
    group, peer = dist.new_group(), 1 - dist.get_rank()
    dist.all_reduce(torch.ones(GOOD), group=group, async_op=True).wait()  # starts a thread
    for work in (dist.isend(torch.ones(GOOD), peer), dist.irecv(torch.ones(GOOD), peer)):
        work.wait()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (lambda: dist.all_reduce(torch.ones(GOOD), group=group, async_op=True),
                         lambda: dist.all_reduce(torch.ones(GOOD), group=group),
                         lambda: dist.barrier(), lambda: dist.isend(torch.ones(GOOD), peer),
                         lambda: dist.irecv(torch.ones(GOOD), peer)):
                with pytest.raises(dist.DistBackendError, match="child"):
                    call()
            del group
            dist.destroy_process_group()
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    tensor = torch.ones(GOOD)
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    dist.barrier()
    return os.waitstatus_to_exitcode(status), tensor.tolist()


def test_a_forked_child_has_no_part_in_the_group(tmp_path):
    assert run(forked, tmp_path, 2) == [(0, [2.0] * 4)] * 2


def forked_wait():
    """In a child: no wait for an operation of the parent, but for one that was complete."""
    group = dist.new_group()
    complete = dist.all_reduce(torch.ones(GOOD), group=group, async_op=True)
    complete.wait()
    if dist.get_rank() == 1:
        dist.barrier()
    tensor = torch.ones(GOOD)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    status = 0
    if dist.get_rank() == 0:  # and rank 1 has not called it yet
        child = os.fork()
        if child == 0:
            status = 1
            try:
                complete.wait()
                for call in (work.wait, work.get_future):
                    with pytest.raises(dist.DistBackendError, match="ALLREDUCE: a wait.*child"):
                        call()
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        dist.barrier()
    work.wait()
    return status, tensor.tolist()


def test_a_forked_child_does_not_wait_for_its_parent(tmp_path):
    assert run(forked_wait, tmp_path, 2) == [(0, [2.0] * 4)] * 2


def interrupted(reader, writer):
    dist.barrier()
    if dist.get_rank() == 0:
        main = threading.main_thread().ident
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            dist.barrier()
        os.write(writer, b".")
    else:
        os.read(reader, 1)
        with pytest.raises(dist.DistBackendError, match="rank 0"):
            dist.barrier()  # may have all that it needs of rank 0
            dist.barrier()
    return True


def test_control_c_ends_a_blocking_call(tmp_path):
    assert run(interrupted, tmp_path, 2, *os.pipe()) == [True, True]


def interrupted_wait():
    group = dist.new_group()
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(GOOD), group=group, async_op=True)
        main = threading.main_thread().ident
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            work.wait()
        dist.barrier()
        work.wait()
    else:
        dist.barrier()
        dist.all_reduce(torch.ones(GOOD), group=group)
    return True


def test_control_c_ends_a_wait_and_not_the_operation(tmp_path):
    assert run(interrupted_wait, tmp_path, 2) == [True, True]

# SPDX-License-Identifier: BSD-3-Clause
"""Calls that not every back end has: sparse tensors, messages from any rank, groups that shrink,
barriers that name the ranks which are missing."""

import datetime
import os
import pickle
import signal

import pytest
import torch
import torch.distributed as dist
import unisono
import versions
from jobs import run


def sparse():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for dense in ((), (3,)):
            places = torch.tensor([[0, rank + 1, rank + 1], [rank, 2, 2]])  # one twice
            values = torch.ones(3, *dense).to(dtype)
            mine = torch.sparse_coo_tensor(places, values, (size + 1, 5, *dense))
            total = sum(torch.sparse_coo_tensor(
                torch.tensor([[0, r + 1, r + 1], [r, 2, 2]]), values,
                (size + 1, 5, *dense)).to_dense() for r in range(size))
            dist.all_reduce(mine)
            assert torch.equal(mine.to_dense(), total)
            assert mine.is_coalesced()
    empty = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0), (4,))
    dist.all_reduce(empty)
    assert empty._nnz() == 0
    other = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4 + rank,))
    with pytest.raises(ValueError, match="another shape"):
        dist.all_reduce(other)
    return True


def test_sparse_tensors(tmp_path):
    assert run(sparse, tmp_path, 3) == [True] * 3


def uneven_lists():
    rank, size = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros(r + 1, 2) for r in range(size)]
    dist.all_gather(parts, torch.full((rank + 1, 2), float(rank)))
    assert all((part == r).all() for r, part in enumerate(parts))
    lists = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [torch.full((2,), rank + 0.5), torch.full((3,), rank + 0.25)])
    assert all((a == r + 0.5).all() and (b == r + 0.25).all() for r, (a, b) in enumerate(lists))
    return True


def test_lists_of_different_lengths(tmp_path):
    assert run(uneven_lists, tmp_path, 3) == [True] * 3


def from_any():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        heard = []
        for _ in range(2 * (size - 1)):
            tensor = torch.zeros(3)
            source = dist.recv(tensor, tag=7)
            assert (tensor == source).all()
            heard.append(source)
        assert sorted(heard) == sorted([*range(1, size)] * 2)
        named = torch.zeros(3)
        dist.recv(named, 1, tag=8)  # sent before those of tag 7
        assert (named == 10).all()
        last = torch.zeros(200_000)
        works = [dist.irecv(last, tag=9)]
        works[0].wait()
        assert (last == 2).all()
    else:
        if rank == 1:
            dist.send(torch.full((3,), 10.0), 0, tag=8)
        for _ in range(2):
            dist.send(torch.full((3,), float(rank)), 0, tag=7)
        if rank == 2:
            dist.send(torch.full((200_000,), 2.0), 0, tag=9)
    dist.barrier()
    return True


@pytest.mark.parametrize("ranks", [3, 8])
def test_messages_from_any_rank(tmp_path, ranks):
    assert run(from_any, tmp_path, ranks) == [True] * ranks


def nobody_sends():
    if dist.get_rank() == 0:
        group = dist.new_group(timeout=datetime.timedelta(milliseconds=300))
        with pytest.raises(dist.DistBackendError, match="no rank has sent a message with tag 5"):
            dist.recv(torch.zeros(1), tag=5, group=group)
    else:
        dist.new_group(timeout=datetime.timedelta(milliseconds=300))
    dist.barrier()
    return True


def test_a_receive_from_any_rank_ends_at_the_timeout(tmp_path):
    assert run(nobody_sends, tmp_path, 2) == [True, True]


def missing():
    rank = dist.get_rank()
    limit = datetime.timedelta(milliseconds=400)
    dist.monitored_barrier()
    if rank in (0, 3):
        text = ("Ranks 1, 2 failed to pass monitoredBarrier in 400 ms" if rank == 0
                else "Rank 3 successfully reached monitoredBarrier, but .* from rank 0")
        with pytest.raises(dist.DistBackendError, match=text):
            dist.monitored_barrier(timeout=limit, wait_all_ranks=True)
    dist.barrier()  # the group goes on
    group = dist.new_group()
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="Rank 1 failed to pass"):
            dist.monitored_barrier(group, timeout=limit)
    dist.barrier()
    return True


@pytest.mark.skipif(not versions.HAS_MONITORED_BARRIER, reason="this torch has it for Gloo only")
def test_a_monitored_barrier_names_the_missing_ranks(tmp_path):
    assert run(missing, tmp_path, 4) == [True] * 4


def shrinking(folder):
    rank = dist.get_rank()
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        dist.all_reduce(torch.ones(1))
    small = dist.shrink_group([1])
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor, group=small)
    assert tensor.item() == 0 + 2 + 3
    assert dist.get_world_size(small) == 3
    (folder / f"survivor-{rank}").touch()
    return True


def survivors_of(run_ranks, folder):
    with pytest.raises(unisono.SpawnError, match="killed by signal 9") as caught:
        run_ranks(shrinking, folder, 4, folder)
    assert caught.value.rank == 1
    return sorted(each.name for each in folder.glob("survivor-*"))


@pytest.mark.skipif(not versions.SHRINKS, reason="this torch has no shrink_group")
def test_survivors_shrink_their_group(tmp_path):
    assert survivors_of(run, tmp_path) == ["survivor-0", "survivor-2", "survivor-3"]


def aborted():
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2), group=group, async_op=True)
        backend.abort()
        with pytest.raises(dist.DistBackendError, match="aborted"):
            work.wait()
        with pytest.raises(dist.DistBackendError, match="aborted"):
            dist.all_reduce(torch.ones(2), group=group)
    dist.barrier()
    if dist.get_rank() == 1:
        with pytest.raises(dist.DistBackendError, match="rank 0"):
            dist.all_reduce(torch.ones(2), group=group)
            dist.all_reduce(torch.ones(2), group=group)
    dist.barrier()
    return True


def test_an_aborted_group_ends_on_every_rank(tmp_path):
    assert run(aborted, tmp_path, 2) == [True, True]


def recorded():
    """The notes of torch's flight recorder about this back end's calls."""
    dist.all_reduce(torch.ones(2))
    dist.all_reduce(torch.ones(2), async_op=True).wait()
    trace = torch._C._distributed_c10d._dump_fr_trace(backend="unisono")
    return [entry["profiling_name"] for entry in pickle.loads(trace).get("entries", [])]


@pytest.mark.skipif(not versions.NOTES_CALLS, reason="this torch notes calls of NCCL only")
@pytest.mark.parametrize("size, name", [(None, "TORCH_FR_BUFFER_SIZE"),
                                        ("0", "TORCH_FR_BUFFER_SIZE"),
                                        ("100", "TORCH_FR_BUFFER_SIZE"),
                                        ("100", "TORCH_NCCL_TRACE_BUFFER_SIZE")])
def test_the_flight_recorder_notes_calls_if_it_is_asked_for(tmp_path, monkeypatch, size, name):
    for each in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
        monkeypatch.delenv(each, raising=False)
    if size is not None:
        monkeypatch.setenv(name, size)
    expected = ["unisono:all_reduce"] * 2 if size == "100" else []
    assert run(recorded, tmp_path, 2) == [expected] * 2

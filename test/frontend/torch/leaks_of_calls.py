# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of calls of both back ends leave no object, memory, descriptor or thread behind.

torch's own pools grow over some thousand calls, so this takes a minute: pytest does not collect it
by itself."""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from jobs import run

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))
from growth import growth, in_new_process, leaks  # noqa: E402 (of the Python front end's tests)

CPU = torch.device("cpu")
ONES = torch.ones(64)


def collectives():
    size = dist.get_world_size()
    dist.all_reduce(ONES.zero_())
    dist.broadcast(ONES, src=0)
    dist.all_gather([torch.empty(64) for _ in range(size)], ONES)
    dist.all_gather_into_tensor(torch.empty(64 * size), ONES)
    dist.reduce_scatter_tensor(torch.empty(64 // size), ONES)
    dist.all_to_all_single(torch.empty(64), ONES)
    dist.gather(ONES, [torch.empty(64) for _ in range(size)] if dist.get_rank() == 0 else None)
    dist.barrier()


def asynchronous():
    works = [dist.all_reduce(ONES.clone(), async_op=True) for _ in range(4)]
    halved = works[1].get_future().then(lambda future: future.value()[0] / 2)
    for work in works[:3]:
        work.wait()
    halved.wait()
    dist.barrier(async_op=True)  # nobody waits


def messages():
    other = 1 - dist.get_rank()
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, ONES, other),
                                    dist.P2POp(dist.irecv, torch.empty(64), other)])
    for work in works:
        work.wait()


def allocated():
    backend = dist.group.WORLD._get_backend(CPU)
    tensor = backend.allocate_tensor(100_000, dtype=torch.float32, device=CPU)
    dist.all_reduce(tensor)
    backend.allocate_tensor(64, dtype=torch.float32, device=CPU)[3:].fill_(1)


def groups():
    group = dist.new_group()
    dist.all_reduce(ONES.clone(), group=group, async_op=True).wait()
    dist.destroy_process_group(group)


def failed():
    group = dist.new_group()
    with pytest.raises((TypeError, dist.DistBackendError)):
        dist.all_reduce(ONES.clone(), dist.ReduceOp.BAND, group=group)
    work = dist.all_reduce(ONES.clone(), group=group, async_op=True)
    with pytest.raises((dist.DistBackendError, RuntimeError)):
        work.wait()
    dist.destroy_process_group(group)


# torch keeps something of each group that has ended: c10d's tables and its own.
CASES = [("compiled", collectives, 1000), ("compiled", asynchronous, 1000),
         ("compiled", messages, 1000), ("compiled", allocated, 1000), ("compiled", groups, 25),
         ("compiled", failed, 25), ("python", collectives, 300), ("python", asynchronous, 300),
         ("python", groups, 25), ("python", failed, 25)]
OF_GROUPS = ("descriptors", "threads")


def counting(case, turns):
    if case is messages:
        case()
    return growth(case, turns, (ONES, None), dist.barrier)


def of_ranks(name, turns, folder):
    return run(counting, Path(folder), 2, globals()[name], turns)


@pytest.mark.parametrize("choice, case, turns", CASES,
                         ids=lambda each: getattr(each, "__name__", str(each)))
def test_nothing_is_left(tmp_path, monkeypatch, choice, case, turns):
    monkeypatch.setenv("TORCH_UNISONO", choice)
    for left in in_new_process(__file__, "of_ranks", case.__name__, turns, str(tmp_path)):
        found = leaks(left, turns)
        if case in (groups, failed):
            found = {name: count for name, count in found.items() if name in OF_GROUPS}
        assert found == {}

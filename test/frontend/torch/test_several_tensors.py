# SPDX-License-Identifier: BSD-3-Clause
"""Calls of a ProcessGroup with several tensors of each rank, against those of Gloo."""

import datetime

import pytest
import torch
import torch.distributed as dist
import versions
from jobs import run
from torch._C._distributed_c10d import AllgatherOptions

Op = dist.ReduceOp
TYPES = [torch.int32, torch.float64, torch.bfloat16]


@pytest.fixture(params=["compiled", "python"])
def kind(request, monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", request.param)
    return request.param


def in_one_piece(count, dtype=torch.float64):
    """Gloo takes no others."""
    return [tensor.contiguous() for tensor in tensors(count, dtype)]


def tensors(count, dtype=torch.float64, size=5):
    """Every second element of some memory, so that no tensor lies in one piece."""
    first = dist.get_rank() * count
    return [(torch.arange(2 * size) % 3 + first + i + 1).to(dtype)[::2] for i in range(count)]


def with_op(op):
    options = dist.AllreduceOptions()
    options.reduceOp = op
    return options


def from_root(root, tensor):
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = root, tensor
    return options


def groups():
    return dist.group.WORLD, dist.new_group(backend="gloo")


def same(got, expected):
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def all_reduces():
    ours, gloo = groups()
    for count in (1, 2, 3):
        for dtype in TYPES:
            ops = [Op.SUM, Op.MIN, Op.MAX]
            if dtype != torch.bfloat16:
                ops.append(Op.PRODUCT)  # exact
            if not dtype.is_floating_point:
                ops += [Op.BAND, Op.BOR, Op.BXOR]
            for op in ops:
                got, expected = tensors(count, dtype), in_one_piece(count, dtype)
                value = ours.allreduce(got, with_op(op)).get_future().wait()
                gloo.allreduce(expected, with_op(op)).wait()
                same(value, expected)
                same(got, expected)
    return True


def test_all_reduces(tmp_path, kind):
    assert run(all_reduces, tmp_path, 3) == [True] * 3


def averages():
    """Gloo divides the first tensor only, by the number of ranks."""
    size, results = dist.get_world_size(), []
    for dtype in TYPES:
        got = tensors(2, dtype)
        dist.group.WORLD.allreduce(got, with_op(Op.AVG)).wait()
        of_all = [(torch.arange(10) % 3 + i + 1)[::2] for i in range(2 * size)]
        mean = torch.stack(of_all).sum(0).div(2 * size)
        expected = mean.to(dtype) if dtype.is_floating_point else mean.trunc().to(dtype)
        same(got, [expected, expected])
        results.append(got[0].tolist())
    factor = dist._make_nccl_premul_sum(2.0)
    got = tensors(2)
    dist.group.WORLD.allreduce(got, with_op(factor)).wait()
    expected = 2 * torch.stack([(torch.arange(10) % 3 + i + 1.0)[::2]
                                for i in range(2 * size)]).sum(0).to(torch.float64)
    same(got, [expected, expected])
    return results


def test_averages_and_factors_are_of_all_tensors(tmp_path, kind):
    results = run(averages, tmp_path, 2)
    assert results[0] == results[1]
    assert results[0][0] == [2, 4, 3, 2, 4]


def sparse_sums():
    ours, gloo = groups()
    rank = dist.get_rank()

    def made(count):
        return [torch.sparse_coo_tensor([[rank, 4 - i, rank]], [1.0 + i, 2.0, 5.0], (6,))
                for i in range(count)]
    for count in (1, 2, 3):
        got, expected = made(count), made(count)
        value = ours.allreduce(got).get_future().wait()
        gloo.allreduce(expected).wait()
        assert len(got) == len(value) == count
        for ours_is, value_is, gloos_is in zip(got, value, expected):
            assert ours_is.is_coalesced()
            same(ours_is.to_dense(), gloos_is.to_dense())
            same(value_is.to_dense(), gloos_is.to_dense())
    return True


def test_sparse_sums(tmp_path, kind):
    assert run(sparse_sums, tmp_path, 2) == [True] * 2


def listed_twice():
    """A tensor, and one that has some of its elements."""
    rank, size = dist.get_rank(), dist.get_world_size()
    same_one, memory = torch.tensor([rank + 1.0]), torch.arange(6.0) + rank
    work = dist.all_reduce_coalesced([same_one, same_one], async_op=True)
    work.wait()
    dist.all_reduce_coalesced([memory[:4], memory[2:]])
    apart = torch.arange(6.0) + rank
    dist.all_reduce_coalesced([apart[:3], apart[3:]])
    ranks = size * (size - 1) / 2
    same(same_one, torch.tensor([ranks + size]))
    same(memory, torch.arange(6.0) * size + ranks)
    same(apart, torch.arange(6.0) * size + ranks)
    return True


def test_tensors_that_are_listed_twice(tmp_path, kind):
    assert run(listed_twice, tmp_path, 3) == [True] * 3


def in_inference_mode():
    size = dist.get_world_size()
    with torch.inference_mode():
        plain, scattered = torch.ones(3), torch.ones(3, 2)[:, 0]
        sparse = torch.sparse_coo_tensor([[1]], [1.0], (3,))
        outputs = [torch.zeros(3, 2)[:, 0] for _ in range(size)]
        for work in [dist.all_reduce(plain, async_op=True),
                     dist.all_reduce(scattered, async_op=True),
                     dist.all_reduce(sparse, async_op=True),
                     dist.all_gather(outputs, torch.ones(3, 2)[:, 0], async_op=True)]:
            work.wait()
    same([plain, scattered], [torch.full((3,), float(size))] * 2)
    same(sparse.to_dense(), torch.tensor([0.0, size, 0.0]))
    same(outputs, [torch.ones(3)] * size)
    return True


def test_asynchronous_calls_in_inference_mode(tmp_path, kind):
    assert run(in_inference_mode, tmp_path, 2) == [True] * 2


def broadcasts():
    ours, gloo = groups()
    for count in (1, 2, 3):
        for root in range(dist.get_world_size()):
            for index in range(count):
                got, expected = tensors(count), in_one_piece(count)
                value = ours.broadcast(got, from_root(root, index)).get_future().wait()
                gloo.broadcast(expected, from_root(root, index)).wait()
                same(value, expected)
                same(got, expected)
    return True


def test_broadcasts(tmp_path, kind):
    assert run(broadcasts, tmp_path, 3) == [True] * 3


def all_gathers():
    ours, gloo = groups()
    size = dist.get_world_size()
    for dtype in [*TYPES, torch.bool]:
        for count in (1, 2, 3):
            values = []
            for group, made in ((ours, tensors), (gloo, in_one_piece)):
                outputs = [[torch.zeros(5, dtype=dtype) for _ in range(count * size)]
                           for _ in range(count)]
                future = group.allgather(outputs, made(count, dtype)).get_future()
                values.append((future.wait(), outputs))
            same(values[0], values[1])
    return True


def test_all_gathers(tmp_path, kind):
    assert run(all_gathers, tmp_path, 3) == [True] * 3


def errors():
    """Those of all ranks alike: the group goes on."""
    group, size = dist.group.WORLD, dist.get_world_size()
    one, other_type, longer = torch.zeros(1), torch.zeros(1, dtype=torch.int32), torch.zeros(2)
    spread = torch.zeros(1).expand(3)
    back_end = group._get_backend(torch.device("cpu"))  # torch itself takes no empty lists
    reduce, gather = dist.ReduceOptions(), dist.GatherOptions()
    calls = {
        "no tensor": lambda: back_end.allreduce([], with_op(Op.SUM)),
        "no tensor to send": lambda: back_end.broadcast([], from_root(0, 0)),
        "no tensor to gather": lambda: back_end.allgather([], [], AllgatherOptions()),
        "types": lambda: group.allreduce([one, other_type]),
        "lengths": lambda: group.allreduce([one, longer]),
        "shared elements": lambda: group.allreduce([torch.zeros(3), spread]),
        "types to send": lambda: group.broadcast([one, other_type], from_root(0, 0)),
        "lengths to send": lambda: group.broadcast([one, longer], from_root(0, 0)),
        "root's tensor": lambda: group.broadcast([one], from_root(0, 1)),
        "lists": lambda: group.allgather([[one] * size * 2], [one, one]),
        "outputs": lambda: group.allgather([[one] * size] * 2, [one, one]),
        "one tensor only": lambda: group.reduce([one, one], reduce),
        "one input only": lambda: group.gather([[one] * size], [one, one], gather),
    }
    seen = {}
    for name, call in calls.items():
        try:
            call().wait()
        except (ValueError, TypeError) as error:
            seen[name] = type(error).__name__
        value = torch.ones(1)
        group.allreduce([value]).wait()
        assert value.item() == size, name
    return seen


def test_errors(tmp_path, kind):
    expected = {name: "ValueError" for name in (
        "no tensor", "no tensor to send", "no tensor to gather", "lengths", "shared elements",
        "lengths to send", "root's tensor", "lists", "outputs", "one tensor only",
        "one input only")}
    expected |= {"types": "TypeError", "types to send": "TypeError"}
    assert run(errors, tmp_path, 2) == [expected] * 2


def lists(count, of_rank=1):
    return [[torch.zeros(1) for _ in range(of_rank)] for _ in range(count)]


def wrong_lists(size):
    """Name -> the call that has to be made, with the lists of rank 1 and with those of others."""
    def ones(count):
        return [torch.ones(1) for _ in range(count)]

    def wide(count):
        return [torch.ones(size) for _ in range(count)]

    gather, scatter, reduce = dist.GatherOptions(), dist.ScatterOptions(), dist.ReduceOptions()
    gathers, scatters = AllgatherOptions(), dist.ReduceScatterOptions()
    found = {
        "all_reduce": (lambda end, own: end.allreduce(own, with_op(Op.SUM)), [[]], [ones(1)]),
        "all_reduce_coalesced": (lambda end, own: end.allreduce_coalesced(
            own, dist.AllreduceCoalescedOptions()), [[]], [ones(2)]),
        "broadcast": (lambda end, own: end.broadcast(own, from_root(0, 0)), [[]], [ones(1)]),
        "reduce": (lambda end, own: end.reduce(own, reduce), [ones(2)], [ones(1)]),
        "all_gather": (lambda end, to, own: end.allgather(to, own, gathers),
                       [lists(2, size), ones(1)], [lists(1, size), ones(1)]),
        "all_gather of several": (lambda end, to, own: end.allgather(to, own, gathers),
                                  [lists(1, 2 * size), ones(2)], [lists(2, 2 * size), ones(2)]),
        "all_gather_coalesced": (lambda end, to, own: end.allgather_coalesced(to, own, gathers),
                                 [lists(size, 1), ones(2)], [lists(size, 2), ones(2)]),
        "all_gather_single_coalesced": (
            lambda end, to, own: end.all_gather_single_coalesced(to, own, gathers),
            [wide(1), ones(2)], [wide(2), ones(2)]),
        "gather": (lambda end, own: end.gather(
            lists(1, size) if dist.get_rank() == 0 else [], own, gather), [ones(2)], [ones(1)]),
        "scatter": (lambda end, to: end.scatter(
            to, lists(1, size) if dist.get_rank() == 0 else [], scatter), [ones(2)], [ones(1)]),
        "reduce_scatter": (lambda end, to, own: end.reduce_scatter(
            to, own, scatters), [ones(2), [ones(size)]],
            [ones(1), [ones(size)]]),
        "reduce_scatter_single_coalesced": (
            lambda end, to, own: end.reduce_scatter_single_coalesced(to, own, scatters),
            [ones(2), wide(1)], [ones(2), wide(2)]),
        "all_to_all": (lambda end, to, own: end.alltoall(to, own, dist.AllToAllOptions()), [[], []],
                       [ones(size), ones(size)]),
    }
    if not versions.HAS_SINGLE_COALESCED:
        del found["all_gather_single_coalesced"], found["reduce_scatter_single_coalesced"]
    return found


def refused_by_one(is_asynchronous):
    """Rank 1 refuses, and no other rank waits until the timeout."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for name, (call, wrong, right) in wrong_lists(size).items():
        group = dist.new_group(timeout=datetime.timedelta(seconds=20))
        end = group._get_backend(torch.device("cpu"))
        if is_asynchronous:  # the call is made behind another one
            before = torch.ones(1)
            dist.all_reduce(before, group=group, async_op=True)
        kind, text = ((ValueError, "unisono") if rank == 1 else
                      (dist.DistBackendError, "rank 1: .*(tensor|outputs|lists)"))
        with pytest.raises(kind, match=text):
            if (work := call(end, *(wrong if rank == 1 else right))) is not None:
                work.wait()
            dist.barrier(group=group)  # a rank may end its part of the call before
            raise AssertionError(f"{name}: no error")
    return True


@pytest.mark.parametrize("is_asynchronous", [False, True])
def test_a_wrong_list_of_one_rank_is_an_error_on_all(tmp_path, kind, is_asynchronous):
    assert run(refused_by_one, tmp_path, 3, is_asynchronous) == [True] * 3

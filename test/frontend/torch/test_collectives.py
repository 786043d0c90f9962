# SPDX-License-Identifier: BSD-3-Clause
"""Every collective of c10d with every type and layout, against torch in one process."""

import functools
import time

import pytest
import torch
import torch.distributed as dist
from jobs import run
import versions

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REALS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
TYPES = [*INTEGERS, *REALS, *COMPLEX, torch.bool]
SHAPES = [(), (1,), (6,), (3, 4), (0,), (20_000,)]
LAYOUTS = ["plain", "transposed", "strided", "within"]
Op = dist.ReduceOp


def data(rank, shape, dtype):
    """Small numbers, so that sums and products of five ranks are exact in every type."""
    count = int(torch.Size(shape).numel())
    values = (torch.arange(count) * 3 + rank) % 4
    if dtype in COMPLEX:
        return (values + 1j * ((values + 1) % 2)).to(dtype).reshape(shape)
    return values.to(dtype).reshape(shape)


def laid_out(values, layout):
    """A tensor of the same values whose elements lie elsewhere."""
    if layout == "transposed":
        return values.t().contiguous().t() if values.dim() == 2 else values.clone()
    if layout == "strided":
        return torch.stack([values, values], dim=-1)[..., 0]
    if layout == "within":
        around = torch.zeros(values.numel() + 8, dtype=values.dtype)
        around[4:4 + values.numel()] = values.reshape(-1)
        return around[4:4 + values.numel()].view(values.shape)
    return values.clone()


def combined(op, tensors):
    integers = {Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor}
    is_bool = tensors[0].dtype == torch.bool
    functions = {Op.SUM: torch.logical_or if is_bool else torch.add,
                 Op.PRODUCT: torch.logical_and if is_bool else torch.mul,
                 Op.MIN: torch.logical_and if is_bool else torch.minimum,
                 Op.MAX: torch.logical_or if is_bool else torch.maximum, **integers}
    if op == Op.AVG:
        total = functools.reduce(torch.add, tensors)
        exact = not (total.is_floating_point() or total.is_complex())
        return torch.div(total, len(tensors), rounding_mode="trunc" if exact else None)
    return functools.reduce(functions[op], tensors)


def ops_of(dtype):
    if dtype in COMPLEX:
        return [Op.SUM, Op.AVG]  # torch refuses others
    if dtype in REALS:
        return [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX, Op.AVG]
    bits = [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX, Op.BAND, Op.BOR, Op.BXOR]
    return bits if dtype == torch.bool else [*bits, Op.AVG]


def close(got, expected, *what):
    """An average of complex numbers may be rounded otherwise by torch's loops for few numbers."""
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=0, msg=lambda text: f"{what}: {text}")


def same(got, expected, *what):
    if Op.AVG in what and expected.is_complex():
        return close(got, expected, *what)
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, (what, got.shape, expected.shape)
    assert torch.equal(got, expected), (what, got, expected)


def reductions(everyone, layout):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, dtype = everyone[rank], everyone[0].dtype
    for op in ops_of(dtype):
        total = combined(op, everyone)
        for is_async in (False, True):
            tensor = laid_out(mine, layout)
            work = dist.all_reduce(tensor, op, async_op=is_async)
            if is_async:
                work.wait()
            same(tensor, total, "all_reduce", op, is_async)
        tensor = laid_out(mine, layout)
        dist.reduce(tensor, dst=size - 1, op=op)
        same(tensor, total if rank == size - 1 else mine, "reduce", op)


def moves(everyone, layout):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = everyone[rank]

    def rooms():
        return [laid_out(torch.zeros_like(mine), layout) for _ in range(size)]

    for root in {0, size - 1}:
        tensor = laid_out(mine, layout)
        dist.broadcast(tensor, src=root)
        same(tensor, everyone[root], "broadcast")
        found = rooms() if rank == root else None
        dist.gather(laid_out(mine, layout), found, dst=root)
        for got, expected in zip(found or [], everyone):
            same(got, expected, "gather")
        tensor = rooms()[0]
        parts = [laid_out(each, layout) for each in everyone]
        dist.scatter(tensor, parts if rank == root else None, src=root)
        same(tensor, mine, "scatter")
    found = rooms()
    dist.all_gather(found, laid_out(mine, layout))
    for got, expected in zip(found, everyone):
        same(got, expected, "all_gather")
    table = [mine.roll(other) if mine.dim() else mine for other in range(size)]
    found = rooms()
    dist.all_to_all(found, [laid_out(part, layout) for part in table])
    for other, got in enumerate(found):
        expected = everyone[other].roll(rank) if mine.dim() else everyone[other]
        same(got, expected, "all_to_all")


def single_tensors(everyone, layout):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = everyone[rank]
    stacked = torch.stack(everyone)
    got = laid_out(torch.zeros_like(stacked), layout)
    dist.all_gather_into_tensor(got, laid_out(mine, layout))
    same(got, stacked, "all_gather_into_tensor")
    in_place = torch.zeros_like(stacked)
    in_place[rank] = mine
    dist.all_gather_into_tensor(in_place, in_place[rank])
    same(in_place, stacked, "all_gather_into_tensor in place")
    columns = torch.stack([each.reshape(-1) for each in everyone])
    for op in ops_of(mine.dtype):
        rows = [torch.stack([each.roll(r) if each.dim() else each for r in range(size)])
                for each in everyone]
        expected = combined(op, rows)[rank]
        got = laid_out(torch.zeros_like(mine), layout)
        dist.reduce_scatter_tensor(got, laid_out(rows[rank], layout), op)
        same(got, expected, "reduce_scatter_tensor", op)
        got = laid_out(torch.zeros_like(mine), layout)
        dist.reduce_scatter(got, [laid_out(row, layout) for row in rows[rank]], op)
        same(got, expected, "reduce_scatter", op)
    got = torch.zeros_like(columns)
    dist.all_to_all_single(got, laid_out(columns, "plain"))
    for other in range(size):
        same(got[other], everyone[rank].reshape(-1), "all_to_all_single")


def everything(dtypes):
    size = dist.get_world_size()
    for dtype in dtypes:
        for shape in SHAPES:
            for layout in LAYOUTS:
                everyone = [data(rank, shape, dtype) for rank in range(size)]
                reductions(everyone, layout)
                moves(everyone, layout)
                single_tensors(everyone, layout)
    dist.barrier()
    if versions.HAS_MONITORED_BARRIER:
        dist.monitored_barrier()
    return True


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("dtypes", [INTEGERS, REALS, COMPLEX, [torch.bool]],
                         ids=["integers", "reals", "complex", "bool"])
def test_every_collective(tmp_path, ranks, dtypes):
    assert run(everything, tmp_path, ranks, dtypes) == [True] * ranks


def unequal():
    rank, size = dist.get_rank(), dist.get_world_size()
    give = [rank + other for other in range(size)]  # rows for each rank
    send = torch.cat([torch.full((give[other], 2), 10 * rank + other) for other in range(size)])
    expected = torch.cat([torch.full((rank + other, 2), 10 * other + rank)
                          for other in range(size)])
    got = torch.empty_like(expected)
    dist.all_to_all_single(got, send, give, give)
    same(got, expected, "all_to_all_single with rows")
    lengths = [other + 1 for other in range(size)]
    part = torch.empty(lengths[rank])
    dist.reduce_scatter(part, [torch.full((length,), float(rank)) for length in lengths])
    same(part, torch.full((lengths[rank],), float(sum(range(size)))), "reduce_scatter, unequal")
    return True


def test_blocks_of_different_lengths(tmp_path):
    assert run(unequal, tmp_path, 3) == [True] * 3


def splits_of_some_ranks():
    """Rank 0's rows are divided evenly, so it passes no split sizes; the other ranks do."""
    rank, size = dist.get_rank(), dist.get_world_size()
    rows = [[2 if 0 in (source, target) else 1 + (source + target) % 2 for target in range(size)]
            for source in range(size)]  # from each rank to each
    give, take = rows[rank], [rows[source][rank] for source in range(size)]
    send = torch.cat([torch.full((count,), 10 * rank + target)
                      for target, count in enumerate(give)])
    expected = torch.cat([torch.full((count,), 10 * source + rank)
                          for source, count in enumerate(take)])
    for splits in ((None, None), (take, give)):
        got = torch.empty_like(expected)
        dist.all_to_all_single(got, send, *(splits if rank == 0 else (take, give)))
        same(got, expected, "all_to_all_single")
    in_place = send.clone()
    dist.all_to_all_single(in_place, in_place, *((None, None) if rank == 0 else (take, give)))
    same(in_place, expected, "all_to_all_single in place")
    return True


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize("ranks", [3, 4])
def test_split_sizes_of_some_ranks_only(tmp_path, monkeypatch, kind, ranks):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert run(splits_of_some_ranks, tmp_path, ranks) == [True] * ranks


def others():
    rank, size = dist.get_rank(), dist.get_world_size()
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    objects = [rank, "of the root"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == [0, "of the root"]
    tensor = torch.full((3,), 2.0)
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    assert tensor.tolist() == [float(size)] * 3
    eighth = torch.tensor([1.0]).to(torch.float8_e4m3fn)
    dist.broadcast(eighth, src=0)  # moved, though it cannot be reduced
    assert eighth.to(torch.float32).item() == 1.0
    with dist._coalescing_manager():
        tensors = [torch.full((4,), float(i + rank)) for i in range(3)]
        for each in tensors:
            dist.all_reduce(each)
    assert [each[0].item() for each in tensors] == [size * i + sum(range(size)) for i in range(3)]
    for dtype in (torch.uint16, torch.uint32, torch.uint64):  # which torch itself does not divide
        tensor = torch.tensor([7 + rank, 2], dtype=dtype)
        dist.all_reduce(tensor, Op.AVG)
        assert tensor.tolist() == [(7 * size + sum(range(size))) // size, 2], (dtype, tensor)
    return True


def test_objects_factors_and_coalesced_calls(tmp_path):
    assert run(others, tmp_path, 2) == [True, True]


def half_complex():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([rank + 2j, 4 - 1j]).to(torch.complex32)
    for op, divisor in ((Op.SUM, 1), (Op.AVG, size)):
        expected = torch.tensor([sum(range(size)) + 2j * size, size * (4 - 1j)]) / divisor
        tensor = mine.clone()
        dist.reduce(tensor, 0, op)
        if rank == 0:
            assert torch.equal(tensor.to(torch.complex64), expected), (op, tensor)
        got = torch.zeros(2, dtype=torch.complex32)
        dist.reduce_scatter(got, [mine] * size, op)
        assert torch.equal(got.to(torch.complex64), expected), (op, got)
    with pytest.raises((TypeError, ValueError), match="ComplexHalf"):
        back_end().reduce([mine], reduced_by(Op.PRODUCT)).wait()
    return True


def reduced_by(op):
    options = dist.ReduceOptions()
    options.reduceOp = op
    return options


def back_end():
    return dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))


def test_complex_numbers_of_two_halves(tmp_path):
    assert run(half_complex, tmp_path, 2) == [True, True]


def futures():
    tensors = [torch.full((1000,), float(i)) for i in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    halved = works[3].get_future().then(lambda future: future.value()[0] / 2)
    for i in (7, 0, 5):
        works[i].wait()
        assert works[i].is_completed() and works[i].is_success()
    assert halved.wait()[0].item() == 3 * dist.get_world_size() / 2
    torch.futures.wait_all([work.get_future() for work in works])
    assert [tensor[0].item() for tensor in tensors] == [i * dist.get_world_size() for i in range(8)]
    return True


def test_asynchronous_calls_and_futures(tmp_path):
    assert run(futures, tmp_path, 2) == [True, True]


def waiting_callbacks():
    """A callback starts an operation and waits for it, also within another such callback."""
    size = dist.get_world_size()

    def again(future):
        started = dist.all_reduce(future.value()[0], async_op=True).get_future()
        return started.wait()

    work = dist.all_reduce(torch.ones(4), async_op=True)
    twice = work.get_future().then(again).then(again).wait()[0]
    for _ in range(20):
        work = dist.all_reduce(torch.ones(4), async_op=True)
        assert work.get_future().then(again).wait()[0].tolist() == [float(size * size)] * 4
    return twice.tolist() == [float(size**3)] * 4


def test_a_callback_waits_for_what_it_starts(tmp_path):
    assert run(waiting_callbacks, tmp_path, 2) == [True, True]


def callbacks_that_wait_for_others():
    """For an operation that was started before the callback runs, and for another message from the
    same rank."""
    rank = dist.get_rank()
    if rank == 1:
        time.sleep(0.05)  # rank 0 is in the first operation when it adds the callback
    first, second = torch.ones(2), torch.full((2,), float(rank))
    works = [dist.all_reduce(each, async_op=True) for each in (first, second)]
    works[0].get_future().then(lambda _: works[1].wait()).wait()
    assert (first.tolist(), second.tolist()) == ([2.0] * 2, [1.0] * 2)
    if rank == 0:
        got = [torch.zeros(1), torch.zeros(1)]
        received = dist.irecv(got[0], 1).get_future()
        both = received.then(lambda _: dist.recv(got[1], 1))
        dist.send(torch.ones(1), 1)
        both.wait()
        assert got == [torch.tensor([5.0]), torch.tensor([6.0])]
    else:
        dist.recv(torch.zeros(1), 0)
        dist.send(torch.tensor([5.0]), 0)
        time.sleep(0.02)
        dist.send(torch.tensor([6.0]), 0)
    dist.barrier()
    return True


def test_callbacks_wait_for_other_operations(tmp_path):
    assert run(callbacks_that_wait_for_others, tmp_path, 2) == [True, True]


def from_any_rank():
    """Two receives, and the message of the second one comes first."""
    rank = dist.get_rank()
    alone = dist.new_group([0])
    if rank == 0:
        late, early = torch.zeros(1), torch.zeros(1)
        works = [dist.irecv(late, tag=5), dist.irecv(early, tag=6)]
        works[1].wait()
        dist.send(early, 1)
        works[0].wait()
        assert (late.item(), early.item()) == (1.0, 2.0)
        assert [work._source_rank() for work in works] == [1, 2]
        summed = dist.all_reduce(early, group=alone, async_op=True)
        summed.wait()
        with pytest.raises(RuntimeError, match="recv"):
            summed._source_rank()  # of no receive
    elif rank == 1:
        dist.recv(torch.zeros(1), 0)
        dist.send(torch.tensor([1.0]), 0, tag=5)
    else:
        dist.send(torch.tensor([2.0]), 0, tag=6)
    dist.barrier()
    return True


def test_receives_from_any_rank_end_in_any_order(tmp_path):
    assert run(from_any_rank, tmp_path, 3) == [True] * 3


def groups():
    rank, size = dist.get_rank(), dist.get_world_size()
    even = dist.new_group([r for r in range(size) if r % 2 == 0])
    odd = dist.new_group([r for r in range(size) if r % 2 == 1])
    mine = even if rank % 2 == 0 else odd
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor, group=mine)
    assert tensor.item() == sum(r for r in range(size) if r % 2 == rank % 2)
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    if versions.SPLITS_GROUPS_OF_CPUS:
        half = dist.split_group(split_ranks=halves)
        tensor = torch.tensor([rank])
        dist.all_reduce(tensor, group=half)
        assert tensor.item() == sum(halves[0] if rank in halves[0] else halves[1])
        dist.destroy_process_group(half)
    tensor = torch.tensor([1])
    dist.all_reduce(tensor)
    return tensor.item()


def test_groups(tmp_path):
    assert run(groups, tmp_path, 4) == [4] * 4


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(100)
    dist.send(torch.full((100,), float(rank)), right)  # all send first: small ones are buffered
    dist.recv(got, left)
    assert (got == left).all()
    large = torch.full((200_000,), float(rank))
    room = torch.zeros_like(large)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, large, right),
                                    dist.P2POp(dist.irecv, room, left)])
    for work in works:
        work.wait()
    assert (room == left).all()
    if rank == 0:  # tags out of order, and columns
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.send(torch.tensor([2.0]), 1, tag=2)
        dist.send(torch.arange(6.0).reshape(2, 3).t(), 1)
    if rank == 1:
        second, first, table = torch.zeros(1), torch.zeros(1), torch.zeros(2, 3).t()
        dist.recv(second, 0, tag=2)
        dist.recv(first, 0, tag=1)
        dist.recv(table, 0)
        assert (first.item(), second.item()) == (1.0, 2.0)
        assert torch.equal(table, torch.arange(6.0).reshape(2, 3).t())
    if rank == 0:  # the last one is sent when the first has been answered
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.recv(torch.zeros(1), 1, tag=9)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    if rank == 1:
        last, first = torch.zeros(1), torch.zeros(1)
        work = dist.irecv(last, 0, tag=2)
        dist.recv(first, 0, tag=1)
        dist.send(first, 0, tag=9)
        work.wait()
        assert (first.item(), last.item()) == (1.0, 2.0)
    dist.barrier()
    return True


def test_messages(tmp_path):
    assert run(messages, tmp_path, 3) == [True] * 3

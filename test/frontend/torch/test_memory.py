# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of the back end's allocator: results, life time, and FSDP2 on them."""

import pytest
import torch
import torch.distributed as dist
from jobs import run
from programs import batches, mesh_of, model_of, step

CPU = torch.device("cpu")
LONG = 300_000


def backend():
    return dist.distributed_c10d._get_default_group()._get_backend(CPU)


def empty(count, dtype=torch.float32):
    return backend().allocate_tensor(count, dtype=dtype, device=CPU)


def shared_bytes():
    """This process's bytes in the job's memory file."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssShmem"))


def reductions(sharing):
    rank, size = dist.get_rank(), dist.get_world_size()
    make = empty if sharing >> rank & 1 else torch.empty
    for _ in range(3):
        for dtype in (torch.float32, torch.bfloat16, torch.int64):
            tensor = make(LONG, dtype=dtype)
            tensor.copy_(torch.arange(LONG) % 7 + rank)
            dist.all_reduce(tensor)
            expected = (torch.arange(LONG) % 7 * size + size * (size - 1) // 2).to(dtype)
            assert torch.equal(tensor, expected), dtype
            whole, part = make(LONG * size, dtype=dtype), make(LONG, dtype=dtype)
            whole.fill_(rank + 1)
            dist.reduce_scatter_tensor(part, whole)
            assert torch.equal(part, torch.full((LONG,), size * (size + 1) // 2, dtype=dtype))
            dist.all_gather_into_tensor(whole, part.fill_(rank))
            assert torch.equal(whole.view(size, LONG)[:, 0], torch.arange(size).to(dtype))
    return True


@pytest.mark.parametrize("sharing", [0b111, 0b001])
@pytest.mark.parametrize("ranks", [2, 3])
def test_reductions_whoever_shares(tmp_path, ranks, sharing):
    assert run(reductions, tmp_path, ranks, sharing) == [True] * ranks


def properties():
    assert backend().supports_tensor_alloc(CPU)
    before = shared_bytes()
    tensors = [empty(LONG).fill_(1) for _ in range(3)]
    assert shared_bytes() >= before + 3 * 4 * LONG
    assert tensors[0].shape == (LONG,) and tensors[0].is_contiguous()
    # A freed block is used again, so repeated requests do not grow.
    del tensors
    held = shared_bytes()
    for _ in range(50):
        empty(LONG).fill_(2)
    assert shared_bytes() <= held + 4 * LONG
    with pytest.raises(ValueError, match="host memory"):
        backend().allocate_tensor(4, dtype=torch.float32, device=torch.device("meta"))
    assert empty(0).numel() == 0
    return empty(LONG).fill_(3)


def outliving():
    tensor = properties()
    backend().shutdown()
    assert tensor.sum().item() == 3 * LONG
    return empty(5).fill_(1).tolist()  # in ordinary memory


def test_a_tensor_outlives_its_group(tmp_path):
    assert run(outliving, tmp_path, 2) == [[1.0] * 5] * 2


def fully_sharded(allocates):
    from torch.distributed.fsdp import FSDPModule, fully_shard
    model = model_of()
    fully_shard(model, mesh=mesh_of(("data", dist.get_world_size())))
    assert isinstance(model, FSDPModule)
    if allocates:
        model.set_allocate_memory_from_process_group_for_comm(True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def test_fsdp_allocates_from_the_group(tmp_path):
    losses = []
    for allocates in (False, True):
        folder = tmp_path / str(allocates)
        folder.mkdir()
        losses.append(run(fully_sharded, folder, 2, allocates))
    assert losses[0] == losses[1]

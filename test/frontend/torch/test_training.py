# SPDX-License-Identifier: BSD-3-Clause
"""Training with DistributedDataParallel gives the losses that it gives with Gloo."""

import pytest
import torch
import torch.distributed as dist
from jobs import run
from torch.nn.parallel import DistributedDataParallel

STEPS = 10


def train(buckets_mb):
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64),
                            torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 1)),
        bucket_cap_mb=buckets_mb)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    points = torch.randn(64, 16)
    values = points.pow(2).sum(dim=1, keepdim=True)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(points), values)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    return losses


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("buckets_mb", [0.01, 25])
def test_losses_are_those_of_gloo(tmp_path, ranks, buckets_mb):
    ours = run(train, tmp_path, ranks, buckets_mb)
    theirs = run(train, tmp_path, ranks, buckets_mb, backend="gloo")
    assert all(losses == ours[0] for losses in ours)
    assert ours[0][-1] < ours[0][0]
    assert torch.allclose(torch.tensor(ours[0]), torch.tensor(theirs[0]), rtol=1e-4)


def averages(kind):
    """The largest error of an average of gradients of all ranks, which are of like size."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from unisono.torch import hooks
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(torch.nn.Linear(101, 7, bias=False))
    model.register_comm_hook(None, {"float32 sums": hooks.bfloat16_with_float32_sums,
                                    "bfloat16 sums": default_hooks.bf16_compress_hook}[kind])
    torch.manual_seed(rank)
    points = torch.rand(1, 101) + 1
    model(points).sum().backward()
    rounded = torch.empty(size, 101)
    dist.all_gather_into_tensor(rounded, points.to(torch.bfloat16).to(torch.float32))
    exact = rounded.double().mean(dim=0).expand(7, 101)
    return ((model.module.weight.grad.double() - exact).abs() / exact).max().item()


def test_the_hook_rounds_once(tmp_path):
    half_unit = 2.0**-8
    errors = run(averages, tmp_path, 4, "float32 sums")
    assert max(errors) <= half_unit * 1.001
    assert max(run(averages, tmp_path, 4, "bfloat16 sums")) > max(errors)


def other_back_end():
    from unisono.torch import hooks
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    model.register_comm_hook(None, hooks.bfloat16_with_float32_sums)
    with pytest.raises((TypeError, RuntimeError), match="not unisono"):
        model(torch.ones(1, 3)).sum().backward()
    return True


def test_the_hook_needs_the_back_end(tmp_path):
    assert run(other_back_end, tmp_path, 1, backend="gloo") == [True]

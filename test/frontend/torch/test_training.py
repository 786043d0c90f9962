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

# SPDX-License-Identifier: BSD-3-Clause
"""Trains a small model on all ranks with DistributedDataParallel. See docs/tutorial/05-pytorch.md.

    torchrun --nproc-per-node 2 examples/torch/train.py [BACKEND]
"""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = 20


def main() -> None:
    dist.init_process_group(sys.argv[1] if len(sys.argv) > 1 else "unisono")
    torch.set_num_threads(1)
    torch.manual_seed(0)  # the same weights at every rank
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(1 + dist.get_rank())  # points of its own
    points = torch.randn(256, 8)
    values = points.sum(dim=1, keepdim=True)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(points), values)
        loss.backward()  # sums the gradients of all ranks
        optimizer.step()
    mean = loss.detach()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, loss {mean.item():.4f} after {STEPS} steps")
    dist.destroy_process_group()


main()

# SPDX-License-Identifier: BSD-3-Clause
"""A user's program for Lightning Fabric. It trains a small model in mixed precision, with gradients
of several batches. Rank 0 prints the losses of all ranks. The argument is the back end."""

import sys

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
fabric = Fabric(accelerator="cpu", devices=2, precision="bf16-mixed",
                strategy=DDPStrategy(process_group_backend=sys.argv[1]))
fabric.launch()
fabric.seed_everything(0, verbose=False)
points = torch.randn(128, 8)
data = fabric.setup_dataloaders(DataLoader(
    TensorDataset(points, points.pow(2).sum(dim=1, keepdim=True)), batch_size=8, shuffle=True))
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=0.01))
losses = []
for _ in range(8):
    for index, (inputs, values) in enumerate(data):
        is_last = index % 2 == 1
        with fabric.no_backward_sync(model, enabled=not is_last):
            loss = torch.nn.functional.mse_loss(model(inputs), values)
            fabric.backward(loss)
        if is_last:
            fabric.clip_gradients(model, optimizer, max_norm=100.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.extend(fabric.all_gather(loss.detach()).tolist())
assert fabric.all_reduce(torch.tensor(float(fabric.global_rank)), reduce_op="sum") == 1.0
assert fabric.broadcast({"rank": fabric.global_rank}, src=1) == {"rank": 1}
fabric.barrier()
fabric.print(dist.get_backend(), fabric.world_size, *losses)
dist.destroy_process_group()

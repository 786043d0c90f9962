# SPDX-License-Identifier: BSD-3-Clause
"""A user's program for Hugging Face's accelerate: it trains a small model, and rank 0 prints the
losses of all ranks. Its argument is the back end."""

import sys

import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
dist.init_process_group(sys.argv[1])  # accelerate itself knows only gloo and mpi on CPUs
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
set_seed(0)
points = torch.randn(128, 8)
data = DataLoader(TensorDataset(points, points.pow(2).sum(dim=1, keepdim=True)), batch_size=8,
                  shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
losses = []
for _ in range(8):
    for inputs, values in data:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), values)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.extend(accelerator.gather_for_metrics(loss.detach().reshape(1)).tolist())
accelerator.wait_for_everyone()
accelerator.print(dist.get_backend(), accelerator.num_processes, *losses)
accelerator.end_training()

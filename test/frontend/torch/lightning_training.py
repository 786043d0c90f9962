# SPDX-License-Identifier: BSD-3-Clause
"""A user's program for Lightning: it trains a small model with DDP, and rank 0 prints the losses of
all ranks. Its argument is the back end."""

import sys

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(),
                                          torch.nn.Linear(32, 1))
        self.losses = []

    def training_step(self, batch):
        points, values = batch
        loss = torch.nn.functional.mse_loss(self.layers(points), values)
        self.losses.extend(self.all_gather(loss.detach()).tolist())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
inputs = torch.randn(128, 8)
data = DataLoader(TensorDataset(inputs, inputs.pow(2).sum(dim=1, keepdim=True)), batch_size=8)
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, max_epochs=8,
    strategy=DDPStrategy(process_group_backend=sys.argv[1]), logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
model = Model()
trainer.fit(model, data)
if dist.get_rank() == 0:
    print(dist.get_backend(), dist.get_world_size(), *model.losses)
if dist.get_backend() == "gloo":
    dist.destroy_process_group()  # its threads can end the process with SIGABRT otherwise

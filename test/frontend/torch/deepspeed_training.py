# SPDX-License-Identifier: BSD-3-Clause
"""Trains with DeepSpeed's ZeRO on CPUs, under torchrun. Rank 0 prints the back end, the number of
ranks, and the losses of all ranks. Usage: deepspeed_training.py BACKEND STAGE"""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
RESULTS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # DeepSpeed logs to standard output

import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

ROWS, BATCHES, EPOCHS = 16, 4, 6


def main():
    backend, stage = sys.argv[1], int(sys.argv[2])
    # Its own allreduce in shared memory is for inference, and would be compiled first.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend=backend)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": ROWS, "zero_allow_untested_optimizer": True,
                "zero_optimization": {"stage": stage}})
    torch.manual_seed(1 + dist.get_rank())
    points = torch.randn(BATCHES, ROWS, 8)
    values = points.pow(2).sum(dim=2, keepdim=True)
    losses = []
    for _ in range(EPOCHS):
        for i in range(BATCHES):
            loss = torch.nn.functional.mse_loss(engine(points[i]), values[i])
            engine.backward(loss)
            engine.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            losses.append(mean.item() / dist.get_world_size())
    if dist.get_rank() == 0:
        print(dist.get_backend(), dist.get_world_size(), *losses, file=RESULTS, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

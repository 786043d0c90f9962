# SPDX-License-Identifier: BSD-3-Clause
"""Training under an elastic agent that goes on after a lost rank, for test_hosts.py.

usage: torchrun --max-restarts 1 ... host_restarted.py FOLDER LOST

Rank 0 saves a checkpoint in FOLDER after each step. The process of rank LOST ends once, half-way.
Each rank writes its losses and a sum over its model to FOLDER.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from programs import batches, model_of, step
from torch.nn.parallel import DistributedDataParallel

TURNS = 3  # over all batches


def train(folder, lost=-1):
    rank = dist.get_rank()
    model = DistributedDataParallel(model_of())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    saved, mark, losses = folder / "checkpoint", folder / "lost", []
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses = state["losses"]
    dist.barrier()  # nobody saves while others load
    points = batches(rank) * TURNS
    for number in range(len(losses), len(points)):
        if rank == lost and number == len(points) // 2 and not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        loss = torch.tensor(step(model, optimizer, points[number]))
        dist.all_reduce(loss)
        losses.append(loss.item())
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "losses": losses}, folder / "new")
            os.replace(folder / "new", saved)
    return [*losses, sum(each.sum().item() for each in model.parameters())]


def main():
    torch.set_num_threads(1)
    folder, lost = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("unisono")
    (folder / str(dist.get_rank())).write_text(json.dumps(train(folder, lost)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""A rank under an elastic agent, whose rank 1 ends twice in the way that is named, in the middle of
operations. The third start prints what it computes.

usage: torchrun --max-restarts 2 ... restarted.py exception|kill|exit
"""

import datetime
import os
import signal
import sys

import torch
import torch.distributed as dist
import versions

HOW = {"exception": lambda: 1 // 0, "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
       "exit": lambda: sys.exit(3)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("unisono", timeout=datetime.timedelta(seconds=120))
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group()
    tensor = torch.full((4,), rank + 1.0)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    if rank == 0:
        dist.send(tensor, 1)
    elif rank == 1:
        dist.recv(tensor, 0)
    if os.environ.get("TORCH_UNISONO") != "python" and versions.HAS_MONITORED_BARRIER:
        dist.monitored_barrier()
    is_last = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 2
    if rank == 1 and not is_last:
        HOW[sys.argv[1]]()
    for _ in range(1 if is_last else 2):
        dist.all_reduce(tensor)
    os.write(1, f"{rank}: {tensor[0].item():.0f}\n".encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

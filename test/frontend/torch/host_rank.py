# SPDX-License-Identifier: BSD-3-Clause
"""One rank under torchrun, for test_hosts.py: runs programs, and writes their numbers to a file.

usage: host_rank.py BACKEND FOLDER PROGRAM ...
"""

import json
import sys
from pathlib import Path

import programs
import torch
import torch.distributed as dist
import versions

torch.set_num_threads(1)


def collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    found = []
    for length in (1, 1000, 500_000):
        tensor = torch.full((length,), rank + 1.0)
        dist.all_reduce(tensor)
        found.append(tensor.sum().item())
        dist.broadcast(tensor, src=size - 1)
        everyone = torch.empty(size * length)
        dist.all_gather_into_tensor(everyone, tensor + rank)
        found.append(everyone.sum().item())
    right, left = (rank + 1) % size, (rank - 1) % size
    room = torch.zeros(100_000)
    for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.full((100_000,), float(rank)), right),
            dist.P2POp(dist.irecv, room, left)]):
        work.wait()
    found.append(room.sum().item())
    if versions.HAS_MONITORED_BARRIER:
        dist.monitored_barrier()
    dist.barrier()
    return found


def main():
    backend, folder, *names = sys.argv[1:]
    dist.init_process_group(backend)
    results = {name: collectives() if name == "collectives" else getattr(programs, name)()
               for name in names}
    (Path(folder) / str(dist.get_rank())).write_text(json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

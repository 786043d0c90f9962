# SPDX-License-Identifier: BSD-3-Clause
"""How many connections the groups of a process have to the store, and that none is left over."""

import datetime
import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import unisono

LIMIT = datetime.timedelta(seconds=120)


def connections(port):
    """The connections of this process to the port."""
    own = {os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")
           if os.path.islink(f"/proc/self/fd/{each}")}
    lines = [line.split() for name in ("tcp", "tcp6")
             for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]]
    return sum(f"socket:[{line[9]}]" in own for line in lines
               if int(line[2].rpartition(":")[2], 16) == port)


def threads():
    return len(os.listdir("/proc/self/task"))


def sent_to_all(group):
    """A message to and from each other rank of the group."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    others = [other for other in range(size) if other != rank]
    rooms = [torch.zeros(2) for _ in others]
    works = [dist.irecv(room, group=group, group_src=other)
             for room, other in zip(rooms, others)]
    works += [dist.isend(torch.full((2,), float(rank)), group=group, group_dst=other)
              for other in others]
    for work in works:
        work.wait()
    return [room[0].item() for room in rooms] == [float(other) for other in others]


def many_groups(port_of):
    rank = int(os.environ["UNISONO_RANK"])
    store = dist.TCPStore("127.0.0.1", 0 if rank == 0 else int(port_of(None)), 3, rank == 0, LIMIT,
                          wait_for_workers=False)
    if rank == 0:
        port_of(store.port)
    before = connections(store.port), threads()
    dist.init_process_group("unisono", store=store, rank=rank, world_size=3, timeout=LIMIT)
    parts = [[0, 1, 2], [0, 2], [0, 1, 2]]
    groups = [dist.group.WORLD, *(dist.new_group(ranks) for ranks in parts)]
    for group in groups:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            assert sent_to_all(group)
    if os.environ["TORCH_UNISONO"] == "compiled":
        dist.monitored_barrier()
    dist.barrier()
    inside = connections(store.port)
    dist.destroy_process_group()
    del groups, group
    return inside - before[0], connections(store.port) - before[0], threads() - before[1]


class Port:
    """Tells the port of the store over a pipe, which the forked ranks share."""

    def __init__(self, ranks):
        self.ends, self.ranks = os.pipe(), ranks

    def __call__(self, port):
        if port is None:
            return os.read(self.ends[0], 8)
        return os.write(self.ends[1], str(port).ljust(8).encode() * (self.ranks - 1))


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_groups_share_one_further_connection(monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    torch.set_num_threads(1)
    assert unisono.spawn(many_groups, (Port(3),), ranks=3) == [(1, 0, 0)] * 3

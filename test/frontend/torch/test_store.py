# SPDX-License-Identifier: BSD-3-Clause
"""How many connections the groups of a process have to the store, and that none is left over."""

import datetime
import os
import socket
import stat

import pytest
import torch
import torch.distributed as dist
import unisono
import versions

LIMIT = datetime.timedelta(seconds=120)


def connections(port):
    """The connections of this process to the port."""
    count = 0
    for each in map(int, os.listdir("/proc/self/fd")):
        try:
            if stat.S_ISSOCK(os.fstat(each).st_mode):
                with socket.socket(fileno=os.dup(each)) as opened:
                    count += opened.getpeername()[1:2] == (port,)
        except OSError:  # it is not connected, or was that of the folder
            pass
    return count


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


class Host:
    """Rank 0, which has the store: it tells the port over a pipe, and stays until the others have
    counted. The forked ranks share it."""

    def __init__(self, ranks):
        self.port, self.end, self.others = os.pipe(), os.pipe(), ranks - 1

    def store(self, rank):
        port = 0 if rank == 0 else int(os.read(self.port[0], 8))
        made = dist.TCPStore("127.0.0.1", port, self.others + 1, rank == 0, LIMIT,
                             wait_for_workers=False)
        if rank == 0:
            os.write(self.port[1], str(made.port).ljust(8).encode() * self.others)
        return made

    def leave(self, rank):
        if rank != 0:
            os.write(self.end[1], b".")
        else:
            assert all(os.read(self.end[0], 1) for _ in range(self.others))


def many_groups(host):
    rank = int(os.environ["UNISONO_RANK"])
    store = host.store(rank)
    before = connections(store.port)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=3, timeout=LIMIT)
    parts = [[0, 1, 2], [0, 2], [0, 1, 2]]
    groups = [dist.group.WORLD, *(dist.new_group(ranks) for ranks in parts)]
    for group in groups:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            assert sent_to_all(group)
    if os.environ["TORCH_UNISONO"] == "compiled" and versions.HAS_MONITORED_BARRIER:
        dist.monitored_barrier()
    dist.barrier()
    inside = connections(store.port)
    dist.destroy_process_group()
    after = connections(store.port)
    host.leave(rank)
    return inside - before, after - before


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_groups_share_one_further_connection(monkeypatch, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    torch.set_num_threads(1)
    assert unisono.spawn(many_groups, (Host(3),), ranks=3) == [(1, 0)] * 3


def uses_a_file(path):
    rank = int(os.environ["UNISONO_RANK"])
    for turn in range(2):
        name = f"{path}-{turn}"
        dist.init_process_group("unisono", init_method=f"file://{name}", rank=rank, world_size=2)
        other = dist.new_group([0, 1])
        dist.barrier()
        dist.barrier(other)
        del other
        dist.destroy_process_group()
    return True


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_the_file_of_a_store_goes_with_the_groups(monkeypatch, tmp_path, kind):
    monkeypatch.setenv("TORCH_UNISONO", kind)
    assert unisono.spawn(uses_a_file, (tmp_path / "store",), ranks=2) == [True] * 2
    assert list(tmp_path.iterdir()) == []

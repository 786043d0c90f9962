# SPDX-License-Identifier: BSD-3-Clause
"""Process groups of forked ranks, which have torch imported already."""

import datetime
import os

import torch
import torch.distributed as dist
import unisono

torch.set_num_threads(1)  # before a fork there must be no other threads
LIMIT = datetime.timedelta(seconds=120)


def _rank(function, path, rank_count, backend, args):
    rank = int(os.environ["UNISONO_RANK"])
    dist.init_process_group(backend, store=dist.FileStore(str(path), rank_count), rank=rank,
                            world_size=rank_count, timeout=LIMIT)
    try:
        return function(*args)
    finally:
        dist.destroy_process_group()


def run(function, tmp_path, ranks, *args, backend="unisono"):
    """The results of function(*args), by rank, each in a process group of its own test."""
    store = tmp_path / f"store-{backend}-{ranks}"
    return unisono.spawn(_rank, (function, store, ranks, backend, args), ranks=ranks)

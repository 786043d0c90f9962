#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of torch.distributed with the back ends unisono and gloo, by turns in one job.

    python bench/torch/compare.py [--ranks 2] [--json FILE]

Each figure is the median over repetitions of the mean time of a call, at the slowest rank. Both
back ends have the same ranks, tensors and calls; they take turns. The last row is a group of one
rank: what torch itself costs. Needs torch and the packages unisono and unisono-torch.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import unisono

torch.set_num_threads(1)
SECONDS = 0.1  # of one repetition
MOST_CALLS = 2000


def calls(group, length):
    """(name, function) of each collective on float32 tensors of `length` elements for each rank."""
    size = dist.get_world_size(group)
    tensor, all_tensors = torch.ones(length), torch.zeros(length * size)
    return {
        "barrier": lambda: dist.barrier(group),
        "broadcast": lambda: dist.broadcast(tensor, 0, group),
        "all_reduce": lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX, group),
        "all_gather": lambda: dist.all_gather_into_tensor(all_tensors, tensor, group),
    }


def mean_us(call, group, count):
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def slowest(value, group):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX, group)
    return tensor.item()


def measure(path, ranks, lengths, repetitions):
    dist.init_process_group("unisono", store=dist.FileStore(str(path), ranks), world_size=ranks,
                            rank=int(os.environ["UNISONO_RANK"]))
    groups = {"unisono": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rows = []
    for length in lengths:
        for name in calls(groups["gloo"], 1):
            if name == "barrier" and length != lengths[0]:
                continue
            by_group = {key: calls(group, length)[name] for key, group in groups.items()}
            counts, times = {}, {key: [] for key in groups}
            for key, group in groups.items():
                first = slowest(mean_us(by_group[key], group, 5), groups["gloo"])
                counts[key] = max(3, min(MOST_CALLS, int(SECONDS * 1e6 / first)))
            for _ in range(repetitions):
                for key, group in groups.items():
                    mean = mean_us(by_group[key], group, counts[key])
                    times[key].append(slowest(mean, groups["gloo"]))
            rows.append({"collective": name, "bytes": 0 if name == "barrier" else 4 * length,
                         **{key: statistics.median(all_times) for key, all_times in times.items()}})
    dist.destroy_process_group()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--bytes", default="8,65536,16777216")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    lengths = [max(1, int(each) // 4) for each in options.bytes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        rows = unisono.spawn(measure, (Path(folder) / "store", options.ranks, lengths,
                                       options.repeat), ranks=options.ranks)[0]
        alone = unisono.spawn(measure, (Path(folder) / "alone", 1, [2], options.repeat), ranks=1)[0]
    rows += [{**row, "collective": row["collective"] + ", 1 rank"} for row in alone
             if row["collective"] == "all_reduce"]
    print(f"torch {torch.__version__}, {options.ranks} ranks, us for a call")
    print(f"{'collective':24}{'bytes':>10}{'unisono':>12}{'gloo':>12}{'ratio':>8}")
    for row in rows:
        print(f"{row['collective']:24}{row['bytes']:>10}{row['unisono']:>12.1f}{row['gloo']:>12.1f}"
              f"{row['gloo'] / row['unisono']:>8.1f}")
    if options.json:
        options.json.write_text(json.dumps({"ranks": options.ranks, "torch": torch.__version__,
                                            "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

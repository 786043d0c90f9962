#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of torch.distributed with the back ends unisono and gloo, by turns in one job.

    python bench/torch/compare.py [--ranks 2] [--json FILE]

Each figure is the median over repetitions of the mean time of a call, at the slowest rank. Both
back ends have the same ranks, tensors and calls; they take turns. The rows below say where the time
of all_reduce with 8 bytes goes: what torch itself costs (a back end that does nothing; the last row
has it for each collective), what the back end adds in a group of one rank, and what the package
unisono takes with all ranks, without torch. In the last of these rows each rank makes torch's call
without a back end and then a plan of unisono. That is what a call costs if the back end takes no
time. Needs torch and the packages unisono and unisono-torch.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import unisono
from figures import keep

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


def repeated(call, group, repetitions):
    """The median of the mean time of a call, at the slowest rank."""
    first = slowest(mean_us(call, group, 5), group)
    count = max(3, min(MOST_CALLS, int(SECONDS * 1e6 / first)))
    return statistics.median(slowest(mean_us(call, group, count), group)
                             for _ in range(repetitions))


def calls_without_back_end():
    """Those of 8 bytes of one rank; the back end does nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    return calls(dist.group.WORLD, 2)


def dispatch(repetitions):
    """torch's own cost of each call of 8 bytes."""
    costs = {}
    for name, call in calls_without_back_end().items():
        times = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            for _ in range(MOST_CALLS):
                call()
            times.append((time.perf_counter() - begin) / MOST_CALLS * 1e6)
        costs[name] = statistics.median(times)
    dist.destroy_process_group()
    return costs


def alone(path, repetitions):
    dist.init_process_group("unisono", store=dist.FileStore(str(path), 1), world_size=1, rank=0)
    time_us = repeated(calls(dist.group.WORLD, 2)["all_reduce"], dist.group.WORLD, repetitions)
    dist.destroy_process_group()
    return time_us


def without_the_back_end(repetitions):
    """The same collective by the package unisono, by a plan of it, and by torch and that plan."""
    import numpy
    of_torch = calls_without_back_end()["all_reduce"]
    with unisono.init() as comm:
        mine, total = numpy.ones(2, numpy.float32), numpy.empty(2, numpy.float32)
        plan = comm.allreduce_plan(mine, total, op="max")
        found = []
        for call in (lambda: comm.allreduce(mine, total, op="max"), plan,
                     lambda: (of_torch(), plan())):
            times = []
            for _ in range(repetitions):
                comm.barrier()
                begin = time.perf_counter()
                for _ in range(MOST_CALLS):
                    call()
                mean = (time.perf_counter() - begin) / MOST_CALLS * 1e6
                times.append(comm.allreduce(mean, op="max"))
            found.append(statistics.median(times))
        plan.close()
    dist.destroy_process_group()
    return found


def measure(path, ranks, rank, lengths, repetitions):
    """The rows of the table, at all ranks. rank None: of a spawned process."""
    rank = int(os.environ["UNISONO_RANK"]) if rank is None else rank
    dist.init_process_group("unisono", store=dist.FileStore(str(path), ranks), world_size=ranks,
                            rank=rank)
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


def print_rows(rows):
    print(f"{'collective':24}{'bytes':>10}{'unisono':>12}{'gloo':>12}{'ratio':>8}")
    for row in rows:
        print(f"{row['collective']:24}{row['bytes']:>10}{row['unisono']:>12.1f}{row['gloo']:>12.1f}"
              f"{row['gloo'] / row['unisono']:>8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--bytes", default="8,65536,16777216")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    options = parser.parse_args()
    lengths = [max(1, int(each) // 4) for each in options.bytes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        rows = unisono.spawn(measure, (Path(folder) / "store", options.ranks, None,
                                       lengths, options.repeat), ranks=options.ranks)[0]
        torch_alone = unisono.spawn(dispatch, (options.repeat,), ranks=1)[0]
        parts = {"torch alone": torch_alone["all_reduce"],
                 "torch and unisono, 1 rank": unisono.spawn(
                     alone, (Path(folder) / "alone", options.repeat), ranks=1)[0]}
        own = unisono.spawn(without_the_back_end, (options.repeat,), ranks=options.ranks)[0]
        for name, time_us in zip(("unisono without torch", "a plan of unisono",
                                  "torch alone and a plan"), own):
            parts[f"{name}, {options.ranks} ranks"] = time_us
    print(f"torch {torch.__version__}, {options.ranks} ranks, us for a call")
    print_rows(rows)
    print("all_reduce of 8 bytes, us for a call")
    for name, time_us in parts.items():
        print(f"{name:34}{time_us:>12.1f}")
    print("torch alone, us for a call: "
          + ", ".join(f"{name} {time_us:.1f}" for name, time_us in torch_alone.items()))
    if options.json:
        keep(options.json, f"{options.ranks} ranks",
             {"torch": torch.__version__, "us": rows, "all_reduce of 8 bytes, us": parts,
              "torch alone, us": torch_alone})
    return 0


if __name__ == "__main__":
    sys.exit(main())

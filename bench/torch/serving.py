#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The collectives of a tensor-parallel server on CPUs: the back ends unisono and gloo, by turns.

    python bench/torch/serving.py [--ranks 2] [--hidden 4096] [--vocabulary 32000] [--json FILE]

vLLM's CPU communicator makes these calls: after each of a layer's two row-parallel products it sums
[tokens, hidden] in bfloat16 (all_reduce), with few tokens while it writes and many while it reads a
prompt; at the end of a step it gathers the logits of [tokens, vocabulary / ranks] at rank 0
(gather) or everywhere (all_gather into one tensor). `unisono, shared` has the tensors of the sums
in memory that the ranks share (allocate_tensor).

Each figure is the median over repetitions of the mean time of a call, at the slowest rank. Needs
torch and the packages unisono and unisono-torch; not vLLM.
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
CPU = torch.device("cpu")
WRITING, READING = (1, 8, 64), (512, 2048)  # tokens in one step
COLUMNS = ("unisono", "unisono, shared", "gloo")


def room(column, shape):
    """A tensor of one column's kind."""
    if column != "unisono, shared":
        return torch.ones(shape, dtype=torch.bfloat16)
    backend = dist.group.WORLD._get_backend(CPU)
    count = torch.Size(shape).numel()
    return backend.allocate_tensor(count, dtype=torch.bfloat16, device=CPU).fill_(1).view(shape)


def calls(hidden, vocabulary, groups):
    """(name, bytes of a rank, function for each column)"""
    rank, size = dist.get_rank(), dist.get_world_size()
    for tokens in (*WRITING, *READING):
        sums = {column: room(column, (tokens, hidden)) for column in COLUMNS}
        # The largest: repeated sums would leave the range of bfloat16.
        yield f"all_reduce [{tokens}, {hidden}]", 2 * tokens * hidden, {
            column: lambda column=column, own=own: dist.all_reduce(
                own, dist.ReduceOp.MAX, groups[column]) for column, own in sums.items()}
    for tokens in WRITING:
        part = vocabulary // size
        logits = torch.ones((tokens, part), dtype=torch.bfloat16)
        parts = [torch.empty_like(logits) for _ in range(size)] if rank == 0 else None
        every = torch.empty((size * tokens, part), dtype=torch.bfloat16)
        plain = ("unisono", "gloo")
        yield f"gather [{tokens}, {part}]", 2 * tokens * part, {
            column: lambda column=column, logits=logits, parts=parts: dist.gather(
                logits, parts, 0, groups[column]) for column in plain}
        yield f"all_gather [{tokens}, {part}]", 2 * tokens * part, {
            column: lambda column=column, logits=logits, every=every: dist.all_gather_into_tensor(
                every, logits, groups[column]) for column in plain}


def mean_us(call, count):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    own = torch.tensor([(time.perf_counter() - begin) / count * 1e6], dtype=torch.float64)
    dist.all_reduce(own, dist.ReduceOp.MAX)
    return own.item()


def measure(path, ranks, options):
    dist.init_process_group("unisono", store=dist.FileStore(str(path), ranks), world_size=ranks,
                            rank=int(os.environ["UNISONO_RANK"]))
    gloo = dist.new_group(backend="gloo")
    groups = {column: gloo if column == "gloo" else dist.group.WORLD for column in COLUMNS}
    rows = []
    for name, length, columns in calls(options.hidden, options.vocabulary, groups):
        counts = {column: max(2, min(500, int(options.seconds * 1e6 / mean_us(call, 3))))
                  for column, call in columns.items()}
        times = {column: [] for column in columns}
        for _ in range(options.repeat):
            for column, call in columns.items():
                times[column].append(mean_us(call, counts[column]))
        rows.append({"call": name, "bytes": length, "us": {
            column: statistics.median(all_times) for column, all_times in times.items()}})
    dist.destroy_process_group()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one repetition")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = unisono.spawn(measure, (Path(folder) / "store", options.ranks, options),
                             ranks=options.ranks)[0]
    print(f"torch {torch.__version__}, {options.ranks} ranks, bfloat16, us for a call")
    print(f"{'call':>28}" + "".join(f"{column:>17}" for column in COLUMNS) + f"{'ratio':>8}")
    for row in rows:
        times = row["us"]
        cells = "".join(f"{times[c]:17.0f}" if c in times else f"{'-':>17}" for c in COLUMNS)
        print(f"{row['call']:>28}{cells}{times['gloo'] / times['unisono']:8.1f}")
    if options.json:
        keep(options.json, f"{options.ranks} ranks", {"torch": torch.__version__, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())

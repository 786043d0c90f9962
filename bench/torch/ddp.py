#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Training steps of DistributedDataParallel with the back ends unisono and gloo, by turns.

    python bench/torch/ddp.py [--ranks 2] [--layers 2,12] [--json FILE] [--picture FILE.svg]

The model is a transformer on CPUs with 0.8 million parameters in each layer. Both back ends train a
copy of it in the same processes and take turns, one step each. Six times are measured:

    step           forward, backward with the averages of gradients, optimizer
    communication  in which at least one average is under way, from its start to its completion;
                   computation may go on meanwhile
    all present    the part of it after the last rank has started the average: without the wait for
                   a rank that computes longer, which no back end can shorten
    not hidden     what the step takes longer than one without communication (no_sync)
    processor      what the threads that communicate use of the cores
    without core   in which these threads could run, and waited for a core

The figures are medians over the steps, of the slowest rank in each. The picture shows one step of
rank 0 with each back end: backward computation, and each average. Needs torch and the packages
unisono and unisono-torch.
"""

import argparse
import html
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
import unisono
from figures import keep
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
BACK_ENDS = ("unisono", "gloo")
MEASURED = ("step", "communication", "all present", "not hidden", "processor", "without core")
FEATURES, TOKENS, SAMPLES = 256, 32, 4
COLOURS = {"step": "#bbb", "backward": "#7a9", "average": "#c63"}


class Averages:
    """A hook for gradients that notes when each average starts and is complete."""

    def __init__(self, group):
        self.group = group
        self.spans = []

    def average(self, _, bucket):
        # As DDP's own hook: it divides first, which is computation.
        gradients = bucket.buffer().div_(dist.get_world_size(self.group))
        begin = time.perf_counter()
        work = dist.all_reduce(gradients, group=self.group, async_op=True)

        def complete(future):
            self.spans.append((begin, time.perf_counter()))
            return future.value()[0]

        return work.get_future().then(complete)

    def take(self):
        spans, self.spans = sorted(self.spans), []
        return spans


def union(spans):
    """The length of time that the spans cover."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


class Training:
    def __init__(self, layers, group, bucket_mb):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(FEATURES, 4, 4 * FEATURES, dropout=0.0,
                                                 batch_first=True)
        self.model = DistributedDataParallel(
            torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            process_group=group, bucket_cap_mb=bucket_mb)
        self.averages = Averages(group)
        self.model.register_comm_hook(None, self.averages.average)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        torch.manual_seed(1 + dist.get_rank())
        self.points = torch.randn(SAMPLES, TOKENS, FEATURES)

    def step(self):
        """(begin, begin of backward, its end, end, spans of averages) in seconds."""
        self.averages.take()
        self.optimizer.zero_grad()
        begin = time.perf_counter()
        loss = self.model(self.points).pow(2).mean()
        backward = time.perf_counter()
        loss.backward()
        end_of_backward = time.perf_counter()
        self.optimizer.step()
        return begin, backward, end_of_backward, time.perf_counter(), self.averages.take()

    def alone_s(self):
        with self.model.no_sync():
            begin, *_, end, _ = self.step()
        return end - begin


def of_other_threads():
    """Seconds on a core, and in wait for one, of all threads but this one, which computes."""
    own = threading.get_native_id()
    times = [task.joinpath("schedstat").read_text().split()[:2]
             for task in Path("/proc/self/task").iterdir() if int(task.name) != own]
    return [sum(int(each[i]) for each in times) / 1e9 for i in range(2)]


def after_the_last(spans):
    """From the time at which the last rank has started each average; all ranks have one clock."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, spans)
    starts = [max(begin for begin, _ in same) for same in zip(*every)]
    return [(max(begin, start), max(end, start)) for (begin, end), start in zip(spans, starts)]


def slowest(values):
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.tolist()


def measure(path, ranks, layers, steps, bucket_mb):
    dist.init_process_group("unisono", store=dist.FileStore(str(path), ranks), world_size=ranks,
                            rank=int(os.environ["UNISONO_RANK"]))
    groups = {"unisono": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    trainings = {name: Training(layers, groups[name], bucket_mb) for name in BACK_ENDS}
    times = {name: {what: [] for what in MEASURED} for name in BACK_ENDS}
    pictures = {}
    for number in range(steps + 3):
        for name, training in trainings.items():
            dist.barrier()
            alone = training.alone_s()
            dist.barrier()
            before = of_other_threads()
            taken = training.step()
            of_others = [now - then for now, then in zip(of_other_threads(), before)]
            begin, backward, end_of_backward, end, spans = taken
            found = slowest([end - begin, union(spans), alone, union(after_the_last(spans)),
                             *of_others])
            if number < 3:
                continue  # DDP rebuilds its buckets after the first
            times[name]["step"].append(found[0])
            times[name]["communication"].append(found[1])
            times[name]["all present"].append(found[3])
            times[name]["not hidden"].append(found[0] - found[2])
            times[name]["processor"].append(found[4])
            times[name]["without core"].append(found[5])
            pictures[name] = {"step": [[0, end - begin]],
                              "backward": [[backward - begin, end_of_backward - begin]],
                              "average": [[a - begin, b - begin] for a, b in spans]}
    parameters = sum(each.numel() for each in trainings["gloo"].model.parameters())
    dist.destroy_process_group()
    return {"ranks": ranks, "parameters": parameters, "timeline of rank 0, in seconds": pictures,
            "ms": {name: {what: statistics.median(all_times) * 1e3
                          for what, all_times in by_name.items()}
                   for name, by_name in times.items()}}


def draw(row):
    """An SVG of one step with each back end, on one scale."""
    lines = row["timeline of rank 0, in seconds"]
    end = max(lines[name]["step"][0][1] for name in lines)
    width, height, left, y = 900, 26, 130, 30
    parts = []
    for name in lines:
        for what, spans in lines[name].items():
            parts.append(f'<text x="4" y="{y + 16}">{html.escape(f"{name}: {what}")}</text>')
            for first, last in spans:
                x, length = left + first / end * width, max(0.5, (last - first) / end * width)
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{height - 6}"'
                             f' fill="{COLOURS[what]}" stroke="#fff"/>')
            y += height
        y += height // 2
    title = (f"{row['parameters'] / 1e6:.1f} million parameters, {row['ranks']} ranks: one step of "
             f"rank 0, {end * 1e3:.0f} ms from left to right")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 10}" height="{y}" '
            f'font-family="sans-serif" font-size="12"><text x="4" y="16">{html.escape(title)}'
            f'</text>{"".join(parts)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--layers", default="2,12")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--bucket-mb", type=float, default=4.0,
                        help="DDP's bucket_cap_mb; default: 4 (torch's own is 25)")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--picture", type=Path, help="write the timeline of the last model")
    options = parser.parse_args()
    rows = []
    print(f"torch {torch.__version__}, {options.ranks} ranks, ms for a step")
    print(f"{'parameters':>12}  {'':16}{'unisono':>10}{'gloo':>10}{'ratio':>8}")
    for layers in map(int, options.layers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            row = unisono.spawn(measure, (Path(folder) / "store", options.ranks, layers,
                                          options.steps, options.bucket_mb), ranks=options.ranks)[0]
        rows.append(row)
        for what in row["ms"]["gloo"]:
            ours, theirs = row["ms"]["unisono"][what], row["ms"]["gloo"][what]
            ratio = f"{theirs / ours:8.1f}" if ours > 0 else f"{'-':>8}"
            print(f"{row['parameters']:>12}  {what:16}{ours:10.2f}{theirs:10.2f}{ratio}",
                  flush=True)
    if options.json:
        for row in rows:
            keep(options.json, f"{row['parameters']} parameters, {options.ranks} ranks",
                 {"torch": torch.__version__, **row})
    if options.picture:
        options.picture.write_text(draw(rows[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

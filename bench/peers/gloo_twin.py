#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Gloo twin of `unisono bench`, through torch.distributed, as its users call it.

It has the two methods of mpi_twin.c. loop: one clock around back-to-back calls, the slowest rank's
time. single: each call timed alone with a barrier before it, averaged over the ranks. Processor
time is that of the calling thread and, in the loops, of the process's others, which do Gloo's work.
The time per line is the same too; float32 and sum, results verified. JSON on rank 0. Python adds a
few microseconds to a call, which are in the figures.

With --operations N: the time of each of N calls in a row on rank 0 and the processor time of one.
With --late-us: the time from the last rank's call until all had returned, as in mpi_twin.c.

  RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... gloo_twin.py --collectives barrier --sizes 8
"""

import argparse
import json
import math
import os
import statistics
import time

import torch
import torch.distributed as dist

LOOPS, FEWEST_LOOPS, TRIALS, TRIAL_CALLS, FEWEST_SAMPLES = 7, 3, 3, 4, 5
MOST_SAMPLES = 100_000
WARM_UP = 100
SLEPT_FROM_US = 1000
PERIOD = 61
COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather"]


def values(rank, phase, count):
    """Whole numbers that depend on rank, phase and place; their sums are exact."""
    return (torch.arange(count, dtype=torch.float32) + (17 * rank + phase)) % PERIOD


class Cell:
    """A collective at a size, with its buffers."""

    def __init__(self, collective, size):
        self.collective = collective
        self.count = size // 4
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.buffer = torch.zeros(self.count)
        self.gathered = torch.zeros(self.count * self.ranks)
        self.blocks = list(self.gathered.split(self.count)) if self.count else []
        self.phase = 0

    def prepare(self):
        self.phase += 1
        self.gathered.fill_(-1)
        if self.collective == "broadcast" and self.rank != 0:
            self.buffer.fill_(-1)
        else:
            self.buffer.copy_(values(self.rank, self.phase, self.count))

    def call(self):
        if self.collective == "barrier":
            dist.barrier()
        elif self.collective == "broadcast":
            dist.broadcast(self.buffer, 0)
        elif self.collective == "reduce":
            dist.reduce(self.buffer, 0)
        elif self.collective == "allreduce":
            dist.all_reduce(self.buffer)
        else:
            dist.all_gather(self.blocks, self.buffer)

    def expected(self):
        ranks = [values(rank, self.phase, self.count) for rank in range(self.ranks)]
        if self.collective == "broadcast":
            return ranks[0]
        return torch.cat(ranks) if self.collective == "allgather" else sum(ranks)

    def wrong(self):
        if self.collective == "barrier" or (self.collective == "reduce" and self.rank != 0):
            return 0
        result = self.gathered if self.collective == "allgather" else self.buffer
        return int((result != self.expected()).sum())


def agree(value):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(tensor, 0)
    return tensor.item()


def combine(numbers, op):
    tensor = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(tensor, op)
    return tensor.tolist()


def summary(samples):
    ordered = sorted(samples)
    return {
        "median_us": statistics.median(ordered),
        "p99_us": ordered[math.ceil(0.99 * len(ordered)) - 1],
        "min_us": ordered[0],
        "max_us": ordered[-1],
        "mean_us": statistics.fmean(ordered),
        "samples": len(ordered),
    }


class CpuTime:
    """Processor time of the calling thread and of the process's others, in ns; as in mpi_twin.c."""

    def __init__(self, caller=0, others=0):
        self.caller, self.others = caller, others

    @classmethod
    def now(cls):
        caller = time.thread_time_ns()
        return cls(caller, time.process_time_ns() - caller)

    def __add__(self, other):
        return CpuTime(self.caller + other.caller, self.others + other.others)

    def __sub__(self, other):
        return CpuTime(self.caller - other.caller, self.others - other.others)

    def of_a_call(self, calls, ranks):
        sums = [self.caller / 1e3, max(0, self.others) / 1e3]
        caller, others = combine(sums, dist.ReduceOp.SUM)
        return {"cpu_us": caller / (calls * ranks), "agent_us": others / (calls * ranks)}


class CallClock:
    """The calling thread's processor time of calls one by one. Reading its clock costs a system
    call: the shortest reading is subtracted."""

    def __init__(self):
        self.calls, self.sum, self.shortest_reading = 0, 0, math.inf

    def __enter__(self):
        reading = time.thread_time_ns()
        self.start = time.thread_time_ns()
        self.shortest_reading = min(self.shortest_reading, self.start - reading)

    def __exit__(self, *_):
        self.sum += time.thread_time_ns() - self.start
        self.calls += 1

    def caller(self):
        return max(0, self.sum - self.calls * self.shortest_reading) if self.calls else 0


def one_loop(cell, calls):
    """Elapsed and processor time. Gloo reduces in place, so the result of many calls in a row
    is no known sum; results are verified by the other method."""
    cell.prepare()
    dist.barrier()
    cpu, start = CpuTime.now(), time.monotonic_ns()
    for _ in range(calls):
        cell.call()
    return time.monotonic_ns() - start, CpuTime.now() - cpu


def measure_loop(cell, method_ns):
    calls, elapsed = 1, 0
    while elapsed < 0.05 * method_ns:
        calls *= 2
        elapsed = agree(one_loop(cell, calls)[0])
    calls = max(1, int(method_ns * calls / elapsed / LOOPS))
    loops = LOOPS if elapsed / calls < method_ns / LOOPS else FEWEST_LOOPS
    times = [one_loop(cell, calls) for _ in range(loops)]
    slowest = combine([elapsed / 1e3 / calls for elapsed, _ in times], dist.ReduceOp.MAX)
    cpu = sum((cpu for _, cpu in times), CpuTime())
    return {**summary(slowest), "calls": calls, **cpu.of_a_call(calls * loops, cell.ranks)}


def one_call(cell, clock):
    """Elapsed time and wrong elements."""
    cell.prepare()
    dist.barrier()
    with clock:
        start = time.monotonic_ns()
        cell.call()
        elapsed = time.monotonic_ns() - start
    return elapsed, cell.wrong()


def measure_single(cell, method_ns):
    wrong, trial_ns = 0, math.inf
    for _ in range(TRIALS):
        start = time.monotonic_ns()
        wrong += sum(one_call(cell, CallClock())[1] for _ in range(TRIAL_CALLS))
        trial_ns = min(trial_ns, time.monotonic_ns() - start)
    fitting = int(method_ns / (trial_ns / TRIAL_CALLS))
    samples = int(agree(min(max(fitting, FEWEST_SAMPLES), MOST_SAMPLES)))
    clock = CallClock()
    calls = [one_call(cell, clock) for _ in range(samples)]
    times = combine([elapsed / 1e3 / cell.ranks for elapsed, _ in calls], dist.ReduceOp.SUM)
    wrong = combine([wrong + sum(each for _, each in calls)], dist.ReduceOp.SUM)[0]
    cpu = combine([clock.caller() / 1e3], dist.ReduceOp.SUM)[0]
    return {**summary(times), "cpu_us": cpu / (samples * cell.ranks)}, int(wrong)


def pause(for_us):
    """Long pauses are slept. In short ones a timer would count: it makes the core of who sleeps,
    and of nobody else, do something between the calls."""
    if for_us >= SLEPT_FROM_US:
        time.sleep(for_us / 1e6)
        return
    until = time.monotonic_ns() + 1000 * for_us
    while time.monotonic_ns() < until:
        os.sched_yield()


def measure_each(collective, size, operations, pauses):
    """Calls in a row, one by one. Other threads work for a call during the pauses too: their
    processor time is that of the whole row."""
    cell = Cell(collective, size)
    called, returned, wrong, clock = [], [], 0, CallClock()
    dist.barrier()
    for number in range(WARM_UP + operations):
        if number == WARM_UP:
            clock, row_start = CallClock(), CpuTime.now()
        cell.prepare()
        pause(pauses.apart_us + (pauses.late_us if cell.rank == cell.ranks - 1 else 0))
        with clock:
            called.append(time.monotonic_ns())
            cell.call()
            returned.append(time.monotonic_ns())
        wrong += cell.wrong()
    cpu = CpuTime(clock.caller(), (CpuTime.now() - row_start).others)
    cpu = cpu.of_a_call(operations, cell.ranks)
    if pauses.late_us:  # of each call, the times of the rank that comes last to these points of it
        called, returned = (combine(each, dist.ReduceOp.MAX) for each in (called, returned))
    times = [int(end - start) for start, end in zip(called, returned)]
    head = {"collective": collective, "size": size, "count": cell.count}
    return {**head, **cpu, "times_ns": times[WARM_UP:], "wrong": wrong}


def measure(collective, size, seconds):
    cell = Cell(collective, size)
    loop = measure_loop(cell, seconds * 1e9 / 2)
    single, wrong = measure_single(cell, seconds * 1e9 / 2)
    return {
        "collective": collective,
        "size": size,
        "count": cell.count,
        "loop": loop,
        "single": single,
        "wrong": wrong,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--sizes", default="8,1024")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--operations", type=int, default=0)
    parser.add_argument("--apart-us", type=int, default=0)
    parser.add_argument("--late-us", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    results = []
    for collective in arguments.collectives.split(","):
        sizes = [0] if collective == "barrier" else map(int, arguments.sizes.split(","))
        if arguments.operations:
            calls = arguments.operations
            results += [measure_each(collective, size, calls, arguments) for size in sizes]
        else:
            results += [measure(collective, size, arguments.seconds) for size in sizes]
    if dist.get_rank() == 0:
        library = f"Gloo of torch {torch.__version__}"
        head = {"tool": "gloo_twin", "library": library, "ranks": dist.get_world_size()}
        print(json.dumps({**head, "results": results}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

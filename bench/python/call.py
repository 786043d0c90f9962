# SPDX-License-Identifier: BSD-3-Clause
"""The calls of bench/python/call.c, from Python: prints ns of processor time for a call of an
allreduce of one float64 in NumPy arrays, and for a call of its plan. Usage: call.py CALLS"""

import sys
import time

import numpy
import unisono

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000


def mean_ns(call, *arguments):
    """Without the time of an empty loop."""
    begin = time.process_time_ns()
    for _ in range(CALLS):
        pass
    empty = time.process_time_ns() - begin
    begin = time.process_time_ns()
    for _ in range(CALLS):
        call(*arguments)
    return (time.process_time_ns() - begin - empty) / CALLS


with unisono.init() as comm:
    mine, total = numpy.ones(1), numpy.empty(1)
    with comm.allreduce_plan(mine, total) as plan:
        print(f"{mean_ns(comm.allreduce, mine, total):.1f} {mean_ns(plan):.1f}")

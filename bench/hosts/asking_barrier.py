#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two ways to a barrier between hosts, one rank on each, of which by turns one comes late.

`signals` is unisono_barrier: all signal to rank 0, one multicast releases them. `asking` is a
software test-and-set barrier (bench/hosts/asking_barrier.cpp). Rank 0 asks all for their progress,
again after a pause that doubles, and releases them with a multicast. The hosts are network
namespaces of this machine (as root). A line is the median of the repetitions: from the last
arrival until the last rank has left, and what one barrier takes in all hosts together.
"""

import argparse
import json
import pathlib
import statistics
import sys

from host_set import Failed, HostSet, in_a_row, run_main, unisono_job, why_not

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WAYS = {"signals": [], "asking": ["--asking"]}


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/asking_barrier.py --hosts 4,8 --late 0,1000,10000",
    )
    add = parser.add_argument
    add("--hosts", type=numbers, default=[4, 8], help="how many; default: 4,8")
    add("--late", type=numbers, default=[0, 1000, 10000], metavar="US",
        help="by how many microseconds; default: 0,1000,10000")
    add("--calls", type=int, default=200, help="barriers of one measurement; default: 200")
    add("--repeat", type=int, default=3, help="repetitions; default: 3")
    add("--limit", type=float, default=120, help="seconds after which it is given up")
    add("--build", type=pathlib.Path, default=ROOT / "build/release",
        help="the folder of bin/unisono and bench/asking_barrier; default: build/release")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    return parser.parse_args()


def measure(host_set, late, way, arguments):
    words = ["--calls", arguments.calls, "--late-us", late, *WAYS[way]]
    program = arguments.build.resolve() / "bench/asking_barrier"
    job = unisono_job(host_set, in_a_row(host_set.count, 1), words, program=program)
    return json.loads(host_set.run(job, arguments.limit))


def rows(arguments):
    for hosts in arguments.hosts:
        samples = {}
        with HostSet(arguments.build / "bin/unisono", hosts) as host_set:
            for _ in range(arguments.repeat):
                for late in arguments.late:
                    for way in WAYS:
                        figures = measure(host_set, late, way, arguments)
                        samples.setdefault((late, way), []).append(figures)
        for (late, way), several in samples.items():
            medians = {name: statistics.median(one[name] for one in several) for name in several[0]}
            yield {"hosts": hosts, "late_us": late, "way": way, **medians}


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.build / "bin/unisono"):
        sys.exit(f"asking_barrier.py: {reason}")
    print(f"{'hosts':>5} {'late':>7}  {'way':<8} {'median':>9} {'p99':>9} {'packets':>8} "
          f"{'cpu':>8} {'questions':>10}    us")
    table = []
    try:
        for row in rows(arguments):
            table.append(row)
            print("{hosts:>5} {late_us:>7}  {way:<8} {median_us:>9.1f} {p99_us:>9.1f} "
                  "{packets:>8.2f} {cpu_us:>8.1f} {questions:>10.2f}".format(**row), flush=True)
    except Failed as error:
        sys.exit(f"asking_barrier.py: {error}")
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The processor time of a waiting rank: in the NIC path, and by processes.

The hosts are network namespaces of this machine (as root), one rank each. All but the last rank
call, and the last does so --late microseconds later. The others have contributed, wait, and get the
result. Measured are the mean of their threads' processor time for a call, and how often they are
woken in it (short sleeps included, voluntary context switches). The kernel's work for packets is in
the time of the thread that happens to do it. The paths take turns. It prints medians of the rounds,
as a table for docs/explanation/nic-path-costs.md.
"""

import argparse
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE.parent / "hosts"), str(HERE.parent / "peers")]

from compare import Shape, Work, number  # noqa: E402  (its folder has to be known first)
from host_set import Failed, HostSet, run_main, why_not  # noqa: E402
from paths import OwnPath  # noqa: E402
from peer_report import progress, read_report  # noqa: E402

WAYS = ("nic", "udp", "tcp")


def measure(host_set, hosts, path, arguments):
    """{collective: (processor time, times woken)} of a call."""
    shape = Shape(hosts)
    with path.around(host_set, shape):
        work = Work(arguments.collectives, arguments.calls, late_us=arguments.late)
        report = read_report(host_set.run(path.commands(host_set, shape, work), arguments.limit))
    return {row["collective"]: (row["processor_us"], row["wake_ups"]) for row in report["results"]}


def rows(arguments):
    """{(collective, hosts): {way: [(processor time, times woken)]}}"""
    paths = [OwnPath(name, arguments) for name in WAYS]
    found = {}
    for hosts in arguments.hosts:
        with HostSet(arguments.unisono, hosts) as host_set:
            for turn in range(arguments.rounds):
                for path in paths:
                    progress(f"{hosts} hosts, round {turn + 1}, {path.name}")
                    for collective, cell in measure(host_set, hosts, path, arguments).items():
                        ways = found.setdefault((collective, hosts), {})
                        ways.setdefault(path.name, []).append(cell)
    progress("")
    return found


def print_table(found):
    print("| | hosts | NIC path: us | woken | UDP: us | woken | TCP: us | woken |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (collective, hosts), ways in found.items():
        cells = [number(statistics.median(each)) for way in WAYS for each in zip(*ways[way])]
        print(f"| {collective} | {hosts} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--hosts", type=lambda text: [int(word) for word in text.split(",")], default=[4, 8, 16],
        help="numbers of hosts; default: 4,8,16")
    add("--collectives", type=lambda text: text.split(","), default=["barrier", "allreduce"],
        help="default: barrier,allreduce")
    add("--late", type=int, default=5000, help="microseconds; default: 5000")
    add("--calls", type=int, default=500, help="of a collective in a round; default: 500")
    add("--rounds", type=int, default=3, help="turns of each; default: 3")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    arguments = parser.parse_args()
    arguments.doubles = arguments.integers = 0
    if reason := why_not(arguments.unisono):
        sys.exit(f"processor_time.py: {reason}")
    try:
        print_table(rows(arguments))
    except Failed as error:
        sys.exit(f"processor_time.py: {error}")


if __name__ == "__main__":
    run_main(main)

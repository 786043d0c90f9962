#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces between hosts that also send ordinary traffic: in the NIC path and by processes, with
and without it, in one run by turns.

The hosts are network namespaces of this machine (as root), one rank on each. Each host sends at
most --rate, with the kernel's own queueing discipline, pfifo_fast, before that. For the traffic
the second and the third host send datagrams of 1400 bytes to each other. They do so as fast as
these leave, so their queues are never empty. Each of the calls is timed on rank 0, as
bench/nic/compare.py does.

Example:
  bench/nic/ordinary_traffic.py --hosts 4,8,16
"""

import argparse
import contextlib
import json
import pathlib
import sys

import compare  # it says where the next ones are
from host_set import Failed, HostSet, end, run_main, why_not
from turns import SAID, find_ways, measure

FLOODING = [1, 2]  # hosts, from 0
LEAST_HOSTS = 3
FLOOD = """
import socket, sys
to = (sys.argv[1], 9)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagram = bytes(1400)
one.sendto(datagram, to)
print("sends", flush=True)
while True:
    try:
        one.sendto(datagram, to)
    except ConnectionRefusedError:
        pass
"""
COLUMNS = {"median": "median_us", "mean": "mean_us", "deviation": "deviation_us", "p99": "p99_us"}


def limit_rate(host_set, rate):
    for host in range(host_set.count):
        for words in [f"root handle 1: tbf rate {rate} burst 32k latency 1s",
                      "parent 1:1 pfifo_fast"]:
            command = ["tc", "qdisc", "add", "dev", "eth0", *words.split()]
            try:
                host_set.run([(host, command)], 60)
            except Failed as error:
                raise Failed(f"this kernel has no token bucket filter (tbf): {error}") from None


@contextlib.contextmanager
def flood(host_set, wanted):
    senders = []
    try:
        for host, other in zip(FLOODING, reversed(FLOODING)) if wanted else []:
            command = [sys.executable, "-c", FLOOD, host_set.address(other)]
            senders.append(host_set.start(host, command))
        for sender in senders:
            if sender.stdout.readline().strip() != "sends":
                raise Failed(f"no ordinary traffic: {sender.communicate()[1]}")
        yield
    finally:
        for sender in senders:
            end(sender)


def rows_of(shape, calls):
    return [
        {"collective": "allreduce", "hosts": shape.hosts, "traffic": traffic, "name": name,
         **each.summary()}
        for (traffic, name), each in calls.items()
    ]


def table(rows):
    """Markdown, in microseconds."""
    lines = [f"| allreduce | hosts | {' | '.join(COLUMNS)} | calls |",
             f"| --- | ---: | {' | '.join(['---:'] * len(COLUMNS))} | ---: |"]
    for row in rows:
        figures = " | ".join(compare.number(row[column]) for column in COLUMNS.values())
        traffic = ", ordinary traffic" if row["traffic"] else ""
        lines.append(f"| {SAID[row['name']]}{traffic} | {row['hosts']} | {figures} "
                     f"| {row['calls']} |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", type=lambda text: [int(word) for word in text.split(",")], default=[4, 8, 16],
        help="numbers of hosts; default: 4,8,16")
    add("--operations", type=int, default=2000, help="calls of each; default: 2000")
    add("--rounds", type=int, default=2, help="turns of each; default: 2")
    add("--rate", default="100mbit", help="of each host; default: 100mbit")
    add("--unisono", type=pathlib.Path, default=compare.ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    arguments = parser.parse_args()
    if min(arguments.operations, arguments.rounds) < 1 or min(arguments.hosts) < LEAST_HOSTS:
        parser.error(f"--operations and --rounds are at least 1, --hosts {LEAST_HOSTS}")
    return arguments


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.unisono):
        sys.exit(f"ordinary_traffic.py: {reason}")
    rows = []
    try:
        ways = find_ways(arguments.unisono, arguments.limit)
        for count in arguments.hosts:
            shape = compare.Shape(count)
            with HostSet(arguments.unisono, count) as host_set:
                limit_rate(host_set, arguments.rate)
                rows += rows_of(shape, measure(host_set, shape, ways, arguments,
                                               lambda wanted: flood(host_set, wanted)))
    except Failed as error:
        sys.exit(f"ordinary_traffic.py: {error}")
    print(table(rows))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces between hosts that also send ordinary traffic: in the NIC path and by processes, with
and without it, in one run by turns.

The hosts are network namespaces of this machine (as root), one rank on each. Each host sends at
most --rate, with the kernel's own queueing discipline, pfifo_fast, before that. For the traffic
the second and the third host send to each other, as fast as it leaves:

  datagrams   UDP of 1400 bytes each, so that their queues are never empty
  streams     bulk TCP, one connection each way, as iperf does

Each of the calls is timed on rank 0, as bench/nic/compare.py does. With --json the figures go to a
file too. Figures for other numbers of hosts and other traffic stay in that file.

Example:
  bench/nic/ordinary_traffic.py --hosts 4,8,16 --traffic streams
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
DATAGRAMS = """
import socket, sys
to = (sys.argv[2], 9)
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
STREAMS = """
import socket, sys, threading, time
own, other = sys.argv[1:]
server = socket.create_server((own, 9))
def receive():
    stream, _ = server.accept()
    buffer = bytearray(1 << 16)
    while stream.recv_into(buffer):
        pass
threading.Thread(target=receive, daemon=True).start()
stream = None
while stream is None:
    try:
        stream = socket.create_connection((other, 9))
    except ConnectionRefusedError:
        time.sleep(0.05)  # the other one does not listen yet
piece = bytes(1 << 16)
stream.sendall(piece)
print("sends", flush=True)
while True:
    stream.sendall(piece)
"""
TRAFFIC = {"datagrams": DATAGRAMS, "streams": STREAMS}
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
def flood(host_set, kind, wanted):
    senders = []
    try:
        for host, other in zip(FLOODING, reversed(FLOODING)) if wanted else []:
            command = [sys.executable, "-c", TRAFFIC[kind], host_set.address(host),
                       host_set.address(other)]
            senders.append(host_set.start(host, command))
        for sender in senders:
            if sender.stdout.readline().strip() != "sends":
                raise Failed(f"no ordinary traffic: {sender.communicate()[1]}")
        yield
    finally:
        for sender in senders:
            end(sender)


def rows_of(shape, kind, calls):
    """A row without traffic belongs to those with that kind: they took turns."""
    return [
        {"collective": "allreduce", "hosts": shape.hosts, "kind": kind, "traffic": traffic,
         "name": name, **each.summary()}
        for (traffic, name), each in calls.items()
    ]


def table(rows):
    """Markdown, in microseconds."""
    lines = [f"| allreduce | hosts | {' | '.join(COLUMNS)} | calls |",
             f"| --- | ---: | {' | '.join(['---:'] * len(COLUMNS))} | ---: |"]
    for row in rows:
        figures = " | ".join(compare.number(row[column]) for column in COLUMNS.values())
        traffic = f", {row['kind']}" if row["traffic"] else ""
        lines.append(f"| {SAID[row['name']]}{traffic} | {row['hosts']} | {figures} "
                     f"| {row['calls']} |")
    return "\n".join(lines)


def write(rows, arguments):
    """Beside the rows of earlier runs that are not made anew."""
    path = arguments.json
    before = json.loads(path.read_text()) if path.exists() else {"commands": [], "results": []}
    new = {(row["hosts"], row["kind"]) for row in rows}
    rows = rows + [row for row in before["results"] if (row["hosts"], row["kind"]) not in new]
    rows.sort(key=lambda row: (row["kind"], row["hosts"], row["traffic"], row["name"]))
    hosts = ",".join(map(str, arguments.hosts))
    command = (f"bench/nic/ordinary_traffic.py --hosts {hosts} --traffic {arguments.traffic} "
               f"--rate {arguments.rate} --operations {arguments.operations} "
               f"--rounds {arguments.rounds}")
    document = {"tool": "nic/ordinary_traffic.py", "machine": arguments.machine,
                "commands": sorted({*before["commands"], command}), "results": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", type=lambda text: [int(word) for word in text.split(",")], default=[4, 8, 16],
        help="numbers of hosts; default: 4,8,16")
    add("--operations", type=int, default=2000, help="calls of each; default: 2000")
    add("--rounds", type=int, default=2, help="turns of each; default: 2")
    add("--traffic", choices=sorted(TRAFFIC), default="datagrams", help="default: datagrams")
    add("--rate", default="100mbit", help="of each host; default: 100mbit")
    add("--unisono", type=pathlib.Path, default=compare.ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    add("--machine", default="", help="what the file says about the machine")
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
                calls = measure(host_set, shape, ways, arguments,
                                lambda wanted: flood(host_set, arguments.traffic, wanted))
                rows += rows_of(shape, arguments.traffic, calls)
    except Failed as error:
        sys.exit(f"ordinary_traffic.py: {error}")
    print(table(rows))
    if arguments.json:
        write(rows, arguments)


if __name__ == "__main__":
    run_main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The processor time of a waiting rank: in the NIC path, and by processes.

The hosts are network namespaces of this machine (as root), one rank each. All but the last rank
call, and the last does so --late microseconds later. The others have contributed, wait, and get the
result. Measured are the mean of their threads' processor time for a call, how often they are woken
in it (short sleeps included, voluntary context switches), and how many datagrams they receive. The
kernel's work for packets is in the time of the thread that happens to do it. The paths take turns.
It prints medians of the rounds, as a table for docs/explanation/nic-path-costs.md. The tree on TCP
has a barrier and an allreduce of 8 bytes only.
"""

import argparse
import json
import pathlib
import statistics
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE.parent / "hosts"), str(HERE.parent / "peers")]

from compare import Shape, Work, number  # noqa: E402  (its folder has to be known first)
from host_set import Failed, HostSet, run_main, why_not  # noqa: E402
from paths import OwnPath  # noqa: E402
from peer_report import progress, read_report  # noqa: E402

WAYS = ("nic", "udp", "tcp")
FIGURES = {"processor_us": "us", "wake_ups": "woken", "received": "datagrams"}  # of path_twin
COLLECTIVES = ("barrier", "allreduce", "allgather")
WORD_BYTES = 8


def rows_of(way, arguments):
    """[(bytes, collectives)]: those that one run measures."""
    if way == "tcp":
        known = [each for each in arguments.collectives if each in ("barrier", "allreduce")]
        return [(WORD_BYTES, known)] if known else []
    rows = [(0, ["barrier"])] if "barrier" in arguments.collectives else []
    for collective, sizes in [("allreduce", arguments.sizes), ("allgather", arguments.blocks)]:
        rows += [(size, [collective]) for size in sizes if collective in arguments.collectives]
    return rows


def path_of(way, size, arguments):
    integers = 0 if way == "tcp" else size // WORD_BYTES
    return OwnPath(way, types.SimpleNamespace(unisono=arguments.unisono, doubles=0,
                                              integers=integers))


def measure(host_set, hosts, way, arguments):
    """{(collective, bytes): {figure: number}} of a call."""
    shape = Shape(hosts)
    rows = rows_of(way, arguments)
    if not rows:
        return {}
    found = {}
    with path_of(way, 0, arguments).around(host_set, shape):
        for size, collectives in rows:
            work = Work(collectives, arguments.calls, late_us=arguments.late)
            commands = path_of(way, size, arguments).commands(host_set, shape, work)
            report = read_report(host_set.run(commands, arguments.limit))
            for cell in report["results"]:
                key = (cell["collective"], 0 if cell["collective"] == "barrier" else size)
                found[key] = {figure: cell[figure] for figure in FIGURES}
    return found


def cells(arguments):
    """{(collective, bytes, hosts): {way: [{figure: number}]}}"""
    found = {}
    for hosts in arguments.hosts:
        with HostSet(arguments.unisono, hosts) as host_set:
            for turn in range(arguments.rounds):
                for way in WAYS:
                    progress(f"{hosts} hosts, round {turn + 1}, {way}")
                    for (collective, size), cell in measure(
                        host_set, hosts, way, arguments
                    ).items():
                        ways = found.setdefault((collective, size, hosts), {})
                        ways.setdefault(way, []).append(cell)
    progress("")
    return {key: {way: medians(several) for way, several in ways.items()}
            for key, ways in sorted(found.items())}


def medians(several):
    return {figure: statistics.median(each[figure] for each in several) for figure in FIGURES}


def print_table(found):
    heads = [f"{way.upper()}: {name}" for way in WAYS for name in FIGURES.values()]
    print(f"| | bytes | hosts | {' | '.join(heads)} |")
    print(f"| --- | ---: | ---: | {' | '.join(['---:'] * len(heads))} |")
    for (collective, size, hosts), ways in found.items():
        figures = [number(ways.get(way, {}).get(figure)) for way in WAYS for figure in FIGURES]
        print(f"| {collective} | {size} | {hosts} | {' | '.join(figures)} |")


def document(found, arguments):
    return {
        "tool": "nic/processor_time.py",
        "command": " ".join(["bench/nic/processor_time.py", *sys.argv[1:]]),
        "machine": arguments.machine,
        "late_us": arguments.late,
        "calls": arguments.calls,
        "rounds": arguments.rounds,
        "results": [
            {"collective": collective, "bytes": size, "hosts": hosts, "name": way, **figures}
            for (collective, size, hosts), ways in found.items()
            for way, figures in ways.items()
        ],
    }


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--hosts", type=numbers, default=[4, 8, 16], help="numbers of hosts; default: 4,8,16")
    add("--collectives", type=lambda text: text.split(","), default=list(COLLECTIVES),
        help=f"default: {','.join(COLLECTIVES)}")
    add("--sizes", type=numbers, default=[8, 1400, 5600], metavar="BYTES",
        help="of the vectors of allreduces; default: 8,1400,5600, a packet has 1400")
    add("--blocks", type=numbers, default=[8, 1400, 2800], metavar="BYTES",
        help="of a rank in an allgather; default: 8,1400,2800")
    add("--late", type=int, default=5000, help="microseconds; default: 5000")
    add("--calls", type=int, default=500, help="of a collective in a round; default: 500")
    add("--rounds", type=int, default=3, help="turns of each; default: 3")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    add("--machine", default="", help="what the file says about the machine")
    arguments = parser.parse_args()
    for collective in arguments.collectives:
        if collective not in COLLECTIVES:
            parser.error(f"--collectives: nothing is named '{collective}': {','.join(COLLECTIVES)}")
    if any(size < WORD_BYTES or size % WORD_BYTES for size in arguments.sizes + arguments.blocks):
        parser.error(f"--sizes and --blocks are multiples of {WORD_BYTES}")
    if reason := why_not(arguments.unisono):
        sys.exit(f"processor_time.py: {reason}")
    try:
        found = cells(arguments)
    except Failed as error:
        sys.exit(f"processor_time.py: {error}")
    print_table(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(document(found, arguments), indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

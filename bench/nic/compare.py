#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares barriers and allreduces of 8 bytes (or --doubles) in the NIC path and by processes.

The hosts are network namespaces of this machine (`unisono hosts`, as root), with one rank each or
--per-host of them. Calls are made in a row and each is timed on rank 0, in all implementations
alike. With --apart US each rank waits so many microseconds between its calls. The last one waits
as many more, so that all others have called. The times are from its call until all ranks have
returned:

  nic     the NIC path, by unisonod on each host
  asking  the same, with barriers in which the root asks, if asked for
  whole, split1, split2   the same, with vectors whole, in two and in four pieces, if asked for
  udp     Unisono's processes: datagrams and IP multicast
  tcp     processes on a binomial tree of TCP connections
  others  as bench/hosts/implementations.py starts them

All take turns, again and again, so that whatever else the machine does meets all alike. A short
trial finds how many calls fit into --seconds; no more than --operations are made. It prints
median, mean, standard deviation and the tail. Mean and deviation leave out the highest 1 % of the
calls; near is the share of the others within 10 % of that mean, in %. Then comes the processor time
of a call, the mean of all ranks: cpu of the calling thread, others of the process's other threads.
It is a table for
docs/explanation/nic-path-costs.md; distributions go to nic.json, from which picture.py draws.
Hosts, daemons and hogs are gone at the end, however it comes.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE.parent / "hosts"), str(HERE.parent / "peers")]

from distribution import quantiles, summary  # noqa: E402  (its folder has to be known first)
from hogs import Hogs  # noqa: E402
from host_set import Failed, HostSet, run_main, why_not  # noqa: E402
from implementations import ENVIRONMENTS, IMPLEMENTATIONS, Missing, Unisono  # noqa: E402
from paths import OWN, SPLITS, own_paths, without_daemons  # noqa: E402
from peer_report import Unusable, progress, read_report  # noqa: E402
from quiet import wait_until_quiet  # noqa: E402

COLLECTIVES = ["barrier", "allreduce"]
# Only this project's paths are asked for these, and not by TCP.
OF_OWN = ["reduce", "broadcast", "allgather"]
OTHERS = [each for each in IMPLEMENTATIONS if each is not Unisono]  # which is here as udp
PEERS = [each.name for each in OTHERS]
NAMES = [*OWN, *PEERS]
UNLESS_TOLD = [name for name in NAMES if name not in ("asking", "whole", "split1", "split2")]
COLUMNS = {
    "median": "median_us", "mean": "mean_us", "deviation": "deviation_us", "p99": "p99_us",
    "p99.9": "p999_us", "mean99": "trimmed_mean_us", "dev99": "trimmed_deviation_us",
    "near": "near_percent", "cpu": "cpu_us", "others": "agent_us",
}
TRIAL_OPERATIONS = 20
LEAST_OPERATIONS = 20


@dataclasses.dataclass(frozen=True)
class Shape:
    hosts: int
    per_host: int = 1

    @property
    def ranks(self):
        return self.hosts * self.per_host

    def __str__(self):
        return str(self.hosts) if self.per_host == 1 else f"{self.hosts}x{self.per_host}"


@dataclasses.dataclass(frozen=True)
class Work:
    collectives: list
    operations: int
    sizes: str = "8"
    seconds: float = 0
    apart_us: int = 0
    late_us: int = 0


@dataclasses.dataclass
class Calls:
    """Each call's time on rank 0, and the processor time of all, a rank's mean."""

    times_ns: list = dataclasses.field(default_factory=list)
    cpu_us: float = 0
    agent_us: float = 0

    @classmethod
    def of(cls, cell):
        calls = len(cell["times_ns"])
        return cls(list(cell["times_ns"]), calls * cell["cpu_us"], calls * cell["agent_us"])

    def add(self, more):
        self.times_ns += more.times_ns
        self.cpu_us += more.cpu_us
        self.agent_us += more.agent_us

    def summary(self):
        calls = len(self.times_ns)
        processor = {"cpu_us": self.cpu_us / calls, "agent_us": self.agent_us / calls}
        return {**summary(self.times_ns), **processor}


def say(text):
    print(f"compare.py: {text}", file=sys.stderr, flush=True)


def find_all(arguments):
    ways = own_paths(arguments)
    ways += [(each.name, lambda each=each: each.find(arguments)) for each in OTHERS]
    found = []
    for name, find in ways:
        if name not in arguments.only:
            continue
        try:
            found.append(find())
        except Missing as missing:
            say(f"{name} is left out: {missing}")
    return found


def run_once(host_set, implementation, shape, operations, arguments):
    """{collective: Calls}, or None, having said why there are none."""
    bytes_of_vector = 8 * (arguments.doubles or arguments.integers or 1)
    pauses = {"apart_us": arguments.apart, "late_us": arguments.apart}
    work = Work(arguments.collectives, operations, sizes=str(bytes_of_vector), **pauses)
    around = getattr(implementation, "around", without_daemons)
    try:
        with around(host_set, shape):
            commands = implementation.commands(host_set, shape, work)
            report = read_report(host_set.run(commands, arguments.limit))
    except (Failed, Unusable) as error:
        say(f"{implementation.name}, {shape} hosts: {error}")
        return None
    return {cell["collective"]: Calls.of(cell) for cell in report["results"]}


def fitting(trial, arguments):
    """How many calls of each collective a run makes."""
    call_ns = sum(statistics.fmean(calls.times_ns) + 2e3 * arguments.apart
                  for calls in trial.values())
    most = -(-arguments.operations // arguments.rounds)
    return max(LEAST_OPERATIONS, min(most, int(arguments.seconds * 1e9 / call_ns)))


def measure(host_set, shape, found, arguments):
    """{collective: {name: Calls}}, the implementations by turns."""
    operations = {}
    for implementation in found:
        progress(f"{shape} hosts, trial, {implementation.name}")
        trial = run_once(host_set, implementation, shape, TRIAL_OPERATIONS, arguments)
        if trial is not None:
            operations[implementation] = fitting(trial, arguments)
    times = {collective: {} for collective in arguments.collectives}
    order = list(operations)
    for turn in range(arguments.rounds):
        order = order[1:] + order[:1]  # each is as often the first as any other
        for implementation in order:
            progress(f"{shape} hosts, round {turn + 1}, {implementation.name}")
            if arguments.quiet > 0:
                wait_until_quiet(arguments.quiet)
            run = run_once(
                host_set, implementation, shape, operations[implementation], arguments
            )
            for collective, more in (run or {}).items():
                times[collective].setdefault(implementation.name, Calls()).add(more)
    progress("")
    return times


def number(value):
    return "" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def print_table(measured, names, arguments):
    """Markdown, in microseconds."""
    circumstances = ", a hog on each core" if arguments.hogs else ""
    apart = "From the last rank's call until all have returned"
    print(f"{apart if arguments.apart else 'Whole calls'}{circumstances}; microseconds:\n")
    print(f"| | hosts | | {' | '.join(COLUMNS)} | calls |")
    print(f"| --- | ---: | --- | {' | '.join(['---:'] * len(COLUMNS))} | ---: |")
    for collective in arguments.collectives:
        for shape, times in measured:
            for name in names:
                if name not in times[collective]:
                    continue
                row = times[collective][name].summary()
                line = " | ".join(number(row[figure]) for figure in COLUMNS.values())
                print(f"| {collective} | {shape} | {name} | {line} | {row['calls']} |")
    sys.stdout.flush()


def document(measured, arguments):
    return {
        "tool": "nic/compare.py",
        "hogs": arguments.hogs,
        "apart_us": arguments.apart,
        "at_once": arguments.at_once,
        "one_root": arguments.one_root,
        "results": [
            {
                "collective": collective,
                "hosts": shape.hosts,
                "per_host": shape.per_host,
                "name": name,
                **calls.summary(),
                "quantiles_us": quantiles(calls.times_ns),
            }
            for shape, times in measured
            for collective, by_name in times.items()
            for name, calls in by_name.items()
        ],
    }


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/nic/compare.py --quiet 60 --install\n"
        "  build/venv/bin/python bench/nic/picture.py build/bench/nic.json nic.svg",
    )
    add = parser.add_argument
    add("--hosts", type=lambda text: [int(word) for word in text.split(",")],
        default=[4, 8, 16], help="numbers of hosts; default: 4,8,16")
    add("--per-host", type=int, default=1, help="ranks on each of them; default: 1")
    add("--collectives", type=lambda text: text.split(","), default=COLLECTIVES,
        help="default: barrier,allreduce; also allgather, and reduce and broadcast with a root "
        "each in turn")
    add("--operations", type=int, default=20000,
        help="most calls of a cell, over all rounds; default: 20000")
    add("--seconds", type=float, default=20,
        help="no more calls in a run than fit into so many; default: 20")
    add("--rounds", type=int, default=5, help="turns of each; default: 5")
    add("--only", type=lambda text: text.split(","), default=UNLESS_TOLD,
        help=f"of {','.join(NAMES)}")
    add("--doubles", type=int, default=0,
        help="allreduces of so many float64 (others: as many bytes); default: of two float32")
    add("--integers", type=int, default=0, help="the same of so many int64")
    add("--apart", type=int, default=0, metavar="US",
        help="microseconds between calls, and between the last rank and the others; default: 0")
    add("--at-once", type=int, default=1, metavar="N",
        help="start N allreduces and then wait for all; times are of one of them; default: 1")
    add("--one-root", action="store_true",
        help="of all broadcasts and reduces; default: each rank in turn")
    add("--hogs", action="store_true", help="beside a busy loop on each core")
    add("--quiet", type=float, default=0,
        help="before each run wait up to so many seconds for a quiet machine")
    add("--limit", type=float, default=600, help="seconds after which a run is given up")
    add("--install", action="store_true", help="fetch the wheels of Open MPI 5 and MPICH 5")
    add("--environments", type=pathlib.Path, default=ENVIRONMENTS,
        help="folder of these wheels; default: build/venv-mpi")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--output", dest="directory", type=pathlib.Path, default=ROOT / "build/bench",
        help="directory for twins, wheels and nic.json; default: build/bench")
    arguments = parser.parse_args(words)
    least = min(arguments.rounds, arguments.operations, arguments.per_host, *arguments.hosts)
    if least < 1:
        parser.error("--rounds, --operations, --per-host and --hosts must be at least 1")
    if min(arguments.doubles, arguments.integers, arguments.apart) < 0:
        parser.error("--doubles, --integers and --apart must not be negative")
    if arguments.doubles and arguments.integers:
        parser.error("either --doubles or --integers")
    if set(arguments.collectives) & set(OF_OWN) and set(arguments.only) & {"tcp", *PEERS}:
        parser.error(f"{','.join(OF_OWN)}: for --only {','.join(SPLITS)},udp")
    if arguments.at_once < 1:
        parser.error("--at-once must be at least 1")
    if arguments.at_once > 1 and set(arguments.only) & {"tcp", *PEERS}:
        parser.error(f"--at-once: for --only {','.join(SPLITS)},udp")
    if arguments.hogs and arguments.quiet > 0:
        parser.error("--quiet waits for what --hogs prevents")
    for option, given, known in [
        ("--only", arguments.only, NAMES),
        ("--collectives", arguments.collectives, COLLECTIVES + OF_OWN),
    ]:
        for name in given:
            if name not in known:
                parser.error(f"{option}: nothing is named '{name}': {','.join(known)}")
    return arguments


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.unisono):
        sys.exit(f"compare.py: {reason}")
    arguments.directory = arguments.directory.resolve()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    found = find_all(arguments)
    measured = []
    try:
        for count in arguments.hosts:
            shape = Shape(count, arguments.per_host)
            # No others on the bridge: a multicast would be copied to them as well.
            with HostSet(arguments.unisono, count) as host_set, Hogs(arguments.hogs):
                measured.append((shape, measure(host_set, shape, found, arguments)))
    except Failed as error:
        sys.exit(f"compare.py: {error}")
    print_table(measured, [each.name for each in found], arguments)
    path = arguments.directory / "nic.json"
    path.write_text(json.dumps(document(measured, arguments), indent=1) + "\n")
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    run_main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Unisono with Open MPI, MPICH and Gloo between hosts.

The hosts are network namespaces of this machine (`unisono hosts`, as root), the same for all. Each
implementation runs at its best setting (implementations.py says which), all in turn, again and
again, so that other load on the machine affects all alike. For each number of hosts and ranks, it
prints the median of the repetitions' medians and of their 99th percentiles, the least minimum, and
the processor time of a call. ratio is the best other by Unisono. All figures are in hosts.json
too, from which bench/peers/picture.py draws. Hosts and hogs are removed at the end, even after
errors.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))

from peer_report import (  # noqa: E402  (its folder has to be known first)
    Unusable,
    geometric_mean,
    number,
    progress,
    read_report,
)

from hogs import Hogs  # noqa: E402
from host_set import Failed, HostSet, parse_shape, run_main, why_not  # noqa: E402
from implementations import IMPLEMENTATIONS, Missing  # noqa: E402
from quiet import wait_until_quiet  # noqa: E402

COLLECTIVES = ["barrier", "allreduce", "broadcast", "allgather"]
# (method, statistic, what the repetitions come to)
COLUMNS = [
    ("single", "median_us", statistics.median),
    ("single", "p99_us", statistics.median),
    ("single", "min_us", min),
    ("single", "cpu_us", statistics.median),
    ("loop", "median_us", statistics.median),
    ("loop", "cpu_us", statistics.median),
    ("loop", "agent_us", statistics.median),
]
MEANING = {
    "single": "each call after a barrier, mean of the ranks",
    "loop": "calls back to back, the slowest rank's time for one",
}
PROCESSOR_TIME = {
    "cpu_us": "processor time of the calling thread for one call, mean of the ranks",
    "agent_us": "processor time of the process's other threads for one call, mean of the ranks",
}


def heading(method, statistic):
    if statistic not in PROCESSOR_TIME:
        return f"{statistic.removesuffix('_us')}: {MEANING[method]}"
    kind = "each call after a barrier" if method == "single" else "calls back to back"
    return f"{PROCESSOR_TIME[statistic]}; {kind}"


@dataclasses.dataclass(frozen=True)
class Shape:
    hosts: int
    per_host: int

    @property
    def ranks(self):
        return self.hosts * self.per_host

    def __str__(self):
        return f"{self.hosts}x{self.per_host}"


@dataclasses.dataclass(frozen=True)
class Work:
    collectives: list
    sizes: str
    seconds: float
    operations = 0  # as many calls, each timed, in place of what fits into the seconds
    apart_us = late_us = 0


def say(text):
    print(f"compare.py: {text}", file=sys.stderr, flush=True)


def find_all(arguments):
    found = []
    for each in IMPLEMENTATIONS:
        if arguments.only and each.name not in arguments.only:
            continue
        try:
            found.append(each.find(arguments))
        except Missing as missing:
            say(f"{each.name} is left out: {missing}")
    return found


def run_once(host_set, implementation, shape, arguments):
    """The report, or None, having said why there is none."""
    able = implementation.collectives
    collectives = [each for each in arguments.collectives if able is None or each in able]
    work = Work(collectives, arguments.sizes, arguments.seconds)
    commands = implementation.commands(host_set, shape, work)
    try:
        return read_report(host_set.run(commands, arguments.limit))
    except (Failed, Unusable) as error:
        say(f"{implementation.name}, {shape}: {error}")
        return None


def measure(host_set, shape, found, arguments):
    """[(name, report)], the implementations by turns."""
    runs = []
    order = list(found)
    for repetition in range(arguments.repeat):
        order = order[1:] + order[:1]  # each is as often the first as any other
        for implementation in order:
            progress(f"{shape}, repetition {repetition + 1}, {implementation.name}")
            if arguments.quiet > 0:
                wait_until_quiet(arguments.quiet)
            report = run_once(host_set, implementation, shape, arguments)
            if report is not None:
                runs.append((implementation.name, report))
    progress("")
    return runs


def gather(runs):
    """{(collective, size, method, statistic): {name: value}}, from all repetitions."""
    samples = {}
    for name, report in runs:
        for cell in report["results"]:
            for method, statistic, _ in COLUMNS:
                key = (cell["collective"], cell["size"], method, statistic)
                samples.setdefault(key, {}).setdefault(name, []).append(cell[method][statistic])
    join = {(method, statistic): function for method, statistic, function in COLUMNS}
    return {
        key: {name: join[key[2:]](values) for name, values in row.items()}
        for key, row in samples.items()
    }


def ratio(row):
    """How many times faster than the best other; None where there is none."""
    others = [value for name, value in row.items() if name != "unisono"]
    return min(others) / row["unisono"] if others and row.get("unisono") else None


def print_tables(figures, shape, names, arguments):
    circumstances = f", links of {arguments.rate}" if arguments.rate else ""
    circumstances += ", a hog on each core" if arguments.hogs else ""
    print(f"\n# {shape.hosts} hosts x {shape.per_host} ranks{circumstances}; times in us")
    for method, statistic, _ in COLUMNS:
        print(f"\n# {heading(method, statistic)}")
        head = "".join(f"{name:>11}" for name in names)
        print(f"# {'collective':<13}{'size':>8}{head}{'ratio':>9}")
        ratios = []
        for (collective, size, *rest), row in figures.items():
            if rest != [method, statistic]:
                continue
            line = f"  {collective:<13}{size if collective != 'barrier' else '':>8}"
            line += "".join(number(row.get(name), 11) for name in names)
            print(line + number(ratio(row), 9, "x"))
            ratios += [ratio(row)] if ratio(row) else []
        if ratios and statistic != "agent_us":  # most have no other threads
            blanks = " " * 11 * len(names)
            print(f"# {'geometric mean':<21}{blanks}{number(geometric_mean(ratios), 9, 'x')}")
    sys.stdout.flush()


def rows(figures, shape):
    """For each cell one row with all statistics, as bench/peers/picture.py reads them."""
    table = {}
    for (collective, size, method, statistic), row in figures.items():
        cell = {"hosts": shape.hosts, "ranks": shape.ranks, "method": method}
        cell |= {"collective": collective, "size": size}
        entry = table.setdefault((collective, size, method), cell)
        entry[statistic] = row
        if statistic == "median_us":
            entry["ratio"] = ratio(row)
    return list(table.values())


def document(measured, arguments):
    runs = [(name, report) for _, of_shape in measured for name, report in of_shape]
    machine = next((report["machine"] for name, report in runs if name == "unisono"), None)
    versions = {name: report.get("library", report.get("version")) for name, report in runs}
    return {
        "tool": "hosts/compare.py",
        "command": " ".join(["bench/hosts/compare.py", *sys.argv[1:]]),
        "machine": machine,
        "versions": versions,
        "rate": arguments.rate,
        "hogs": arguments.hogs,
        "repeat": arguments.repeat,
        "results": [row for shape, of_shape in measured for row in rows(gather(of_shape), shape)],
        "runs": [
            {"tool": name, "hosts": shape.hosts, "ranks": shape.ranks, "report": report}
            for shape, of_shape in measured
            for name, report in of_shape
        ],
    }


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/compare.py --shapes 4x1,8x2 --collectives allreduce",
    )
    known = ",".join(each.name for each in IMPLEMENTATIONS)
    add = parser.add_argument
    add("--shapes", type=lambda text: [Shape(*parse_shape(word)) for word in text.split(",")],
        default=[Shape(4, 1)], help="hosts x ranks on each; default: 4x1")
    add("--sizes", default="8,1024,65536", help="bytes; default: %(default)s")
    add("--collectives", type=lambda text: text.split(","), default=COLLECTIVES,
        help=f"default: {','.join(COLLECTIVES)}")
    add("--only", type=lambda text: text.split(","), help=f"some of {known}; default: all")
    add("--repeat", type=int, default=5, help="repetitions; default: 5")
    add("--seconds", type=float, default=0.3, help="time for one line; default: %(default)s")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--rate", default="", help="limit every link, each way: 200mbit")
    add("--hogs", action="store_true", help="a program on each core that only burns time")
    add("--quiet", type=float, default=0, metavar="SECONDS",
        help="before each run, wait at most so long for an idle machine; default: do not")
    add("--install", action="store_true", help="fetch the wheels of Open MPI 5 and MPICH 5")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--output", dest="directory", type=pathlib.Path, default=ROOT / "build/bench",
        help="directory for twins, wheels and hosts.json; default: build/bench")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    if arguments.hogs and arguments.quiet > 0:
        parser.error("--quiet waits for what --hogs prevents")
    for name in arguments.only or []:
        if name not in known.split(","):
            parser.error(f"--only: nothing is named '{name}': {known}")
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
        for shape in arguments.shapes:
            # No others on the bridge: a multicast would be copied to them as well.
            host_set = HostSet(arguments.unisono, shape.hosts, arguments.rate)
            with host_set, Hogs(arguments.hogs):
                runs = measure(host_set, shape, found, arguments)
            measured.append((shape, runs))
            print_tables(gather(runs), shape, [each.name for each in found], arguments)
    except Failed as error:
        sys.exit(f"compare.py: {error}")
    path = arguments.directory / "hosts.json"
    path.write_text(json.dumps(document(measured, arguments), indent=1) + "\n")
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    run_main(main)

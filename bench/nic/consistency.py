#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does a call take as long each time? By processes and in the NIC path, beside nothing and beside
busy loops, in one run by turns.

Each of 100,000 allreduces of two float32 is timed, as bench/nic/compare.py does, for each number
of hosts. Mean and standard deviation leave out the highest 1 % of the calls; near is the share of
the others within 10 % of that mean. It prints a table for docs/explanation/nic-path-costs.md, and
keeps figures and histograms in a file. Figures for other numbers of hosts stay in that file. With
--picture it draws the histograms, which needs matplotlib.

A long measurement can be made in pieces: with --piece FILE every call's time stays in that file,
and no round begins that would not end within --seconds. The same command makes the next rounds,
and the last of them the figures.

Example:
  bench/nic/consistency.py --hosts 4,8 --picture docs/pictures/consistency.svg
"""

import argparse
import json
import pathlib
import sys
import time

import compare  # it says where the next ones are
from distribution import BINS, histogram
from hogs import Hogs
from host_set import Failed, HostSet, run_main, why_not
from turns import SAID, find_ways, measure_round

COLUMNS = ["median_us", "trimmed_mean_us", "trimmed_deviation_us", "near_percent", "p999_us"]
TITLES = ["median", "mean without 1 %", "deviation", "of the mean", "within 10 % of it",
          "p99.9 of all"]


class Pieces:
    """The calls of the rounds made so far, and the seconds until which a round may end."""

    def __init__(self, path, seconds):
        self.path = path
        self.seconds = seconds
        self.began = time.monotonic()
        self.made = 0  # rounds of this piece
        self.kept = json.loads(path.read_text()) if path and path.exists() else {}

    def rounds_of(self, shape, operations):
        """(how many rounds are made, {(busy, name): Calls})"""
        kept = self.kept.get(str(shape))
        if kept is None:
            return 0, {}
        if kept["operations"] != operations:
            raise Failed(f"{self.path} has rounds of {kept['operations']} calls, not {operations}")
        calls = {(each["busy"], each["name"]): compare.Calls(**each["calls"])
                 for each in kept["ways"]}
        return kept["rounds"], calls

    def keep(self, shape, operations, rounds, calls):
        self.kept[str(shape)] = {
            "operations": operations, "rounds": rounds,
            "ways": [{"busy": busy, "name": name, "calls": vars(each)}
                     for (busy, name), each in calls.items()]}
        self.made += 1
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.kept))

    def have_time(self, round_seconds):
        taken = time.monotonic() - self.began + round_seconds
        return self.made == 0 or self.seconds == 0 or taken <= self.seconds


def rows_of(shape, calls):
    return [
        {"collective": "allreduce", "hosts": shape.hosts, "per_host": 1, "hogs": busy,
         "name": name, **each.summary(), "histogram": histogram(each.times_ns)}
        for (busy, name), each in calls.items()
    ]


def table(rows):
    """Markdown, in microseconds."""
    lines = [f"| | hosts | {' | '.join(TITLES)} |", f"| --- | ---: |{' ---: |' * len(TITLES)}"]
    for row in rows:
        figures = [compare.number(row[column]) for column in COLUMNS]
        figures[3] += " %"
        figures.insert(3, f"{row['trimmed_deviation_us'] / row['trimmed_mean_us']:.2f}")
        beside = ", busy loops" if row["hogs"] else ""
        lines.append(f"| {SAID[row['name']]}{beside} | {row['hosts']} | {' | '.join(figures)} |")
    return "\n".join(lines)


def draw(rows, path):
    """A panel for each number of hosts, beside nothing and beside busy loops."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "unisono"  # the same data gives the same file
    hosts = sorted({row["hosts"] for row in rows})
    figure, panels = plt.subplots(len(hosts), 2, figsize=(9, 2.3 * len(hosts) + 0.6), sharex=True,
                                  squeeze=False)
    for row in rows:
        axes = panels[hosts.index(row["hosts"])][int(row["hogs"])]
        times, shares = zip(*row["histogram"])
        color = "#c02020" if row["name"] == "nic" else "#2050a0"
        axes.stairs(shares, [*times, times[-1] * 10 ** (1 / BINS)], fill=True, alpha=0.35,
                    color=color, label=SAID[row["name"]])
        axes.axvline(row["trimmed_mean_us"], color=color, linestyle="--", linewidth=1)
        beside = "beside busy loops" if row["hogs"] else "beside nothing"
        axes.set_title(f"{row['hosts']} hosts, {beside}", fontsize=9)
        axes.set_xscale("log")
    for panel in panels:
        panel[0].set_ylabel("% of the calls")
    for axes in panels[-1]:
        axes.set_xlabel("us; dashed: mean without the highest 1 %")
    panels[0][0].legend(fontsize=7)
    figure.suptitle(f"{rows[0]['calls']:,} allreduces of 8 bytes, a rank on each host", fontsize=10)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def kept(path, shapes):
    """Rows of an earlier part, for other numbers of hosts, and its commands."""
    if not path.exists():
        return [], []
    before = json.loads(path.read_text())
    new = {shape.hosts for shape in shapes}
    return [row for row in before["results"] if row["hosts"] not in new], before["commands"]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", type=lambda text: [int(word) for word in text.split(",")], default=[4, 8],
        help="numbers of hosts; default: 4,8")
    add("--operations", type=int, default=100000, help="calls of each; default: 100000")
    add("--rounds", type=int, default=2, help="turns of each; default: 2")
    add("--piece", type=pathlib.Path, help="the file of a measurement in pieces")
    add("--seconds", type=float, default=0,
        help="of such a piece; default: as many as it takes")
    add("--unisono", type=pathlib.Path, default=compare.ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--output", type=pathlib.Path, default=compare.ROOT / "build/bench/nic-consistency.json",
        help="default: build/bench/nic-consistency.json")
    add("--picture", type=pathlib.Path, help="the SVG to draw")
    add("--draw", action="store_true", help="only print and draw what the file has")
    add("--machine", default="", help="what the file says about the machine")
    add("--limit", type=float, default=600, help="seconds after which a run is given up")
    arguments = parser.parse_args()
    if min(arguments.operations, arguments.rounds, *arguments.hosts) < 1:
        parser.error("--operations, --rounds and --hosts must be at least 1")
    if arguments.seconds and not arguments.piece:
        parser.error("--seconds needs --piece")
    return arguments


def command_line(arguments):
    hosts = ",".join(map(str, arguments.hosts))
    return (f"bench/nic/consistency.py --hosts {hosts} --operations {arguments.operations} "
            f"--rounds {arguments.rounds}")


def measure_shape(host_set, shape, ways, arguments, pieces):
    """{(busy, name): Calls}, or None if rounds are left for another piece."""
    operations = -(-arguments.operations // arguments.rounds)
    made, calls = pieces.rounds_of(shape, operations)
    longest = 0
    for turn in range(made, arguments.rounds):
        if not pieces.have_time(longest):
            print(f"{shape} hosts: {turn} of {arguments.rounds} rounds", file=sys.stderr)
            return None
        began = time.monotonic()
        measure_round(host_set, shape, ways, operations, turn, Hogs, calls)
        longest = max(longest, time.monotonic() - began)
        pieces.keep(shape, operations, turn + 1, calls)
    return calls


def measure_all(arguments):
    """Whether all rounds are made."""
    ways = find_ways(arguments.unisono, arguments.limit)
    shapes = [compare.Shape(count) for count in arguments.hosts]
    rows, commands = kept(arguments.output, shapes)
    pieces = Pieces(arguments.piece, arguments.seconds)
    for shape in shapes:
        with HostSet(arguments.unisono, shape.hosts) as host_set:
            calls = measure_shape(host_set, shape, ways, arguments, pieces)
        if calls is None:
            return False
        rows += rows_of(shape, calls)
    rows.sort(key=lambda row: (row["hosts"], row["hogs"], row["name"]))
    document = {"tool": "nic/consistency.py", "machine": arguments.machine,
                "commands": sorted({*commands, command_line(arguments)}), "results": rows}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    return True


def main():
    arguments = parse_arguments()
    if not arguments.draw:
        if reason := why_not(arguments.unisono):
            sys.exit(f"consistency.py: {reason}")
        try:
            if not measure_all(arguments):
                return
        except Failed as error:
            sys.exit(f"consistency.py: {error}")
    rows = json.loads(arguments.output.read_text())["results"]
    print(table(rows))
    if arguments.picture:
        draw(rows, arguments.picture)


if __name__ == "__main__":
    run_main(main)

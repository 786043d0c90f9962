#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How good are the choices of algorithms on this machine, by the rules and by price?

For each collective, shape and size, `unisono explain` names the choices by rule and by price, which
of both the library takes, and all legal candidates with their predicted times. `unisono bench`
measures the choices, the cheapest candidates, and each algorithm with its cheapest parameters. The
regret of a choice is its time over that of the best measured candidate: 1 is perfect.

A shape is a number of ranks of this machine, or hosts and ranks on each, as 4x1 (as root). One job
measures one candidate of every cell of a shape, and the jobs of a repetition go through all
candidates. So other load on the machine affects all of them alike. A figure is the least of the
medians that the jobs report: a machine may move its cores apart for seconds, and a job that meets
that takes up to twice as long.

Calls in a row and single ones have different bests: in a row, the ranks of a rooted collective run
ahead of each other, and what counts is the work of the busiest rank. --method says which are timed.

With --candidates FILE, the explanations are kept in a file. Then a later run that finds the file
there only measures.

Of many candidates that take about the same time, the one with the least figure had luck. With
--finals, the choices and so many of the best candidates of each cell are measured again, and only
the figures of this second round count.

With --learn, each repetition also measures the library after it has learned for so many calls
(UNISONO_LEARN). Its regret is over the best of all figures of the cell, its own included.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "peers"), str(HERE.parent / "hosts")]
from host_set import (Failed, HostSet, ThisMachine, in_a_row, parse_shape, run_main,  # noqa: E402
                      unisono_job, why_not)
from peer_report import Unusable, geometric_mean, number, progress, read_report  # noqa: E402

ROOT = HERE.parent.parent
COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter",
               "alltoall", "reduce_scatter", "scan", "exscan"]
OF_BLOCKS = ["allgather", "gather", "scatter", "alltoall", "reduce_scatter"]
TWO_LEVELS = "two-level"
REPORTED = 127  # characters of an algorithm's name that a report has at most
CHOICES = ["rule", "price", "library"]
FLOAT32_BYTES = 4
NEAR = 1.1


def fail(message):
    sys.exit(f"choice.py: {message}")


class Shape:
    """Ranks of this machine, or of several hosts with as many ranks each."""

    def __init__(self, text):
        self.text = text
        self.hosts, self.per_host = parse_shape(text) if "x" in text else (0, int(text))
        self.ranks = max(1, self.hosts) * self.per_host

    def shares_hosts(self):
        return self.hosts > 1 and self.per_host > 1

    def runner(self, unisono):
        return HostSet(unisono, self.hosts) if self.hosts else ThisMachine(unisono)

    def commands(self, runner, words, settings):
        if self.hosts:
            placement = in_a_row(self.hosts, self.per_host)
            return unisono_job(runner, placement, ["bench", *words, "--as-rank"], settings)
        return [(0, [runner.unisono, "bench", *words, "-n", self.ranks], settings)]


def explain(arguments, collective, shape, size, machine):
    """What the library would do, and the candidates, cheapest first."""
    command = [arguments.unisono, "explain", collective, "-n", shape.ranks, "--format", "json"]
    if shape.hosts:
        command += ["--hosts", shape.text, "--multicast"]
    if machine:
        command += ["--machine", machine]
    if collective != "barrier":
        command += ["-c", size // FLOAT32_BYTES]
    words = [str(word) for word in command]
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("UNISONO_ALGORITHM", "UNISONO_LEARN", "UNISONO_LEARN_UNTIL")}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        fail(f"exit status {done.returncode} from: {' '.join(words)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def candidates_of(explanation, most, shape):
    """The names to measure, at most so many beside the choices and one of each algorithm.

    Of an algorithm with parameters the cheapest by price stands for the others. Where no hosts have
    several ranks, algorithms of two levels have the schedules of others, and are left out."""
    cheapest = [each["algorithm"] for each in explanation["priced"]
                if shape.shares_hosts() or not each["algorithm"].startswith(TWO_LEVELS)]
    first_of_row = {}
    for name in cheapest:
        first_of_row.setdefault(name.partition("(")[0], name)
    chosen = [explanation[by] for by in ("algorithm", "by_rule", "by_price")]
    return list(dict.fromkeys([*chosen, *cheapest[:most], *first_of_row.values()]))


def cell_of(arguments, collective, shape, size):
    progress(f"choice.py: candidates of {collective}, {shape.text}, {size} bytes")
    machines = arguments.machine or [None]
    explanation = explain(arguments, collective, shape, size, machines[0])
    predicted = {each["algorithm"]: each["ns"] / 1000 for each in explanation["priced"]}
    names = candidates_of(explanation, arguments.most, shape)
    for machine in machines[1:]:
        other = explain(arguments, collective, shape, size, machine)
        names += [name for name in candidates_of(other, arguments.most, shape) if name not in names]
    return {
        "collective": collective, "ranks": shape.ranks, "size": size, "shape": shape.text,
        "engine": explanation["engine"],
        "candidates": {name: {"predicted_us": predicted.get(name)} for name in names},
        "chosen": {"library": explanation["algorithm"], "rule": explanation["by_rule"],
                   "price": explanation["by_price"]},
    }


def cells_of(arguments):
    """The cells with their candidates, from the file of an earlier run if there is one."""
    if arguments.candidates and arguments.candidates.exists():
        cells = json.loads(arguments.candidates.read_text())
        shapes = [shape.text for shape in arguments.shapes]
        return [cell for cell in cells
                if cell["shape"] in shapes and cell["collective"] in arguments.collectives]
    cells = [cell_of(arguments, collective, shape, size)
             for shape in arguments.shapes for collective in arguments.collectives
             for size in (arguments.sizes if collective != "barrier" else [0])
             if collective not in OF_BLOCKS or size * shape.ranks <= arguments.most_bytes]
    progress("")
    if arguments.candidates:
        arguments.candidates.write_text(json.dumps(cells, indent=1) + "\n")
    return cells


def rules_for(cells, turn):
    """UNISONO_ALGORITHM, by which each cell takes one of its candidates, and their names."""
    names = {}
    rules = {}
    for cell in cells:
        candidates = list(cell["candidates"])
        name = candidates[turn % len(candidates)]
        names[cell["collective"], cell["size"]] = name
        span = "" if cell["collective"] == "barrier" else f"@{cell['size']}-{cell['size'] + 1}"
        rules.setdefault(cell["collective"], []).append(name + span)
    return "|".join(f"{collective}:{';'.join(each)}" for collective, each in rules.items()), names


def with_turn(cells, turn):
    """The cells of the collectives that have so many candidates."""
    most = {}
    for cell in cells:
        most[cell["collective"]] = max(most.get(cell["collective"], 0), len(cell["candidates"]))
    return [cell for cell in cells if most[cell["collective"]] > turn]


class Measured:
    """The samples of the cells of one shape."""

    def __init__(self, arguments, shape, cells):
        self.arguments = arguments
        self.shape = shape
        self.cells = cells
        self.samples = {}
        self.first_round = {}
        self.learned = {}
        self.machine = None

    def groups(self):
        """Cells whose collectives have the same sizes: a job measures each with all sizes."""
        by_sizes = {}
        for collective in dict.fromkeys(cell["collective"] for cell in self.cells):
            own = [cell for cell in self.cells if cell["collective"] == collective]
            by_sizes.setdefault(tuple(cell["size"] for cell in own), []).extend(own)
        return by_sizes.values()

    def results(self, runner, cells, settings, more=()):
        words = list(dict.fromkeys(cell["collective"] for cell in cells))
        words += ["--format", "json", "--method", self.arguments.method,
                  "--seconds", self.arguments.seconds, *more]
        sizes = dict.fromkeys(str(cell["size"]) for cell in cells if cell["size"])
        if sizes:
            words += ["--sizes", ",".join(sizes)]
        environment = {"UNISONO_ALGORITHM": "", "UNISONO_LEARN": "off"} | settings
        try:
            text = runner.run(self.shape.commands(runner, words, environment), 300)
            report = read_report(text)
        except (Failed, Unusable) as error:
            fail(f"{error} with {environment}")
        self.machine = report.get("machine")
        return report["results"]

    def time_of(self, result):
        return result[self.arguments.method]["median_us"]

    def measure_turn(self, runner, cells, turn):
        rules, names = rules_for(cells, turn)
        for result in self.results(runner, cells, {"UNISONO_ALGORITHM": rules}):
            cell = result["collective"], result["size"]
            name = names[cell]
            if result["algorithm"] != name[:REPORTED]:
                name = result["algorithm"]
                print(f"# {self.shape.text}: {cell[0]} of {cell[1]} bytes took "
                      f"{result['algorithm']}, as {names[cell]} is not legal in a job")
            self.samples.setdefault((*cell, name), []).append(self.time_of(result))

    def measure_learned(self, runner, cells):
        settings = {"UNISONO_LEARN": "on"}
        more = ["--warmup", self.arguments.learn]
        for result in self.results(runner, cells, settings, more):
            self.learned.setdefault((result["collective"], result["size"]), []).append(
                self.time_of(result))

    def measure_all(self, runner, repetition, note):
        """Once every candidate of every cell."""
        for cells in self.groups():
            turns = range(max(len(cell["candidates"]) for cell in cells))
            # Each is as often early as late.
            for turn in turns if repetition % 2 == 0 else reversed(turns):
                progress(f"choice.py: {self.shape.text}, {note}repetition {repetition + 1}, "
                         f"candidate {turn + 1} of {len(turns)}")
                self.measure_turn(runner, with_turn(cells, turn), turn)

    def least_of(self, cell, name):
        return min(self.samples[cell["collective"], cell["size"], name])

    def finalist(self, cell):
        """The cell with the choices and the best of its candidates, as far as they ran."""
        ran = [name for name in cell["candidates"]
               if (cell["collective"], cell["size"], name) in self.samples]
        best = sorted(ran, key=lambda name: self.least_of(cell, name))[:self.arguments.finals]
        names = dict.fromkeys([*best, *(each for each in cell["chosen"].values() if each in ran)])
        return {**cell, "candidates": {name: cell["candidates"][name] for name in names}}

    def measure(self, runner):
        for repetition in range(self.arguments.repeat):
            self.measure_all(runner, repetition, "")
            if self.arguments.learn and not self.arguments.finals:
                self.measure_learned_cells(runner)
        if self.arguments.finals:
            self.cells = [self.finalist(cell) for cell in self.cells]
            self.first_round, self.samples = self.samples, {}
            for repetition in range(self.arguments.finals_repeat):
                self.measure_all(runner, repetition, "finals, ")
                if self.arguments.learn:
                    self.measure_learned_cells(runner)
        progress("")

    def measure_learned_cells(self, runner):
        for cells in self.groups():
            self.measure_learned(runner, cells)

    def judged(self, cell):
        """The cell with its times and regrets; None without a time of each choice."""
        key = cell["collective"], cell["size"]
        candidates = {
            name: {"measured_us": min(self.samples[(*key, name)]), **predicted}
            for name, predicted in cell["candidates"].items() if (*key, name) in self.samples}
        if any(name not in candidates for name in cell["chosen"].values()):
            return None
        best = min(candidates, key=lambda name: candidates[name]["measured_us"])
        others = {name: {"first_round_us": min(samples)}
                  for (collective, size, name), samples in self.first_round.items()
                  if (collective, size) == key and name not in candidates}
        least = candidates[best]["measured_us"]
        regret = {by: candidates[cell["chosen"][by]]["measured_us"] / least for by in CHOICES}
        if key in self.learned:
            learned = min(self.learned[key])
            regret["learned"] = learned / min(least, learned)
        return {**cell, "method": self.arguments.method, "candidates": candidates, "best": best,
                "regret": regret,
                **({"not_in_finals": others} if others else {})}


def print_cell(cell):
    print(f"  {cell['collective']:<15}{cell['shape']:>6}{cell['size']:>9}"
          f"{number(cell['candidates'][cell['best']]['measured_us'], 11)}  {cell['best']:<26}"
          + "".join(f"{number(cell['regret'][by], 7)}  {cell['chosen'][by]:<26}"
                    for by in CHOICES)
          + (number(cell["regret"]["learned"], 9) if "learned" in cell["regret"] else ""),
          flush=True)


def summary(cells):
    by_choice = {}
    for by in cells[0]["regret"]:
        regrets = [cell["regret"][by] for cell in cells]
        by_choice[by] = {"geometric_mean": geometric_mean(regrets), "worst": max(regrets),
                         "near_best": sum(one <= NEAR for one in regrets) / len(regrets)}
    return by_choice


def print_summary(by_choice):
    for by, figures in by_choice.items():
        print(f"# {by}: regret {figures['geometric_mean']:.3f} (geometric mean), "
              f"{figures['worst']:.2f} (worst), {100 * figures['near_best']:.0f} % of cells within "
              f"{100 * (NEAR - 1):.0f} % of the best")


def shape_of(text):
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)?", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of ranks and no HOSTSxRANKS")
    return Shape(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collectives", nargs="*", default=COLLECTIVES)
    parser.add_argument("-n", "--shapes", type=shape_of, nargs="+",
                        default=[Shape("2"), Shape("4"), Shape("8")],
                        help="ranks of this machine, or hosts x ranks on each [2 4 8]")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 1024, 65536, 1048576],
                        help="bytes; multiples of 4")
    parser.add_argument("--most-bytes", type=int, default=1 << 24, metavar="BYTES",
                        help="no blocks of which all ranks' together are longer [16 MiB]")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--method", choices=["loop", "single"], default="loop",
                        help="time calls in a row, or single ones after a barrier [loop]")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--most", type=int, default=3,
                        help="measure so many of the cheapest candidates, beside one of each row")
    parser.add_argument("--finals", type=int, default=0, metavar="COUNT",
                        help="measure the choices and so many of the best again; only that counts")
    parser.add_argument("--finals-repeat", type=int, default=5, metavar="COUNT",
                        help="repetitions of the finals [5]")
    parser.add_argument("--learn", type=int, default=0, metavar="CALLS",
                        help="also measure after so many calls of learning (8192 is enough)")
    parser.add_argument("--machine", type=pathlib.Path, nargs="+",
                        help="machine file for the prices; more of them add their candidates")
    parser.add_argument("--candidates", type=pathlib.Path, metavar="FILE",
                        help="read the candidates here; without the file, write it and end")
    parser.add_argument("--unisono", type=pathlib.Path,
                        default=ROOT / "build/release/bin/unisono")
    parser.add_argument("--add", type=pathlib.Path, nargs="+", default=[], metavar="FILE",
                        help="add the cells of these JSON files to the summary and the file")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    if any(size % FLOAT32_BYTES for size in arguments.sizes):
        fail(f"--sizes: elements are float32, so that sizes are multiples of {FLOAT32_BYTES}")
    reason = why_not(arguments.unisono) if any(each.hosts for each in arguments.shapes) else ""
    if reason:
        fail(reason)
    return arguments


def main():
    arguments = parse_arguments()
    only_explains = arguments.candidates is not None and not arguments.candidates.exists()
    all_cells = cells_of(arguments)
    if only_explains:
        print(f"# {len(all_cells)} cells in {arguments.candidates}")
        return
    print(f"# {'collective':<15}{'shape':>6}{'size':>9}{'best, us':>11}  {'':<26}"
          + "".join(f"{by:>7}  {'':<26}" for by in CHOICES)
          + ("  learned" if arguments.learn else ""))
    judged, machine = [], None
    for shape in arguments.shapes:
        measured = Measured(arguments, shape,
                            [cell for cell in all_cells if cell["shape"] == shape.text])
        with contextlib.ExitStack() as stack:
            measured.measure(stack.enter_context(shape.runner(arguments.unisono)))
        machine = measured.machine
        of_shape = [cell for cell in map(measured.judged, measured.cells) if cell is not None]
        for cell in of_shape:
            print_cell(cell)
        judged += of_shape
    commands = [" ".join(["bench/choice/choice.py", *sys.argv[1:]])]
    for path in arguments.add:
        earlier = json.loads(path.read_text())
        judged += earlier["cells"]
        commands.append(earlier["command"])
    by_choice = summary(judged)
    print_summary(by_choice)
    if arguments.json:
        head = {"tool": "choice.py", "command": "; ".join(commands), "machine": machine}
        arguments.json.write_text(
            json.dumps({**head, "summary": by_choice, "cells": judged}, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

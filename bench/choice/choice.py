#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How good are the choices of algorithms on this machine, by the rules and by price?

For each collective, shape and size, `unisono explain` names the choices by rule and by price, which
of both the library takes, and all legal candidates with their predicted times. `unisono bench`
measures the choices, the cheapest candidates, and each algorithm with its cheapest parameters. The
regret of a choice is its time over that of the best measured candidate: 1 is perfect.

A shape is a number of ranks of this machine, or hosts and ranks on each, as 4x1 (as root). With
4x1+nic, each host has a daemon. Then the NIC path is a candidate of the calls that it can do, and
the library's choice is what a job without overrides takes.

A machine may move its cores apart for seconds. Then all takes up to four times as long. So one job
measures all candidates of a cell one after another, and only the ratios within a job count. To tell
candidates apart, each has a length of its own, which differs by some percent at most. They change
places in each repetition. Barriers have no length, so that each candidate has a job.

A regret is the median of the repetitions' ratios. Of many candidates that take about the same time,
the one with the least figure had luck. So one half of the repetitions says which candidate is the
best, and the other half how long it takes: the regret is the mean over all ways to halve them. It
can be below 1 where the best candidate is in doubt. The output also has the regret over the least
figure of all, which counts noise as regret. The truth lies between them.

Calls in a row and single ones have different bests: in a row, the ranks of a rooted collective run
ahead of each other, and what counts is the work of the busiest rank. --method says which are timed.
`in row` is the candidate whose price in a row is the least.

With --candidates FILE, the explanations are kept in a file. Then a later run that finds the file
there only measures.

With --jobs FILE and --within SECONDS, a run measures what it has time for, and keeps it in the
file. The same command again goes on there, until all is measured and the figures are printed.

With --finals, the choices and so many of the best candidates of each cell are measured again, and
only the figures of this second round count.

With --learn, the library is a candidate more of each cell, after it has learned for so many calls
(UNISONO_LEARN). The other candidates have as many calls before they are measured.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "peers"), str(HERE.parent / "hosts"), str(HERE.parent / "nic")]
from figures import NEAR, JobFile, best_of, regret_of, regret_over_luckiest  # noqa: E402
from host_set import (Failed, HostSet, ThisMachine, in_a_row, parse_shape, run_main,  # noqa: E402
                      unisono_job, why_not)
from paths import nic_socket, serving_hosts  # noqa: E402
from peer_report import Unusable, geometric_mean, number, progress, read_report  # noqa: E402

ROOT = HERE.parent.parent
COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter",
               "alltoall", "reduce_scatter", "scan", "exscan"]
OF_BLOCKS = ["allgather", "gather", "scatter", "alltoall", "reduce_scatter"]
TWO_LEVELS = "two-level"
REPORTED = 127  # characters of an algorithm's name that a report has at most
CHOICES = ["rule", "price", "in row", "library"]
METHODS = ["loop", "single"]
MOST_REPETITIONS = 12
# From so many bytes on, the lengths of two candidates differ by so many.
STEPS = [(16384, 64), (1024, 16), (0, 4)]
FLOAT32_BYTES = 4
NIC_PATH = "the NIC path"
LEARNED = "after learning"
NIC_COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather"]
# The constants up to which the NIC path is taken; a candidate has to be tried beyond.
NIC_LIMITS = ["nic_broadcast", "nic_real_vector", "nic_gathered", "nic_host_block"]
NO_LIMIT_BYTES = 1 << 30


def fail(message):
    sys.exit(f"choice.py: {message}")


class Shape:
    """Ranks of this machine, or of several hosts with as many ranks each."""

    def __init__(self, text):
        self.text = text
        layout, _, nic = text.partition("+")
        self.has_nic = bool(nic)
        self.hosts, self.per_host = parse_shape(layout) if "x" in layout else (0, int(layout))
        self.layout = layout
        self.ranks = max(1, self.hosts) * self.per_host

    def shares_hosts(self):
        return self.hosts > 1 and self.per_host > 1

    @contextlib.contextmanager
    def runner(self, unisono):
        with HostSet(unisono, self.hosts) if self.hosts else ThisMachine(unisono) as runner:
            daemons = serving_hosts(runner, unisono, self.hosts) if self.has_nic \
                else contextlib.nullcontext()
            with daemons:
                yield runner

    def commands(self, runner, words, settings):
        if not self.hosts:
            return [(0, [runner.unisono, "bench", *words, "-n", self.ranks], settings)]
        placement = in_a_row(self.hosts, self.per_host)
        job = unisono_job(runner, placement, ["bench", *words, "--as-rank"], settings)
        if not self.has_nic:
            return job
        return [(host, command, environment | {"UNISONO_NIC_SOCKET": nic_socket(runner, host)})
                for host, command, environment in job]


def explain(arguments, collective, shape, size, machine):
    """What the library would do, and the candidates, cheapest first."""
    command = [arguments.unisono, "explain", collective, "-n", shape.ranks, "--format", "json"]
    if shape.hosts:
        # They are network namespaces of this machine.
        command += ["--hosts", shape.layout, "--multicast", "--shared-cores", os.cpu_count()]
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


def usual_of(explanation, shape):
    """The priced candidates. Where no hosts have several ranks, algorithms of two levels have the
    schedules of others, and are left out."""
    return [each for each in explanation["priced"]
            if shape.shares_hosts() or not each["algorithm"].startswith(TWO_LEVELS)]


def one_of_equals(explanation, choices):
    """{name: name} of the priced candidates, to that which stands for all with its schedules: a
    choice if there is one."""
    first = {each["algorithm"]: each.get("same_as", each["algorithm"])
             for each in explanation["priced"]}
    taken = {}
    for name in choices:
        taken.setdefault(first.get(name, name), name)
    return {name: taken.get(own, own) for name, own in first.items()}


def choices_of(explanation, shape):
    in_row = min(usual_of(explanation, shape), key=lambda each: each["in_row_ns"])
    choices = {"library": explanation["algorithm"], "rule": explanation["by_rule"],
               "price": explanation["by_price"], "in row": in_row["algorithm"]}
    stands_for = one_of_equals(explanation, choices.values())
    return {by: stands_for.get(name, name) for by, name in choices.items()}


def candidates_of(explanation, most, shape):
    """The names to measure, at most so many beside the choices and one of each algorithm.

    Of an algorithm with parameters the cheapest by price stands for the others, and one of equal
    schedules."""
    chosen = choices_of(explanation, shape).values()
    stands_for = one_of_equals(explanation, chosen)
    cheapest = list(dict.fromkeys(stands_for[each["algorithm"]]
                                  for each in usual_of(explanation, shape)))
    first_of_row = {}
    for name in cheapest:
        first_of_row.setdefault(name.partition("(")[0], name)
    return list(dict.fromkeys([*chosen, *cheapest[:most], *first_of_row.values()]))


def cell_of(arguments, collective, shape, size):
    progress(f"choice.py: candidates of {collective}, {shape.text}, {size} bytes")
    machines = arguments.machine or [None]
    explanation = explain(arguments, collective, shape, size, machines[0])
    predicted = {each["algorithm"]: {"predicted_us": each["ns"] / 1000,
                                     "predicted_in_row_us": each["in_row_ns"] / 1000}
                 for each in explanation["priced"]}
    names = candidates_of(explanation, arguments.most, shape)
    for machine in machines[1:]:
        other = explain(arguments, collective, shape, size, machine)
        names += [name for name in candidates_of(other, arguments.most, shape) if name not in names]
    if shape.has_nic and collective in NIC_COLLECTIVES:
        names.append(NIC_PATH)
    if arguments.learn:
        names.append(LEARNED)
    return {
        "collective": collective, "ranks": shape.ranks, "size": size, "shape": shape.text,
        "engine": explanation["engine"],
        "candidates": {name: predicted.get(name, {}) for name in names},
        "chosen": choices_of(explanation, shape),
    }


def cells_of(arguments):
    """The cells with their candidates, from the file of an earlier run if there is one."""
    if arguments.candidates and arguments.candidates.exists():
        cells = json.loads(arguments.candidates.read_text())
        shapes = [shape.text for shape in arguments.shapes]
        return [cell for cell in cells
                if cell["shape"] in shapes and cell["collective"] in arguments.collectives
                and cell["size"] in [0, *arguments.sizes]]
    cells = [cell_of(arguments, collective, shape, size)
             for shape in arguments.shapes for collective in arguments.collectives
             for size in (arguments.sizes if collective != "barrier" else [0])
             if collective not in OF_BLOCKS or size * shape.ranks <= arguments.most_bytes]
    progress("")
    if arguments.candidates:
        arguments.candidates.write_text(json.dumps(cells, indent=1) + "\n")
    return cells


def step_of(size):
    """By so many bytes the lengths of a cell's candidates differ."""
    return next(step for least, step in STEPS if size >= least)


def places_of(cells, repetition):
    """{(size in the job, collective): (cell, name)}: the candidates change places."""
    places = {}
    for cell in cells:
        names = list(cell["candidates"])
        for i in range(len(names)):
            name = names[(i + repetition) % len(names)]
            places[cell["size"] + i * step_of(cell["size"]), cell["collective"]] = cell, name
    return places


def rules_for(places):
    """UNISONO_ALGORITHM, by which each place has its candidate."""
    rules = {}
    for (size, collective), (_, name) in places.items():
        span = "" if collective == "barrier" else f"@{size}-{size + 1}"
        if name not in (NIC_PATH, LEARNED):
            rules.setdefault(collective, []).append(name + span)
    return "|".join(f"{collective}:{';'.join(each)}" for collective, each in rules.items())


def settings_of(places):
    """The words of `unisono bench` for the places."""
    sizes = dict.fromkeys(str(size) for size, collective in sorted(places)
                          if collective != "barrier")
    words = list(dict.fromkeys(collective for _, collective in places))
    return words + (["--sizes", ",".join(sizes)] if sizes else [])


class Measured:
    """The cells of a shape: {(collective, size, method): {name: {repetition: us}}}."""

    def __init__(self, arguments, shape, cells, file):
        self.arguments = arguments
        self.shape = shape
        self.cells = cells
        self.file = file
        self.methods = METHODS if arguments.method == "both" else [arguments.method]
        self.times = {}
        self.first_round = {}

    def results(self, runner, words, settings, more=()):
        words = [*words, "--format", "json", "--method", self.arguments.method,
                 "--seconds", self.arguments.seconds * len(self.methods), *more]
        environment = {"UNISONO_ALGORITHM": "", "UNISONO_LEARN": "off"} | settings
        try:
            text = runner.run(self.shape.commands(runner, words, environment), 300)
            report = read_report(text)
        except (Failed, Unusable) as error:
            fail(f"{error} with {environment}")
        return report["results"], report.get("machine")

    def name_of(self, result, wanted):
        """What a cell took, in full where the report has it cut."""
        if wanted == LEARNED:
            return LEARNED
        name = NIC_PATH if result["engine"] == "nic" else result["algorithm"]
        return wanted if wanted and wanted[:REPORTED] == name else name

    def job(self, runner, key, places, settings, more=()):
        """The job's times [[collective, size of the cell, name, method, us]], None without time."""
        def measure():
            results, machine = self.results(runner(), settings_of(places), settings, more)
            times = []
            for result in results:
                place = places.get((result["size"], result["collective"]))
                if place is None:
                    continue
                cell, wanted = place
                name = self.name_of(result, wanted)
                if wanted and name != wanted:
                    print(f"# {self.shape.text}: {cell['collective']} of {result['size']} bytes "
                          f"took {name}, as {wanted} is not legal in a job")
                    continue
                times += [[cell["collective"], cell["size"], name, method,
                           result[method]["median_us"]] for method in self.methods]
            return times, machine
        return self.file.times_of(" ".join(map(str, [self.shape.text, *key])), measure)

    def candidate_settings(self):
        if not self.shape.has_nic:
            return {}
        return {"UNISONO_NIC": "on", "UNISONO_NIC_ROOTED": "on",
                "UNISONO_MACHINE": str(self.arguments.unlimited)}

    def groups(self):
        """The places of a job: a collective's, or one candidate of a barrier."""
        for collective in dict.fromkeys(cell["collective"] for cell in self.cells):
            cells = [cell for cell in self.cells if cell["collective"] == collective]
            if collective != "barrier":
                yield collective, cells
                continue
            for name, predicted in cells[0]["candidates"].items():
                yield f"barrier:{name}", [{**cells[0], "candidates": {name: predicted}}]

    def measure_all(self, runner, repetition, note):
        """Once every candidate of every cell; whether there was time."""
        for name, cells in self.groups():
            progress(f"choice.py: {self.shape.text}, {note} repetition {repetition + 1}, {name}")
            places = places_of(cells, repetition)
            settings = {"UNISONO_ALGORITHM": rules_for(places)} | self.candidate_settings()
            more = []
            if self.arguments.learn:
                settings["UNISONO_LEARN"] = "on"
                more = ["--warmup", self.arguments.learn]
            times = self.job(runner, [note, repetition, name], places, settings, more)
            if times is None:
                return False
            for collective, size, candidate, method, us in times:
                of_cell = self.times.setdefault((collective, size, method), {})
                of_cell.setdefault(candidate, {})[repetition] = us
        return True

    def usual_places(self):
        """Each cell at its own length, with whatever it takes."""
        for collective in dict.fromkeys(cell["collective"] for cell in self.cells):
            yield collective, {(cell["size"], collective): (cell, None) for cell in self.cells
                               if cell["collective"] == collective}

    def find_choices(self, runner):
        """What a job without overrides takes, where explain does not know it."""
        for name, places in self.usual_places():
            times = self.job(runner, ["choices", name], places, {"UNISONO_NIC": "auto"})
            if times is None:
                return False
            for collective, size, taken, _method, _us in times:
                cell, _ = places[size, collective]
                cell["chosen"]["library"] = taken
                cell["candidates"].setdefault(taken, {})
        return True

    def times_of(self, cell, method):
        """Of the cell's candidates, as far as they ran in every repetition."""
        times = self.times.get((cell["collective"], cell["size"], method), {})
        most = max(map(len, times.values()), default=0)
        return {name: times[name] for name in cell["candidates"]
                if len(times.get(name, {})) == most > 0}

    def finalist(self, cell):
        """The cell with the choices and the best of its candidates, as far as they ran."""
        names = {}
        for method in self.methods:
            times = self.times_of(cell, method)
            if times:
                names |= dict.fromkeys(best_of(times)[:self.arguments.finals])
            chosen = [*cell["chosen"].values(), LEARNED]
            names |= dict.fromkeys(each for each in chosen if each in times)
        return {**cell, "candidates": {name: cell["candidates"][name] for name in names}}

    def measure(self, runner):
        """Whether all is measured. runner() is the shape's, which starts when it is needed."""
        if self.shape.has_nic and not self.find_choices(runner):
            return False
        if not self.measure_round(runner, "first", self.arguments.repeat):
            return False
        if self.arguments.finals:
            self.cells = [self.finalist(cell) for cell in self.cells]
            self.first_round, self.times = self.times, {}
            return self.measure_round(runner, "finals", self.arguments.finals_repeat)
        return True

    def measure_round(self, runner, note, repetitions):
        return all(self.measure_all(runner, repetition, note) for repetition in range(repetitions))

    def judged(self, cell, method):
        """The cell with its times and regrets; None without a time of each choice."""
        times = self.times_of(cell, method)
        if any(name not in times for name in cell["chosen"].values()):
            return None
        candidates = {name: {"measured_us": statistics.median(each.values()),
                             **cell["candidates"][name], "all_us": list(each.values())}
                      for name, each in times.items()}
        key = cell["collective"], cell["size"], method
        others = {name: {"first_round_us": statistics.median(each.values())}
                  for name, each in self.first_round.get(key, {}).items() if name not in candidates}
        best = best_of(times)[0]
        regret = {by: regret_of(times, cell["chosen"][by]) for by in CHOICES}
        over_luckiest = {by: regret_over_luckiest(times, cell["chosen"][by]) for by in CHOICES}
        if LEARNED in times:
            regret["learned"] = regret_of(times, LEARNED)
            over_luckiest["learned"] = regret_over_luckiest(times, LEARNED)
        return {**cell, "method": method, "candidates": candidates, "best": best,
                "regret": regret, "over_luckiest": over_luckiest,
                **({"not_in_finals": others} if others else {})}


def print_cell(cell):
    print(f"  {cell['collective']:<15}{cell['shape']:>8}{cell['size']:>9} {cell['method']:<6}"
          f"{number(cell['candidates'][cell['best']]['measured_us'], 11)}  {cell['best']:<26}"
          + "".join(f"{number(cell['regret'][by], 7)}  {cell['chosen'][by]:<26}"
                    for by in CHOICES)
          + (number(cell["regret"]["learned"], 9) if "learned" in cell["regret"] else ""),
          flush=True)


def summary(cells, of="regret"):
    by_choice = {}
    for by in cells[0][of]:
        regrets = [cell[of][by] for cell in cells if by in cell[of]]
        by_choice[by] = {"geometric_mean": geometric_mean(regrets), "worst": max(regrets),
                         "near_best": sum(one <= NEAR for one in regrets) / len(regrets)}
    return by_choice


def print_summary(by_choice, note=""):
    for by, figures in by_choice.items():
        print(f"# {note}{by}: regret {figures['geometric_mean']:.3f} (geometric mean), "
              f"{figures['worst']:.2f} (worst), {100 * figures['near_best']:.0f} % of cells within "
              f"{100 * (NEAR - 1):.0f} % of the best")


def print_summaries(cells):
    """Of each kind of shape and each method, and of all."""
    kinds = {}
    for cell in cells:
        kinds.setdefault((kind_of(cell), cell["method"]), []).append(cell)
    for (kind, method), own in kinds.items():
        print(f"# {kind}, {method}, {len(own)} cells")
        print_summary(summary(own))
        print_summary(summary(own, "over_luckiest"), "over the least figure, ")


def kind_of(cell):
    return "hosts with NIC path" if "+" in cell["shape"] else \
        "hosts" if "x" in cell["shape"] else "one host"


def rounded(value):
    """Five digits: more are noise, and make the file long."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def write_report(path, commands, machine, cells):
    """A cell in each line."""
    head = {"tool": "choice.py", "command": "; ".join(commands), "machine": machine,
            "summary": summary(cells)}
    lines = ",\n".join(json.dumps(rounded(cell)) for cell in cells)
    path.write_text(json.dumps(head)[:-1] + f', "cells": [\n{lines}\n]}}\n')


def write_unlimited_machine(arguments, folder):
    """The default machine, without the limits up to which the NIC path is taken."""
    machine = json.loads((ROOT / "machines" / "default.json").read_text())
    for name in NIC_LIMITS:
        machine["constants"][name]["number"] = NO_LIMIT_BYTES
    arguments.unlimited = pathlib.Path(folder, "unlimited.json")
    arguments.unlimited.write_text(json.dumps(machine))


def shape_of(text):
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*(\+nic)?)?", text):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of ranks, HOSTSxRANKS or HOSTSxRANKS+nic")
    return Shape(text)


def repetitions_of(text):
    if not text.isdigit() or not 1 <= int(text) <= MOST_REPETITIONS:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 to {MOST_REPETITIONS}")
    return int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collectives", nargs="*", default=COLLECTIVES)
    parser.add_argument("-n", "--shapes", type=shape_of, nargs="+",
                        default=[Shape("2"), Shape("4"), Shape("8")],
                        help="ranks of this machine, or hosts x ranks on each, +nic: with daemons "
                             "[2 4 8]")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 1024, 65536, 1048576],
                        help="bytes; multiples of 4")
    parser.add_argument("--most-bytes", type=int, default=1 << 24, metavar="BYTES",
                        help="no blocks of which all ranks' together are longer [16 MiB]")
    parser.add_argument("--repeat", type=repetitions_of, default=5)
    parser.add_argument("--method", choices=[*METHODS, "both"], default="loop",
                        help="time calls in a row, single ones after a barrier, or both [loop]")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--most", type=int, default=3,
                        help="measure so many of the cheapest candidates, beside one of each row")
    parser.add_argument("--finals", type=int, default=0, metavar="COUNT",
                        help="measure the choices and so many of the best again; only that counts")
    parser.add_argument("--finals-repeat", type=repetitions_of, default=6, metavar="COUNT",
                        help="repetitions of the finals [6]")
    parser.add_argument("--learn", type=int, default=0, metavar="CALLS",
                        help="also measure after so many calls of learning (8192 is enough)")
    parser.add_argument("--machine", type=pathlib.Path, nargs="+",
                        help="machine file for the prices; more of them add their candidates")
    parser.add_argument("--candidates", type=pathlib.Path, metavar="FILE",
                        help="read the candidates here; without the file, write it and end")
    parser.add_argument("--jobs", type=pathlib.Path, metavar="FILE",
                        help="keep what is measured here, and go on with what is there")
    parser.add_argument("--within", type=float, default=0, metavar="SECONDS",
                        help="end after so long; needs --jobs")
    parser.add_argument("--unisono", type=pathlib.Path,
                        default=ROOT / "build/release/bin/unisono")
    parser.add_argument("--add", type=pathlib.Path, nargs="+", default=[], metavar="FILE",
                        help="add the cells of these JSON files to the summary and the file")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    if any(size % FLOAT32_BYTES for size in arguments.sizes):
        fail(f"--sizes: elements are float32, so that sizes are multiples of {FLOAT32_BYTES}")
    if arguments.within and not arguments.jobs:
        fail("--within needs --jobs, where the next run goes on")
    reason = why_not(arguments.unisono) if any(each.hosts for each in arguments.shapes) else ""
    if reason:
        fail(reason)
    return arguments


def measure_shape(arguments, shape, cells, file):
    """The judged cells; None if there was no time for all."""
    measured = Measured(arguments, shape, cells, file)
    with contextlib.ExitStack() as stack:
        started = []

        def runner():
            if not started:
                started.append(stack.enter_context(shape.runner(arguments.unisono)))
            return started[0]
        is_complete = measured.measure(runner)
    progress("")
    if not is_complete:
        return None
    judged = [measured.judged(cell, method)
              for method in measured.methods for cell in measured.cells]
    return [cell for cell in judged if cell is not None]


def measure_shapes(arguments, all_cells, file):
    judged = []
    for shape in arguments.shapes:
        cells = [cell for cell in all_cells if cell["shape"] == shape.text]
        of_shape = measure_shape(arguments, shape, cells, file)
        if of_shape is None:
            return None
        for cell in of_shape:
            print_cell(cell)
        judged += of_shape
    return judged


def main():
    arguments = parse_arguments()
    only_explains = arguments.candidates is not None and not arguments.candidates.exists()
    all_cells = cells_of(arguments)
    if only_explains:
        print(f"# {len(all_cells)} cells in {arguments.candidates}")
        return
    file = JobFile(arguments.jobs, arguments.within)
    with tempfile.TemporaryDirectory(prefix="unisono-choice-") as folder:
        write_unlimited_machine(arguments, folder)
        print(f"# {'collective':<15}{'shape':>8}{'size':>9} {'method':<6}{'best, us':>11}  {'':<26}"
              + "".join(f"{by:>7}  {'':<26}" for by in CHOICES)
              + ("  learned" if arguments.learn else ""))
        judged = measure_shapes(arguments, all_cells, file)
    if judged is None:
        print(f"# {len(file.jobs)} jobs are measured; the same command goes on")
        return
    commands = [" ".join(["bench/choice/choice.py", *sys.argv[1:]])]
    for path in arguments.add:
        earlier = json.loads(path.read_text())
        judged += earlier["cells"]
        commands.append(earlier["command"])
    print_summaries(judged)
    if arguments.json:
        write_report(arguments.json, commands, file.machine, judged)


if __name__ == "__main__":
    run_main(main)

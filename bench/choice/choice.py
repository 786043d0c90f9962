#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How good are the choices of algorithms on this machine, by the rules and by price?

For each collective, number of ranks and size, `unisono explain` names the choices by rule and by
price, which of both the library takes, and all legal candidates with their predicted times.
`unisono bench` measures the choices, the cheapest candidates, and each algorithm with its cheapest
parameters. The regret of a choice is its
time over that of the best measured candidate: 1 is perfect. Each repetition measures all candidates
of a cell one after another, so that other load on the machine affects them alike. Figures are
medians.

With --learn, each repetition also measures the library after it has learned for so many calls
(UNISONO_LEARN). Its regret is over the best of all figures of the cell, its own included.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from peer_report import Unusable, geometric_mean, number, progress, read_report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter",
               "alltoall", "reduce_scatter", "scan", "exscan"]
CHOICES = ["rule", "price", "library"]
FLOAT32_BYTES = 4
NEAR = 1.1


def fail(message):
    sys.exit(f"choice.py: {message}")


def run(command, algorithm=None, learned_calls=0):
    environment = dict(os.environ)
    for name in ("UNISONO_ALGORITHM", "UNISONO_LEARN", "UNISONO_LEARN_UNTIL"):
        environment.pop(name, None)
    if algorithm is not None:
        environment["UNISONO_ALGORITHM"] = algorithm
    if learned_calls:
        environment.update(UNISONO_LEARN="on", UNISONO_LEARN_UNTIL=str(learned_calls))
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        fail(f"exit status {done.returncode} from: {' '.join(words)} (UNISONO_ALGORITHM="
             f"{algorithm})\n{done.stdout}{done.stderr}")
    return done.stdout


def explain(arguments, collective, ranks, size):
    """What the library would do, and the candidates, cheapest first."""
    command = [arguments.unisono, "explain", collective, "-n", ranks, "--format", "json"]
    if arguments.machine:
        command += ["--machine", arguments.machine]
    if collective != "barrier":
        command += ["-c", size // FLOAT32_BYTES]
    return json.loads(run(command))


def candidates_of(explanation, most):
    """The names to measure, at most so many beside the choices and one of each algorithm.

    Of an algorithm with parameters the cheapest by price stands for the others."""
    cheapest = [each["algorithm"] for each in explanation["priced"]]
    first_of_row = {}
    for name in cheapest:
        first_of_row.setdefault(name.partition("(")[0], name)
    chosen = [explanation[by] for by in ("algorithm", "by_rule", "by_price")]
    return list(dict.fromkeys([*chosen, *cheapest[:most], *first_of_row.values()]))


def time_of(arguments, collective, ranks, size, name):
    command = [arguments.unisono, "bench", collective, "-n", ranks, "--format", "json", "--method",
               "loop", "--seconds", arguments.seconds]
    if collective != "barrier":
        command += ["--sizes", size]
    text = run(command, f"{collective}:{name}")
    try:
        cell = read_report(text)["results"][0]
    except Unusable as error:
        fail(f"{error} from {collective} {name} on {ranks} ranks")
    if cell["algorithm"] != name:
        fail(f"{collective} took {cell['algorithm']} instead of {name}: it is not legal here")
    return cell["loop"]["median_us"]


def learned_time_of(arguments, collective, ranks, size):
    """The time of a call after so many others, from which the library learned."""
    command = [arguments.unisono, "bench", collective, "-n", ranks, "--format", "json", "--method",
               "loop", "--warmup", arguments.learn, "--seconds", arguments.seconds]
    if collective != "barrier":
        command += ["--sizes", size]
    cell = read_report(run(command, learned_calls=arguments.learn))["results"][0]
    return cell["loop"]["median_us"]


def machine_of(arguments):
    """Processor, cores, kernel and compiler, as `unisono bench` reports them."""
    text = run([arguments.unisono, "bench", "barrier", "-n", 2, "--format", "json",
                "--iterations", 1])
    return read_report(text).get("machine")


def measure_cell(arguments, collective, ranks, size):
    explanation = explain(arguments, collective, ranks, size)
    names = candidates_of(explanation, arguments.most)
    samples = {name: [] for name in names}
    learned = []
    for repetition in range(arguments.repeat):
        # Each is as often early as late.
        for name in names if repetition % 2 == 0 else reversed(names):
            progress(f"choice.py: {collective}, {ranks} ranks, {size} bytes, repetition "
                     f"{repetition + 1}, {name}")
            samples[name].append(time_of(arguments, collective, ranks, size, name))
        if arguments.learn:
            learned.append(learned_time_of(arguments, collective, ranks, size))
    progress("")
    measured = {name: statistics.median(times) for name, times in samples.items()}
    predicted = {each["algorithm"]: each["ns"] / 1000 for each in explanation["priced"]}
    best = min(measured, key=measured.get)
    chosen = {"library": explanation["algorithm"], "rule": explanation["by_rule"],
              "price": explanation["by_price"]}
    least = measured[best]
    regret = {by: measured[chosen[by]] / least for by in CHOICES}
    if learned:
        regret["learned"] = statistics.median(learned) / min(least, statistics.median(learned))
    return {
        "collective": collective, "ranks": ranks, "size": size, "engine": explanation["engine"],
        "candidates": {name: {"measured_us": measured[name], "predicted_us": predicted.get(name)}
                       for name in names},
        "best": best, "chosen": chosen,
        "regret": regret,
    }


def print_cell(cell):
    print(f"  {cell['collective']:<15}{cell['ranks']:>6}{cell['size']:>9}"
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collectives", nargs="*", default=COLLECTIVES)
    parser.add_argument("-n", "--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 1024, 65536, 1048576],
                        help="bytes; multiples of 4")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--most", type=int, default=3,
                        help="measure so many of the cheapest candidates, beside one of each row")
    parser.add_argument("--learn", type=int, default=0, metavar="CALLS",
                        help="also measure after so many calls of learning (8192 is enough)")
    parser.add_argument("--machine", type=pathlib.Path, help="machine file for the prices")
    parser.add_argument("--unisono", type=pathlib.Path,
                        default=ROOT / "build/release/bin/unisono")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    if any(size % FLOAT32_BYTES for size in arguments.sizes):
        fail(f"--sizes: elements are float32, so that sizes are multiples of {FLOAT32_BYTES}")
    print(f"# {'collective':<15}{'ranks':>6}{'size':>9}{'best, us':>11}  {'':<26}"
          + "".join(f"{by:>7}  {'':<26}" for by in CHOICES)
          + ("  learned" if arguments.learn else ""))
    cells = []
    for collective in arguments.collectives:
        for ranks in arguments.ranks:
            for size in arguments.sizes if collective != "barrier" else [0]:
                cells.append(measure_cell(arguments, collective, ranks, size))
                print_cell(cells[-1])
    by_choice = summary(cells)
    print_summary(by_choice)
    if arguments.json:
        head = {"tool": "choice.py", "command": " ".join(["bench/choice/choice.py", *sys.argv[1:]]),
                "machine": machine_of(arguments)}
        arguments.json.write_text(
            json.dumps({**head, "summary": by_choice, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()

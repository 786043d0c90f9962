#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What do reproducible sums cost? Compares UNISONO_REPRODUCIBLE=1 and =ranks with plain sums.

    bench/sums.py --unisono build/release/bin/unisono --ranks 2,4,8

Each cell is one collective and size of `unisono bench`, with ranks of this machine. Plain and
reproducible sums run in turn, and the order changes with each repetition. For each cell it prints
the medians of the repetitions and the medians of the ratios to the plain sum of the same
repetition, of times and of processor times: above 1 the reproducible sum costs more.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

from peer_report import Unusable, progress, read_report  # noqa: E402

WAYS = ["0", "1", "ranks"]  # of UNISONO_REPRODUCIBLE


def measure_once(arguments, ranks, way):
    """{(collective, size): (us, processor us, algorithm)}"""
    words = [arguments.unisono, "bench", *arguments.collectives, "-n", str(ranks)]
    words += ["--format", "json", "--method", arguments.method, "--type", arguments.type]
    words += ["--sizes", arguments.sizes, "--seconds", str(arguments.seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=arguments.limit,
                          env={**os.environ, "UNISONO_REPRODUCIBLE": way}, check=False)
    if done.returncode != 0:
        raise Unusable(f"exit status {done.returncode}: {done.stderr.strip()}")
    return {(cell["collective"], cell["size"]): (cell[arguments.method]["median_us"],
                                                 cell[arguments.method]["cpu_us"],
                                                 cell["algorithm"])
            for cell in read_report(done.stdout)["results"]}


def measure(arguments, ranks):
    """{cell: [{way: (us, processor us, algorithm)}, ...]}, one for each repetition."""
    cells = {}
    for repetition in range(arguments.repeat):
        found = {}
        for way in WAYS if repetition % 2 == 0 else reversed(WAYS):
            progress(f"{ranks} ranks, repetition {repetition + 1}, {way}")
            found[way] = measure_once(arguments, ranks, way)
        for cell in found["0"]:
            cells.setdefault(cell, []).append({way: found[way][cell] for way in WAYS})
    progress("")
    return cells


def ratio(repetitions, way, figure):
    """The median of the ratios to the plain sum of the same repetition."""
    return statistics.median(each[way][figure] / each["0"][figure] for each in repetitions)


def print_table(arguments, ranks, cells):
    print(f"\n# {ranks} ranks, {arguments.type}, {arguments.method}; medians in us, then ratios")
    print(f"# {'collective':<15}{'size':>8}{'plain':>10}{'1':>10}{'ranks':>10}"
          f"{'1: time':>9}{'cpu':>6}{'ranks: time':>13}{'cpu':>6}  algorithms")
    for (collective, size), repetitions in cells.items():
        us = [statistics.median(each[way][0] for each in repetitions) for way in WAYS]
        exact = [ratio(repetitions, "1", figure) for figure in (0, 1)]
        in_order = [ratio(repetitions, "ranks", figure) for figure in (0, 1)]
        names = ", ".join(repetitions[0][way][2] for way in WAYS[:2])
        print(f"  {collective:<15}{size:>8}{us[0]:>10.2f}{us[1]:>10.2f}{us[2]:>10.2f}"
              f"{exact[0]:>9.2f}{exact[1]:>6.2f}{in_order[0]:>13.2f}{in_order[1]:>6.2f}  {names}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collectives", nargs="*", default=["allreduce"])
    parser.add_argument("--unisono", default="build/release/bin/unisono", help="the tool")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of ranks")
    parser.add_argument("--sizes", default="8,8K,64K,1M,4M", help="bytes of a vector or block")
    parser.add_argument("--type", default="float32", help="type of the elements")
    parser.add_argument("--method", choices=["loop", "single"], default="loop")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions")
    parser.add_argument("--seconds", type=float, default=0.2, help="for one line of one run")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run")
    arguments = parser.parse_args()
    try:
        for ranks in arguments.ranks.split(","):
            print_table(arguments, int(ranks), measure(arguments, int(ranks)))
    except (Unusable, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"sums.py: {error}")


if __name__ == "__main__":
    main()

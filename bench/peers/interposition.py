#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a collective of an MPI program costs more than the same call of Unisono's C API.

Builds interposition.c for each MPI (--mpi, default all that are found) and runs it with
libunisono_mpi.so. In one process it calls by turns the drop-in's collectives and those of the C
API, on communicators of their own. Prints for each collective the medians over the processes:

    C API     the C API's time of a call in a row, in ns
    more      the drop-in's time less that, in the same turn
    floor     the same difference between two sets of communicators of the C API. It says what
              the place of their memory alone makes of it.

Run it on an idle machine.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import drop_in
from compare import HERE, ROOT
from peer_report import machine, progress

host_mpi = drop_in.host_mpi


def fail(message):
    sys.exit(f"interposition.py: {message}")


def build(mpi, arguments):
    program = arguments.output / f"interposition.{mpi.name}"
    library = arguments.build.resolve() / "lib"
    command = [*mpi.compiler, "-O2", "-std=gnu11", f"-I{ROOT / 'include'}",
               HERE / "interposition.c", *mpi.libraries, f"-L{library}", f"-Wl,-rpath,{library}",
               "-lunisono", "-o", program]
    subprocess.run([str(word) for word in command], check=True)
    return program


def run_once(mpi, program, arguments):
    """{(collective, bytes): {"c_api_ns", "more_ns", "floor_ns"}} of a process pair, and the MPI."""
    words = [*drop_in.without_drop_in(mpi, program, 2), arguments.turns, arguments.calls]
    command = drop_in.with_drop_in(mpi, words, arguments.build / "lib" / "libunisono_mpi.so")
    # Unisono does all calls, so that none of the two sides is the MPI.
    done = drop_in.start(mpi, command, {"UNISONO_MPI": "on"})
    if done.returncode != 0:
        fail(f"exit status {done.returncode} with {mpi.name}\n{done.stdout}{done.stderr}")
    report = json.loads(done.stdout[done.stdout.find("{"):])
    figures = {}
    for cell in report["results"]:
        sides = [cell[name] for name in ("drop_in", "c_api", "c_api_again")]
        more = [with_it - own for with_it, own, _ in zip(*sides, strict=True)]
        floor = [again - own for _, own, again in zip(*sides, strict=True)]
        figures[cell["collective"], cell["bytes"]] = {
            "c_api_ns": statistics.median(sides[1]), "more_ns": statistics.median(more),
            "floor_ns": statistics.median(floor)}
    return figures, report["library"]


def measure(mpi, arguments):
    program = build(mpi, arguments)
    rows, library = {}, ""
    for repetition in range(arguments.repeat):
        progress(f"interposition.py: {mpi.name}, process {repetition + 1}")
        figures, library = run_once(mpi, program, arguments)
        for key, of_process in figures.items():
            for name, value in of_process.items():
                rows.setdefault(key, {}).setdefault(name, []).append(round(value, 1))
    progress("")
    head = {"mpi": mpi.name, "library": " ".join(library.split()), "ranks": 2}
    return [{**head, "collective": key[0], "bytes": key[1], **row} for key, row in rows.items()]


def print_table(rows):
    print(f"\n# {rows[0]['library']} ({rows[0]['mpi']}), 2 ranks, ns; in brackets least and most")
    print(f"# {'collective':<24}{'bytes':>6}{'C API':>8}{'more':>8}{'':>16}{'floor':>8}")
    for row in rows:
        more = row["more_ns"]
        bounds = f"({min(more):.0f} .. {max(more):.0f})"
        print(f"  {row['collective']:<24}{row['bytes']:>6}"
              f"{statistics.median(row['c_api_ns']):>8.0f}{statistics.median(more):>8.0f}"
              f"{bounds:>16}{statistics.median(row['floor_ns']):>8.0f}", flush=True)
    print(f"# median of the collectives: "
          f"{statistics.median(statistics.median(row['more_ns']) for row in rows):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", type=lambda text: text.split(","), default=host_mpi.NAMES,
                        help=f"of {', '.join(host_mpi.NAMES)}; default: all")
    parser.add_argument("--environments", type=pathlib.Path, default=host_mpi.ENVIRONMENTS,
                        help="of scripts/mpi_environments.py; default: build/venv-mpi")
    parser.add_argument("--repeat", type=int, default=3, help="processes; default: 3")
    parser.add_argument("--turns", type=int, default=48, help="of each side; default: 48")
    parser.add_argument("--calls", type=int, default=1000, help="of a turn; default: 1000")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench",
                        help="directory for the programs; default: build/bench")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.mpi:
        try:
            mpi = host_mpi.find(name, arguments.environments)
        except host_mpi.Missing as error:
            print(f"interposition.py: {name} is left out: {error}", file=sys.stderr)
            continue
        of_mpi = measure(mpi, arguments)
        print_table(of_mpi)
        rows += of_mpi
    if arguments.json is not None:
        command = f"bench/peers/interposition.py --repeat {arguments.repeat}"
        whole = {"tool": "interposition.py", "command": command, "machine": machine(),
                 "results": rows}
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

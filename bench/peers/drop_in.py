#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs with the drop-in against the same programs without it, on this machine.

Builds mpi_twin.c with each installed MPI and runs it in turn with and without libunisono_mpi.so,
repeatedly, so that other load on the machine affects both alike. Prints for each collective and
size the medians of the medians and how many times faster it is with the drop-in. Cells that lose
more than 5 % are marked.

With --communicators it measures instead what a communicator costs: to make it, one allreduce, and
to free it; and what many of them leave behind.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from compare import COLLECTIVES, METHODS, ROOT, build_twins, command_line, launch_line
from peer_report import Unusable, geometric_mean, number, progress, read_report

LOST = 0.95


def fail(message):
    sys.exit(f"drop_in.py: {message}")


def with_drop_in(peer, command, drop_in):
    """The MPI's own command, which hands the object to the ranks alone."""
    words = {
        "openmpi": ["-x", f"LD_PRELOAD={drop_in}"],
        "mpich": ["-genv", "LD_PRELOAD", str(drop_in)],
    }[peer]
    return [command[0], *words, *command[1:]]


def run_once(command):
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        if done.returncode == 0:
            return read_report(done.stdout)
        raise Unusable(f"exit status {done.returncode}")
    except Unusable as error:
        fail(f"{error} from: {' '.join(words)}\n{done.stdout}{done.stderr}")


def measure(peer, twin, ranks, arguments):
    """{(collective, size, method): {"with": [us], "without": [us]}}"""
    samples = {}
    for repetition in range(arguments.repeat):
        for collective in arguments.collectives:
            bare = command_line(peer, twin, ranks, [collective], arguments)
            commands = {"without": bare, "with": with_drop_in(peer, bare, arguments.drop_in)}
            # Each is as often the first as the other.
            for side in sorted(commands, reverse=repetition % 2 == 0):
                progress(f"drop_in.py: {peer}, {ranks} ranks, repetition {repetition + 1}, "
                         f"{collective}, {side}")
                for cell in run_once(commands[side])["results"]:
                    for method in METHODS:
                        key = (collective, cell["size"], method)
                        of_key = samples.setdefault(key, {"with": [], "without": []})
                        of_key[side].append(cell[method]["median_us"])
    progress("")
    return samples


def measure_communicators(peer, program, ranks, arguments):
    """Prints one line for each side."""
    bare = [*launch_line(peer, program, ranks), arguments.communicators]
    commands = {"without": bare, "with": with_drop_in(peer, bare, arguments.drop_in)}
    samples = {"without": [], "with": []}
    for repetition in range(arguments.repeat):
        for side in sorted(commands, reverse=repetition % 2 == 0):
            progress(f"drop_in.py: {peer}, {ranks} ranks, repetition {repetition + 1}, {side}")
            words = [str(word) for word in commands[side]]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                fail(f"exit status {done.returncode} from: {' '.join(words)}\n{done.stderr}")
            samples[side].append(json.loads(done.stdout.splitlines()[-1]))
    progress("")
    for side, of_side in samples.items():
        median = statistics.median(sample["us"] for sample in of_side)
        most = {name: max(sample[name] for sample in of_side)
                for name in ("descriptors", "memory_kib")}
        print(f"{peer}, {ranks} ranks, {side}: {median:.1f} us for a communicator; "
              f"{arguments.communicators} of them leave {most['descriptors']} descriptors and "
              f"{most['memory_kib']} KiB in all ranks", flush=True)


def print_table(peer, ranks, samples):
    print(f"\n# {peer}, {ranks} ranks; us, median of the medians; ratio: without / with")
    print(f"# {'':22}" + "".join(f"  {method:<30}" for method in METHODS))
    print(f"# {'collective':<15}{'size':>8}" + f"{'with':>11}{'without':>11}{'ratio':>9} " * 2)
    ratios = {method: [] for method in METHODS}
    for collective, size in dict.fromkeys(key[:2] for key in samples):
        line = f"  {collective:<15}{size if collective != 'barrier' else '':>8}"
        for method in METHODS:
            row = {side: statistics.median(values)
                   for side, values in samples[(collective, size, method)].items()}
            ratio = row["without"] / row["with"] if row["with"] > 0 else None
            line += number(row["with"], 11) + number(row["without"], 11) + number(ratio, 9, "x")
            line += "!" if ratio is not None and ratio < LOST else " "
            if ratio is not None:
                ratios[method].append(ratio)
        print(line)
    for method in METHODS:
        if ratios[method]:
            lost = sum(ratio < LOST for ratio in ratios[method])
            print(f"# {method}: geometric mean {geometric_mean(ratios[method]):.2f}x; {lost} of "
                  f"{len(ratios[method])} cells lose more than 5 %", flush=True)


def parse_arguments():
    def numbers(text):
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/peers/drop_in.py --ranks 2 --collectives barrier,allreduce",
    )
    parser.add_argument("--ranks", type=numbers, default=[2, 4], help="default: 2,4")
    parser.add_argument("--sizes", default="4,64,1024,16384,262144,4194304",
                        help="bytes; default: %(default)s")
    parser.add_argument("--collectives", type=lambda text: text.split(","), default=COLLECTIVES,
                        help="default: all")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="default: both")
    parser.add_argument("--communicators", type=int, metavar="N",
                        help="measure the making and freeing of N communicators")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; default: 3")
    parser.add_argument("--seconds", type=float, default=0.05,
                        help="time for one line; default: %(default)s")
    parser.add_argument("--drop-in", type=pathlib.Path,
                        default=ROOT / "build/release/lib/libunisono_mpi.so",
                        help="default: build/release/lib/libunisono_mpi.so")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench",
                        help="directory for the twins; default: build/bench")
    arguments = parser.parse_args()
    for collective in arguments.collectives:
        if collective not in COLLECTIVES:
            parser.error(f"no collective is named '{collective}': {', '.join(COLLECTIVES)}")
    return arguments


def main():
    arguments = parse_arguments()
    if not arguments.drop_in.exists():
        fail(f"{arguments.drop_in} does not exist: run ./dev build first")
    arguments.output.mkdir(parents=True, exist_ok=True)
    name = "mpi_twin" if arguments.communicators is None else "communicators"
    for peer, twin in build_twins(arguments.output, name).items():
        if arguments.mpi not in (None, peer):
            continue
        for ranks in arguments.ranks:
            if arguments.communicators is not None:
                measure_communicators(peer, twin, ranks, arguments)
                continue
            print_table(peer, ranks, measure(peer, twin, ranks, arguments))


if __name__ == "__main__":
    main()

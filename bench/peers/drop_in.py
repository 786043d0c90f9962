#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs with the drop-in against the same programs without it, on this machine.

Builds mpi_twin.c for each MPI (--mpi, default Debian's two) and runs it with libunisono_mpi.so. In
one process it calls by turns the drop-in's collectives and the MPI's own, for milliseconds each, so
that both meet the machine in the same state. Prints for each collective and size the medians and
the median of the turns' ratios. Cells in which the drop-in loses more than 5 % are marked.

With --apart it runs processes with and without the drop-in instead, one after the other. Their
ratios are those of the medians. On a machine whose cores move they differ by times.

MPIs from a package index are in the environments of scripts/mpi_environments.py.

With --communicators it measures instead what a communicator costs: to make it, one allreduce, and
to free it; and what many of them leave behind. With --messages it measures what messages cost whose
receiver waits in a collective (waiting_rank.c).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from compare import COLLECTIVES, HERE, METHODS, ROOT
from peer_report import Unusable, geometric_mean, machine, number, progress, read_report

sys.path.insert(0, str(ROOT / "test" / "frontend"))
import host_mpi  # noqa: E402

LOST = 0.95
MOST_TURNS = 1000  # of mpi_twin.c


def fail(message):
    sys.exit(f"drop_in.py: {message}")


def launch_line(peer, program, ranks):
    """Of one of Debian's."""
    command = [f"mpiexec.{peer}", "-n", ranks]
    if peer == "openmpi":
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        if ranks > len(os.sched_getaffinity(0)):
            command += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    return [*command, program]


def build(mpi, name, directory):
    """The program for the MPI."""
    program = directory / f"{name}.{mpi.name}"
    command = [*mpi.compiler, "-O2", "-std=c11", HERE / f"{name}.c", *mpi.libraries, "-o", program]
    subprocess.run([str(word) for word in command], check=True)
    return program


def without_drop_in(mpi, program, ranks):
    if mpi.name in host_mpi.PACKAGED:
        return launch_line(mpi.name, program, ranks)
    words = [mpi.mpirun, "-n", ranks]
    if mpi.name == "openmpi5" and ranks > len(os.sched_getaffinity(0)):
        words += ["--mca", "mpi_yield_when_idle", "1"]
    return [*words, program]


def with_drop_in(mpi, command, drop_in):
    """The MPI's own command, which hands the object to the ranks alone."""
    preload = (["-x", f"LD_PRELOAD={drop_in}"] if mpi.name.startswith("openmpi") else
               ["-genv", "LD_PRELOAD", str(drop_in)])
    return [command[0], *preload, *command[1:]]


def start(mpi, command, more=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=mpi.environment(pathlib.Path(mpi.mpirun).parent, more or {}))


def run_once(mpi, command):
    words = [str(word) for word in command]
    done = start(mpi, words)
    try:
        if done.returncode == 0:
            return read_report(done.stdout)
        raise Unusable(f"exit status {done.returncode}")
    except Unusable as error:
        fail(f"{error} from: {' '.join(words)}\n{done.stdout}{done.stderr}")


def measure_apart(mpi, twin, ranks, arguments):
    """{(collective, size, method): {"with": [us], "without": [us]}}"""
    samples = {}
    for repetition in range(arguments.repeat):
        for collective in arguments.collectives:
            bare = [*without_drop_in(mpi, twin, ranks), "--collectives", collective,
                    "--sizes", arguments.sizes, "--seconds", arguments.seconds]
            commands = {"without": bare, "with": with_drop_in(mpi, bare, arguments.drop_in)}
            # Each is as often the first as the other.
            for side in sorted(commands, reverse=repetition % 2 == 0):
                progress(f"drop_in.py: {mpi.name}, {ranks} ranks, repetition {repetition + 1}, "
                         f"{collective}, {side}")
                for cell in run_once(mpi, commands[side])["results"]:
                    for method in METHODS:
                        key = (collective, cell["size"], method)
                        of_key = samples.setdefault(key, {"with": [], "without": []})
                        of_key[side].append(cell[method]["median_us"])
    progress("")
    return samples


def measure_by_turns(mpi, twin, ranks, arguments):
    """The same; the two lists are pairs."""
    samples = {}
    for repetition in range(arguments.repeat):
        progress(f"drop_in.py: {mpi.name}, {ranks} ranks, repetition {repetition + 1}")
        command = [*without_drop_in(mpi, twin, ranks), "--collectives",
                   ",".join(arguments.collectives), "--sizes", arguments.sizes,
                   "--seconds", arguments.seconds, "--turns", arguments.turns]
        report = run_once(mpi, with_drop_in(mpi, command, arguments.drop_in))
        for cell in report["results"]:
            for method in METHODS:
                key = (cell["collective"], cell["size"], method)
                of_key = samples.setdefault(key, {"with": [], "without": []})
                for side, of_side in of_key.items():
                    of_side += cell[side][method]
    progress("")
    return samples


def ratio_of(samples, paired):
    if paired:
        pairs = zip(samples["without"], samples["with"], strict=True)
        ratios = [without / mine for without, mine in pairs if mine > 0]
        return statistics.median(ratios) if ratios else None
    mine = statistics.median(samples["with"])
    return statistics.median(samples["without"]) / mine if mine > 0 else None


def cells_of(mpi, ranks, samples, paired, setting):
    """The figures of --json, one for each collective and size."""
    cells = []
    for collective, size in dict.fromkeys(key[:2] for key in samples):
        cell = {"mpi": mpi.name, "ranks": ranks, "setting": setting, "collective": collective,
                "bytes": 0 if collective == "barrier" else size}
        for method in METHODS:
            of_cell = samples[(collective, size, method)]
            for side, values in of_cell.items():
                cell[f"{method}_{side}_us"] = round(statistics.median(values), 4)
            ratio = ratio_of(of_cell, paired)
            cell[f"{method}_ratio"] = None if ratio is None else round(ratio, 3)
        cells.append(cell)
    return cells


def write_json(file, cells):
    """Adds the cells to the file."""
    command = "bench/peers/drop_in.py " + " ".join(sys.argv[1:])
    whole = {"tool": "drop_in.py", "commands": [], "machine": machine(), "results": []}
    if file.exists():
        whole = json.loads(file.read_text(encoding="utf-8"))
    if command not in whole["commands"]:
        whole["commands"].append(command)
    whole["results"] += cells
    rows = ",\n".join("  " + json.dumps(cell) for cell in whole.pop("results"))
    text = json.dumps(whole, indent=1)
    file.write_text(f'{text[:-2]},\n "results": [\n{rows}\n ]\n}}\n', encoding="utf-8")


def lines_by_turns(mpi, bare, ranks, arguments):
    """{"without": [what each of its lines holds], "with": [...]}"""
    commands = {"without": bare, "with": with_drop_in(mpi, bare, arguments.drop_in)}
    samples = {"without": [], "with": []}
    for repetition in range(arguments.repeat):
        for side in sorted(commands, reverse=repetition % 2 == 0):
            progress(f"drop_in.py: {mpi.name}, {ranks} ranks, repetition {repetition + 1}, {side}")
            done = start(mpi, commands[side])
            if done.returncode != 0:
                fail(f"exit status {done.returncode} with {mpi.name}, {side}\n{done.stderr}")
            samples[side] += [json.loads(line) for line in done.stdout.splitlines()
                              if line.startswith("{")]
    progress("")
    return samples


def measure_communicators(mpi, program, ranks, arguments):
    """Prints one line for each side."""
    bare = [*without_drop_in(mpi, program, ranks), arguments.communicators]
    for side, of_side in lines_by_turns(mpi, bare, ranks, arguments).items():
        median = statistics.median(sample["us"] for sample in of_side)
        most = {name: max(sample[name] for sample in of_side)
                for name in ("descriptors", "memory_kib")}
        print(f"{mpi.name}, {ranks} ranks, {side}: {median:.1f} us for a communicator; "
              f"{arguments.communicators} of them leave {most['descriptors']} descriptors and "
              f"{most['memory_kib']} KiB in all ranks", flush=True)


def measure_messages(mpi, program, ranks, arguments):
    """Prints one line for each side."""
    bare = without_drop_in(mpi, program, ranks)
    for side, of_side in lines_by_turns(mpi, bare, ranks, arguments).items():
        medians = {name: statistics.median(sample[name] for sample in of_side)
                   for name in ("ssend_us", "fetch_and_op_us")}
        print(f"{mpi.name}, {ranks} ranks, {side}: to a rank that waits, an MPI_Ssend takes "
              f"{medians['ssend_us']:.2f} us, "
              f"an MPI_Fetch_and_op {medians['fetch_and_op_us']:.2f} us", flush=True)


def print_table(peer, ranks, samples, paired):
    print(f"\n# {peer}, {ranks} ranks; us, medians; ratio: without / with")
    print(f"# {'':22}" + "".join(f"  {method:<30}" for method in METHODS))
    print(f"# {'collective':<15}{'size':>8}" + f"{'with':>11}{'without':>11}{'ratio':>9} " * 2)
    ratios = {method: [] for method in METHODS}
    for collective, size in dict.fromkeys(key[:2] for key in samples):
        line = f"  {collective:<15}{size if collective != 'barrier' else '':>8}"
        for method in METHODS:
            of_cell = samples[(collective, size, method)]
            row = {side: statistics.median(values) for side, values in of_cell.items()}
            ratio = ratio_of(of_cell, paired)
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
    parser.add_argument("--mpi", type=lambda text: text.split(","), default=host_mpi.PACKAGED,
                        help=f"of {', '.join(host_mpi.NAMES)}; default: openmpi,mpich")
    parser.add_argument("--environments", type=pathlib.Path, default=host_mpi.ENVIRONMENTS,
                        help="of scripts/mpi_environments.py; default: build/venv-mpi")
    parser.add_argument("--turns", type=int, default=20,
                        help="of each side in a process, 1 to 1000; default: 20")
    parser.add_argument("--apart", action="store_true",
                        help="compare processes with and without the drop-in")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="add the figures of each cell to this file")
    parser.add_argument("--communicators", type=int, metavar="N",
                        help="measure the making and freeing of N communicators")
    parser.add_argument("--messages", action="store_true",
                        help="measure messages to a rank that waits in a collective")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions; default: 3")
    parser.add_argument("--seconds", type=float, default=0.05,
                        help="time for one line; default: %(default)s")
    parser.add_argument("--drop-in", type=pathlib.Path,
                        default=ROOT / "build/release/lib/libunisono_mpi.so",
                        help="default: build/release/lib/libunisono_mpi.so")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench",
                        help="directory for the twins; default: build/bench")
    arguments = parser.parse_args()
    if not 1 <= arguments.turns <= MOST_TURNS:
        parser.error(f"--turns takes a number from 1 to {MOST_TURNS}")
    for collective in arguments.collectives:
        if collective not in COLLECTIVES:
            parser.error(f"no collective is named '{collective}': {', '.join(COLLECTIVES)}")
    for name in arguments.mpi:
        if name not in host_mpi.NAMES:
            parser.error(f"no MPI is named '{name}': {', '.join(host_mpi.NAMES)}")
    return arguments


def main():
    arguments = parse_arguments()
    if not arguments.drop_in.exists():
        fail(f"{arguments.drop_in} does not exist: run ./dev build first")
    arguments.output.mkdir(parents=True, exist_ok=True)
    name = "mpi_twin"
    if arguments.communicators is not None:
        name = "communicators"
    elif arguments.messages:
        name = "waiting_rank"
    for mpi_name in arguments.mpi:
        try:
            mpi = host_mpi.find(mpi_name, arguments.environments)
        except host_mpi.Missing as error:
            print(f"drop_in.py: {mpi_name} is left out: {error}", file=sys.stderr)
            continue
        twin = build(mpi, name, arguments.output)
        for ranks in arguments.ranks:
            if arguments.communicators is not None:
                measure_communicators(mpi, twin, ranks, arguments)
                continue
            if arguments.messages:
                measure_messages(mpi, twin, ranks, arguments)
                continue
            run = measure_apart if arguments.apart else measure_by_turns
            samples = run(mpi, twin, ranks, arguments)
            print_table(mpi.name, ranks, samples, not arguments.apart)
            if arguments.json is not None:
                setting = os.environ.get("UNISONO_MPI", "on")
                write_json(arguments.json,
                           cells_of(mpi, ranks, samples, not arguments.apart, setting))


if __name__ == "__main__":
    main()

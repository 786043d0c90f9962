#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Unisono with Open MPI and MPICH on this machine.

Builds mpi_twin.c, the twin of `unisono bench`, with each installed MPI. Runs all of them in turn,
repeatedly, so that other load on the machine affects all alike. Prints for each number of ranks the
median of the medians with the ratio to the better MPI, and the same of the calling thread's
processor time for one call. Each runs at its best
setting: Open MPI with its default binding where there is a core for each rank, otherwise with
--oversubscribe and mpi_yield_when_idle; MPICH has no such setting. Everything measured goes to a
JSON file.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from peer_report import Unusable, geometric_mean, number, progress, read_report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COLLECTIVES = [
    *["barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter"],
    *["alltoall", "reduce_scatter", "scan", "exscan"],
    *["allgatherv", "gatherv", "scatterv", "alltoallv", "reduce_scatterv"],
]
METHODS = ["loop", "single"]
# The figures of each method in a run's report, and their description above the table.
STATISTICS = {
    "median_us": "us, median of the medians",
    "cpu_us": "us, processor time of the calling thread for one call, mean of the ranks, median",
}
PEERS = {
    "openmpi": {"name": "Open MPI", "package": "libopenmpi-dev openmpi-bin"},
    "mpich": {"name": "MPICH", "package": "libmpich-dev mpich"},
}


def fail(message):
    sys.exit(f"compare.py: {message}")


def build_twins(directory):
    """mpi_twin.c by peer; says which peer is missing and how to install it."""
    twins = {}
    for peer, about in PEERS.items():
        compiler = shutil.which(f"mpicc.{peer}")
        if compiler is None or shutil.which(f"mpiexec.{peer}") is None:
            print(
                f"compare.py: {about['name']} is left out: mpicc.{peer} or mpiexec.{peer} is not "
                f"installed (Debian: apt install {about['package']})",
                file=sys.stderr,
            )
            continue
        twin = directory / f"mpi_twin.{peer}"
        subprocess.run(
            [compiler, "-O2", "-std=c11", "-Wall", "-Wextra", HERE / "mpi_twin.c", "-o", twin],
            check=True,
        )
        twins[peer] = twin
    return twins


def launch_line(peer, program, ranks):
    command = [f"mpiexec.{peer}", "-n", ranks]
    if peer == "openmpi":
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        if ranks > len(os.sched_getaffinity(0)):
            command += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    return [*command, program]


def command_line(tool, program, ranks, collectives, arguments):
    if tool == "unisono":
        return [
            *[program, "bench", *collectives, "-n", ranks, "--format", "json"],
            *["--sizes", arguments.sizes, "--seconds", arguments.seconds],
        ]
    return [
        *launch_line(tool, program, ranks),
        *["--collectives", ",".join(collectives)],
        *["--sizes", arguments.sizes, "--seconds", arguments.seconds],
    ]


def run_once(tool, program, ranks, collectives, arguments):
    command = [str(word) for word in command_line(tool, program, ranks, collectives, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(
            f"exit status {done.returncode} of: {' '.join(command)}\n{done.stdout}{done.stderr}"
        )
    try:
        return read_report(done.stdout)
    except Unusable as error:
        fail(f"{error} from: {' '.join(command)}\n{done.stdout}{done.stderr}")


def measure(tools, arguments):
    """All reports: [(tool, ranks, report)], the tools alternating."""
    runs = []
    order = list(tools)
    total = len(arguments.ranks) * arguments.repeat * len(arguments.collectives) * len(order)
    for ranks in arguments.ranks:
        for repetition in range(arguments.repeat):
            for collective in arguments.collectives:
                # Each tool is as often the first as any other.
                order = order[1:] + order[:1]
                for tool in order:
                    progress(
                        f"compare.py: {len(runs)}/{total}: {ranks} ranks, repetition "
                        f"{repetition + 1}, {collective}, {tool}"
                    )
                    report = run_once(tool, tools[tool], ranks, [collective], arguments)
                    runs.append((tool, ranks, report))
    progress("")
    return runs


def gather(runs):
    """{(ranks, method, collective, size, statistic): {tool: its median over the runs}}"""
    samples = {}
    for tool, ranks, report in runs:
        for cell in report["results"]:
            for method in METHODS:
                for statistic in STATISTICS:
                    key = (ranks, method, cell["collective"], cell["size"], statistic)
                    of_tool = samples.setdefault(key, {}).setdefault(tool, [])
                    of_tool.append(cell[method][statistic])
    return {
        key: {tool: statistics.median(values) for tool, values in tools.items()}
        for key, tools in samples.items()
    }


def ratio(row):
    """How many times faster than the better MPI; None where there is no MPI."""
    peers = [row[peer] for peer in PEERS if peer in row]
    return min(peers) / row["unisono"] if peers and row["unisono"] > 0 else None


def print_table(medians, ranks, tools, statistic):
    head = "".join(f"{tool:>11}" for tool in tools) + f"{'ratio':>9}"
    print(f"\n# {ranks} ranks; {STATISTICS[statistic]}; ratio: the better MPI / unisono")
    print(f"# {'':22}" + "".join(f"  {method:<{len(head) - 2}}" for method in METHODS))
    print(f"# {'collective':<15}{'size':>7}" + head * len(METHODS))
    ratios = {method: [] for method in METHODS}
    wanted = (ranks, METHODS[0], statistic)
    keys = [key for key in medians if (key[0], key[1], key[4]) == wanted]
    for _, _, collective, size, _ in keys:
        line = f"  {collective:<15}{size if collective != 'barrier' else '':>7}"
        for method in METHODS:
            row = medians[(ranks, method, collective, size, statistic)]
            line += "".join(number(row.get(tool), 11) for tool in tools)
            line += number(ratio(row), 9, "x")
            if ratio(row) is not None:
                ratios[method].append(ratio(row))
        print(line)
    if all(ratios.values()):
        line = f"# {'geometric mean':<22}"
        for method in METHODS:
            line += " " * 11 * len(tools) + number(geometric_mean(ratios[method]), 9, "x")
        print(line, flush=True)


def document(runs, medians, arguments):
    first = next((report for tool, _, report in runs if tool == "unisono"), {})
    return {
        "tool": "compare.py",
        "command": " ".join(["bench/peers/compare.py", *sys.argv[1:]]),
        "machine": first.get("machine"),
        "versions": {
            tool: report.get("library", report.get("version")) for tool, _, report in runs
        },
        "repeat": arguments.repeat,
        "results": [
            {
                "ranks": ranks,
                "method": method,
                "collective": collective,
                "size": size,
                "median_us": row,
                "cpu_us": medians[(ranks, method, collective, size, "cpu_us")],
                "ratio": ratio(row),
            }
            for (ranks, method, collective, size, statistic), row in medians.items()
            if statistic == "median_us"
        ],
        "runs": [{"tool": tool, "ranks": ranks, "report": report} for tool, ranks, report in runs],
    }


def parse_arguments():
    def numbers(text):
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/peers/compare.py --ranks 2,8 --collectives barrier,allreduce",
    )
    parser.add_argument("--ranks", type=numbers, default=[2, 8, 32], help="default: 2,8,32")
    parser.add_argument("--sizes", default="8,1024,32768", help="bytes; default: %(default)s")
    parser.add_argument(
        "--collectives", type=lambda text: text.split(","), default=COLLECTIVES, help="default: all"
    )
    parser.add_argument("--repeat", type=int, default=5, help="repetitions; default: 5")
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="time for one line; default: %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="8 bytes, 0.1 seconds, once")
    parser.add_argument(
        "--unisono",
        type=pathlib.Path,
        default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono",
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=ROOT / "build/bench",
        help="directory for the twins and peers.json; default: build/bench",
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.seconds, arguments.repeat = "8", 0.1, 1
    for collective in arguments.collectives:
        if collective not in COLLECTIVES:
            parser.error(f"no collective is named '{collective}': {', '.join(COLLECTIVES)}")
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    if not arguments.unisono.exists():
        fail(f"{arguments.unisono} does not exist: run ./dev build first")
    arguments.output.mkdir(parents=True, exist_ok=True)
    tools = {"unisono": arguments.unisono, **build_twins(arguments.output)}
    runs = measure(tools, arguments)
    medians = gather(runs)
    for ranks in arguments.ranks:
        for statistic in STATISTICS:
            print_table(medians, ranks, list(tools), statistic)
    path = arguments.output / "peers.json"
    path.write_text(json.dumps(document(runs, medians, arguments), indent=1) + "\n")
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()

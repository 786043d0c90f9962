#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The allgather algorithms on a fat tree, whole and with holes, beside figures of Kumar and Kale
("Scaling all-to-all multicast on fat-tree networks", 2004, Table 1).

The hosts are network namespaces of this machine (as root), a 4-ary 2-tree with limited links. In
a row with holes, some hosts have no rank, so that the ranks' numbers and the tree no longer fit.
The paper's rows with holes have as many ranks as those without; so have the rows of 12 ranks here.

kprefix and kshift are measured with the largest k of the paper that divides the number of ranks;
the tables name it. With k = 1 kprefix is the ring, and is not measured as kprefix. Whatever is left
out is listed with its reason.

Prints the effective bandwidth at each rank, (P - 1) blocks by the time of a call, in MB/s and as a
share of a link's. Below it stand the bandwidths relative to kshift, here and in the paper, and the
processor time of a call at the calling thread. The machine is not the authors': only the order can
be compared.
"""

import argparse
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "peers"))

from peer_report import Unusable, progress, read_report  # noqa: E402

from host_set import Failed, HostSet, run_main, unisono_job, why_not  # noqa: E402

HOSTS = 16
ALGORITHMS = ["direct", "mesh2d", "prefix-send", "kshift", "kprefix", "ring"]
# The hosts with a rank. Holes are inside, where they shift all ranks behind them.
ROWS = {
    "16, whole": range(16),
    "12, whole": range(12),
    "12, 1 hole": [host for host in range(13) if host != 5],
    "12, 2 holes": [host for host in range(14) if host not in (5, 10)],
    "15, 1 hole": [host for host in range(16) if host != 5],
}
# For which the paper has them, if they divide the number of ranks: the largest comes first.
LEGAL_K = {"kprefix": [8, 4, 2], "kshift": [8, 4, 3, 2]}
# Table 1: MB/s at each node with blocks of 256 KB.
PAPER = {
    "64, whole": {"prefix-send": 520, "kshift": 507, "kprefix": 531},
    "128, whole": {"prefix-send": 428, "kshift": 432, "kprefix": 519},
    "256, whole": {"prefix-send": 429, "kshift": 405, "kprefix": 511},
    "128, 1 hole": {"prefix-send": 316, "kshift": 392, "kprefix": 338},
    "128, 2 holes": {"kshift": 399, "kprefix": 373},
    "240, 1 hole": {"kshift": 394, "kprefix": 346},
}


def megabits(rate):
    """Megabits per second of a rate such as 200mbit."""
    units = {"kbit": 1e-3, "mbit": 1, "gbit": 1e3}
    for unit, factor in units.items():
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise argparse.ArgumentTypeError(f"'{rate}' is no rate: write 50mbit")


class LeftOut(Exception):
    """Why an algorithm is not measured with this number of ranks."""


def name_of(algorithm):
    return algorithm.partition("(")[0]


def to_ask_for(algorithm, ranks):
    """The algorithm as UNISONO_ALGORITHM takes it: without parameters, with a k as in the paper."""
    if algorithm not in LEGAL_K:
        return algorithm
    for k in LEGAL_K[algorithm]:
        if ranks % k == 0:
            return f"{algorithm}({k})"
    known = ", ".join(map(str, LEGAL_K[algorithm]))
    raise LeftOut(f"none of k = {known} divides {ranks}")


def what_ran(algorithm, asked, ran, ranks):
    """A report's algorithm, if it is the one that was asked for."""
    if name_of(ran) != name_of(algorithm):
        raise LeftOut(f"{asked} is not legal for {ranks} ranks: {ran} ran in its place")
    if ran.startswith("kprefix(1,"):
        raise LeftOut(f"{ran} is the ring")
    return ran


def measure_one(host_set, placement, algorithm, arguments):
    """The algorithm, MB/s at each rank, processor time of a call: its caller's, and the rest."""
    ranks = len(placement)
    asked = to_ask_for(algorithm, ranks)
    words = ["bench", "allgather", "--as-rank", "--format", "json", "--method", "loop"]
    words += ["--sizes", arguments.size, "--seconds", arguments.seconds]
    settings = {"UNISONO_ALGORITHM": f"allgather: {asked}@{arguments.size}-inf"}
    job = unisono_job(host_set, placement, words, settings)
    cell = read_report(host_set.run(job, arguments.limit))["results"][0]
    loop = cell["loop"]
    return {
        "ran": what_ran(algorithm, asked, cell["algorithm"], ranks),
        "MBps": (ranks - 1) * arguments.size / loop["median_us"],
        "cpu_us": loop["cpu_us"],
        "agent_us": loop["agent_us"],
    }


def join(samples):
    """The median of the repetitions."""
    figures = {key: statistics.median(each[key] for each in samples)
               for key in ("MBps", "cpu_us", "agent_us")}
    return {"ran": samples[0]["ran"], **figures}


def measure(host_set, arguments):
    """{row: {algorithm: figures}}, and {row: {algorithm: why it is left out}}."""
    samples = {row: {} for row in ROWS}
    left_out = {row: {} for row in ROWS}
    for repetition in range(arguments.repeat):
        for row, placement in ROWS.items():
            for algorithm in arguments.algorithms:
                if algorithm in left_out[row]:
                    continue
                progress(f"repetition {repetition + 1}, {row}, {algorithm}")
                try:
                    cell = measure_one(host_set, list(placement), algorithm, arguments)
                    samples[row].setdefault(algorithm, []).append(cell)
                except LeftOut as reason:
                    left_out[row][algorithm] = str(reason)
    progress("")
    measured = {row: {name: join(cells) for name, cells in of_row.items()}
                for row, of_row in samples.items()}
    return measured, left_out


def parameter_k(ran):
    """"k=4 " of kprefix(4,1)."""
    name, _, parameters = ran.partition("(")
    return f"k={parameters.partition(',')[0]} " if name in ("kprefix", "kshift") else ""


def line(row, values, names, form):
    cells = "".join(f"{form(values[name]) if name in values else '-':>19}" for name in names)
    return f"  {row:<14}{cells}"


def relative(values):
    of = values.get("kshift")
    return {name: value / of for name, value in values.items()} if of else {}


def print_left_out(left_out):
    for row, reasons in left_out.items():
        for name, reason in reasons.items():
            print(f"# left out: {row}: {name}: {reason}")


def print_tables(measured, left_out, arguments):
    names = arguments.algorithms
    link = megabits(arguments.rate) / 8
    head = "".join(f"{name:>19}" for name in names)

    def table(title, form):
        print(f"\n# {title}\n# {'ranks':<14}{head}")
        for row, cells in measured.items():
            print(line(row, cells, names, form))

    print(f"# 4-ary 2-tree of {HOSTS} hosts, links of {arguments.rate} ({link:g} MB/s) each way, "
          f"blocks of {arguments.size} bytes")
    table("MB/s at each rank (share of a link)",
          lambda cell: f"{parameter_k(cell['ran'])}{cell['MBps']:.2f} "
                       f"({100 * cell['MBps'] / link:.0f} %)")
    print(f"\n# relative to kshift\n# {'here':<14}{head}")
    for row, cells in measured.items():
        bandwidths = {name: cell["MBps"] for name, cell in cells.items()}
        print(line(row, relative(bandwidths), names, "{:.2f}".format))
    print(f"# {'the paper':<14}{head}")
    for row, values in PAPER.items():
        print(line(row, relative(values), names, "{:.2f}".format))
    table("processor time of a call, us: the calling thread + the process's others",
          lambda cell: f"{cell['cpu_us']:.0f} + {cell['agent_us']:.0f}")
    if "prefix-send" in names:
        print("# prefix-send: the paper has it for powers of two only; here, with other numbers of "
              "ranks, a rank passes over the steps in which it has no peer")
    print_left_out(left_out)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/fat_tree.py --algorithms kshift kprefix 'kprefix(4,4)'",
    )
    add = parser.add_argument
    add("--rate", default="50mbit", help="of every link, each way; default: %(default)s")
    add("--size", type=int, default=65536, help="bytes of a block; default: %(default)s")
    add("--algorithms", nargs="+", default=ALGORITHMS, metavar="NAME",
        help=f"with parameters, if wanted: 'kprefix(4,4)'; default: {' '.join(ALGORITHMS)}")
    add("--repeat", type=int, default=3, help="repetitions; default: 3")
    add("--seconds", type=float, default=2, help="time for one figure; default: 2")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    arguments = parser.parse_args()
    try:
        megabits(arguments.rate)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--rate: {error}")
    return arguments


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.unisono):
        sys.exit(f"fat_tree.py: {reason}")
    try:
        with HostSet(arguments.unisono, HOSTS, arguments.rate, "tree") as host_set:
            measured, left_out = measure(host_set, arguments)
    except (Failed, Unusable) as error:
        sys.exit(f"fat_tree.py: {error}")
    print_tables(measured, left_out, arguments)
    if arguments.json:
        document = {"command": " ".join(sys.argv), "rate": arguments.rate, "size": arguments.size,
                    "results": measured, "left_out": left_out, "paper_MBps": PAPER}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

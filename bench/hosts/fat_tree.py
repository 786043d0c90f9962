#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The allgather algorithms on a fat tree, whole and with holes, beside figures of Kumar and Kale
("Scaling all-to-all multicast on fat-tree networks", 2004, Table 1).

The hosts are network namespaces of this machine (as root), a 4-ary 2-tree with limited links. In
a row with holes, some hosts have no rank, so that the ranks' numbers and the tree no longer fit.
Printed is the effective bandwidth at each rank, (P - 1) blocks by the time of a call, in MB/s and
as a share of a link's; below it that of the algorithms relative to kshift, here and there. The
machine is not the authors': what can be compared is the order.
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
# Which hosts have no rank. Inside, where they shift all that come after them.
HOLES = {"16, whole": [], "15, 1 hole": [5], "14, 2 holes": [5, 10]}
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
    """Of 200mbit and the like."""
    units = {"kbit": 1e-3, "mbit": 1, "gbit": 1e3}
    for unit, factor in units.items():
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise argparse.ArgumentTypeError(f"'{rate}' is no rate: write 50mbit")


def bandwidth(host_set, placement, algorithm, arguments):
    """MB/s at each rank; None where the algorithm cannot be had for this number of ranks."""
    words = ["bench", "allgather", "--as-rank", "--format", "json", "--method", "loop"]
    words += ["--sizes", arguments.size, "--seconds", arguments.seconds]
    settings = {"UNISONO_ALGORITHM": f"allgather: {algorithm}@{arguments.size}-inf"}
    job = unisono_job(host_set, placement, words, settings)
    cell = read_report(host_set.run(job, arguments.limit))["results"][0]
    if not cell["algorithm"].startswith(algorithm.partition("(")[0]):
        return None  # it was passed over, as prefix-send is where P is no power of two
    return (len(placement) - 1) * arguments.size / cell["loop"]["median_us"]


def measure(host_set, arguments):
    """{row: {algorithm: MB/s}}, the median of the repetitions."""
    samples = {}
    for repetition in range(arguments.repeat):
        for row, holes in HOLES.items():
            placement = [host for host in range(HOSTS) if host not in holes]
            for algorithm in arguments.algorithms:
                progress(f"repetition {repetition + 1}, {row}, {algorithm}")
                value = bandwidth(host_set, placement, algorithm, arguments)
                of_row = samples.setdefault(row, {}).setdefault(algorithm, [])
                of_row += [] if value is None else [value]
    progress("")
    return {
        row: {name: statistics.median(values) for name, values in of_row.items() if values}
        for row, of_row in samples.items()
    }


def line(row, values, names, form):
    cells = "".join(f"{form(values[name]) if name in values else '-':>14}" for name in names)
    return f"  {row:<14}{cells}"


def relative(values):
    of = values.get("kshift")
    return {name: value / of for name, value in values.items()} if of else {}


def print_tables(measured, arguments):
    names = arguments.algorithms
    link = megabits(arguments.rate) / 8
    head = "".join(f"{name:>14}" for name in names)
    print(f"# 4-ary 2-tree of {HOSTS} hosts, links of {arguments.rate} ({link:g} MB/s) each way, "
          f"blocks of {arguments.size} bytes")
    print(f"# MB/s at each rank (share of a link)\n# {'ranks':<14}{head}")
    for row, values in measured.items():
        print(line(row, values, names, lambda value: f"{value:.2f} ({100 * value / link:.0f} %)"))
    print(f"\n# relative to kshift\n# {'here':<14}{head}")
    for row, values in measured.items():
        print(line(row, relative(values), names, "{:.2f}".format))
    print(f"# {'the paper':<14}{head}")
    for row, values in PAPER.items():
        print(line(row, relative(values), names, "{:.2f}".format))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/fat_tree.py --algorithms kshift kprefix 'kprefix(8,8)'",
    )
    add = parser.add_argument
    add("--rate", default="50mbit", help="of every link, each way; default: %(default)s")
    add("--size", type=int, default=65536, help="bytes of a block; default: %(default)s")
    add("--algorithms", nargs="+", default=ALGORITHMS, metavar="NAME",
        help=f"with parameters, if wanted: 'kprefix(8,8)'; default: {' '.join(ALGORITHMS)}")
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
            measured = measure(host_set, arguments)
    except (Failed, Unusable) as error:
        sys.exit(f"fat_tree.py: {error}")
    print_tables(measured, arguments)
    if arguments.json:
        document = {"command": " ".join(sys.argv), "rate": arguments.rate, "size": arguments.size,
                    "MBps": measured, "paper_MBps": PAPER}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

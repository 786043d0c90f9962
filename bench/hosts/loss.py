#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long Unisono's collectives take between hosts that lose packets.

The hosts are network namespaces of this machine (as root). Each of them drops a share of the
datagrams that arrive (packet_loss.py says how); the repetitions go through all the shares in turn.
A line is a share, with medians over the repetitions: of their medians, 99th percentiles and largest
times, and of the calling thread's processor time for one call (cpu). All results are
verified.
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

from host_set import Failed, HostSet, in_a_row, run_main, unisono_job, why_not  # noqa: E402
from packet_loss import lose  # noqa: E402

STATISTICS = ["median_us", "p99_us", "max_us", "cpu_us"]


def shares(text):
    """0,0.1,1 in percent."""
    return [float(word.removesuffix("%")) for word in text.split(",")]


def measure(host_set, arguments):
    """{(collective, size, percent): [cell]}"""
    cells = {}
    placement = in_a_row(arguments.hosts, arguments.per_host)
    words = ["bench", *arguments.collectives, "--as-rank", "--format", "json"]
    words += ["--sizes", arguments.sizes, "--seconds", arguments.seconds, "--method", "single"]
    for repetition in range(arguments.repeat):
        for percent in arguments.loss:
            progress(f"repetition {repetition + 1}, loss {percent:g} %")
            lose(host_set, percent / 100)
            job = unisono_job(host_set, placement, words)
            report = read_report(host_set.run(job, arguments.limit))
            for cell in report["results"]:
                key = (cell["collective"], cell["size"], percent)
                cells.setdefault(key, []).append(cell)
    progress("")
    return cells


def rows(cells):
    table = []
    for (collective, size, percent), repetitions in cells.items():
        row = {"collective": collective, "size": size, "loss_percent": percent}
        for name in STATISTICS:
            row[name] = statistics.median(cell["single"][name] for cell in repetitions)
        row["samples"] = sum(cell["single"]["samples"] for cell in repetitions)
        table.append(row)
    return sorted(table, key=lambda row: (row["collective"], row["size"], row["loss_percent"]))


def print_table(table, arguments):
    print(f"# {arguments.hosts} hosts x {arguments.per_host} ranks; times in us, of single calls")
    head = "".join(f"{name.removesuffix('_us'):>12}" for name in STATISTICS)
    print(f"# {'collective':<13}{'size':>8}{'loss %':>8}{head}{'calls':>10}")
    for row in table:
        values = "".join(f"{row[name]:12.2f}" for name in STATISTICS)
        size = row["size"] if row["collective"] != "barrier" else ""
        print(f"  {row['collective']:<13}{size:>8}{row['loss_percent']:>8g}{values}"
              f"{row['samples']:>10}")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/loss.py --hosts 8 --collectives allreduce,broadcast",
    )
    add = parser.add_argument
    add("--hosts", type=int, default=4, help="default: 4")
    add("--per-host", type=int, default=1, help="ranks on each; default: 1")
    add("--loss", type=shares, default=[0, 0.1, 1, 10], help="in %%; default: 0,0.1,1,10")
    add("--collectives", type=lambda text: text.split(","), default=["allreduce"],
        help="default: allreduce")
    add("--sizes", default="8", help="bytes; default: 8")
    add("--repeat", type=int, default=5, help="repetitions; default: 5")
    add("--seconds", type=float, default=1, help="time for one line; default: 1")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--json", type=pathlib.Path, help="write the table to this file too")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.unisono):
        sys.exit(f"loss.py: {reason}")
    try:
        with HostSet(arguments.unisono, arguments.hosts) as host_set:
            table = rows(measure(host_set, arguments))
    except (Failed, Unusable) as error:
        sys.exit(f"loss.py: {error}")
    print_table(table, arguments)
    if arguments.json:
        document = {"command": " ".join(sys.argv), "results": table}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

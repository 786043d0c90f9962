#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs `unisono bench` between hosts in network namespaces of this machine (as root).

The words after -- are the arguments of `unisono bench`; it prints the output of rank 0. UNISONO_*
settings in the environment hold for all ranks. The hosts are removed at the end, even after errors.
"""

import argparse
import pathlib
import sys

from host_set import Failed, HostSet, in_a_row, parse_shape, run_main, unisono_job, why_not
from packet_loss import lose

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/run.py --shape 8x1 -- hot-spot --sizes 64K",
    )
    add = parser.add_argument
    add("--shape", type=parse_shape, default=(4, 1), help="hosts x ranks on each; default: 4x1")
    add("--rate", default="", help="limit every link, each way: 200mbit")
    add("--tree", action="store_true", help="a k-ary 2-tree in place of one switch")
    add("--loss", type=float, default=0, help="of the datagrams that arrive, in %%; default: 0")
    add("--limit", type=float, default=600, help="seconds after which it is given up")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("words", nargs="+", metavar="-- ARGUMENTS", help="of unisono bench")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.unisono):
        sys.exit(f"run.py: {reason}")
    hosts, per_host = arguments.shape
    placement = in_a_row(hosts, per_host)
    try:
        tree = "tree" if arguments.tree else "star"
        with HostSet(arguments.unisono, hosts, arguments.rate, tree) as host_set:
            if arguments.loss > 0:
                lose(host_set, arguments.loss / 100)
            job = unisono_job(host_set, placement, ["bench", "--as-rank", *arguments.words])
            print(host_set.run(job, arguments.limit), end="")
    except Failed as error:
        sys.exit(f"run.py: {error}")


if __name__ == "__main__":
    run_main(main)

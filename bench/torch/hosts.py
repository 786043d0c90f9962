#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of torch.distributed between hosts, with the back ends unisono and gloo, by turns.

    sudo python bench/torch/hosts.py [--shapes 2x1,4x1] [--rate 200mbit] [--json FILE]

Makes hosts in network namespaces of this machine, starts ranks on them, and measures as compare.py
does: both back ends have the same ranks, tensors and calls. A shape is hosts x ranks on each. The
hosts are removed at the end, even after errors. Needs torch and the packages unisono and
unisono-torch.
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bench" / "hosts")]

import torch  # noqa: E402
from compare import measure, print_rows  # noqa: E402
from figures import keep  # noqa: E402
from host_set import Failed, HostSet, in_a_row, parse_shape, run_main, why_not  # noqa: E402

SECONDS = 900


def run(host_set, shape, options):
    """The rows of the table."""
    placement = in_a_row(*shape)
    store, result = (Path(host_set.folder.name) / name for name in ("store", "rows.json"))
    commands = [(host, [sys.executable, __file__, "--rank", rank, "--ranks", len(placement),
                        "--store", store, "--result", result, "--bytes", options.bytes, "--repeat",
                        options.repeat], {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"})
                for rank, host in enumerate(placement)]
    host_set.run(commands, SECONDS)
    return json.loads(result.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=lambda text: [parse_shape(s) for s in text.split(",")],
                        default=[(2, 1), (4, 1)], help="hosts x ranks on each: 2x1,4x1")
    parser.add_argument("--rate", default="", help="limit every link, each way: 200mbit")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--bytes", default="8,65536,16777216")
    parser.add_argument("--unisono", type=Path, default=ROOT / "build/release/bin/unisono",
                        help="the tool that makes hosts; default: build/release/bin/unisono")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    for name in ("--rank", "--ranks"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    for name in ("--store", "--result"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        lengths = [max(1, int(each) // 4) for each in options.bytes.split(",")]
        rows = measure(options.store, options.ranks, options.rank, lengths, options.repeat)
        if options.rank == 0:
            options.result.write_text(json.dumps(rows))
        return
    if reason := why_not(options.unisono):
        sys.exit(f"hosts.py: {reason}")
    for shape in options.shapes:
        name = "x".join(map(str, shape))
        try:
            with HostSet(options.unisono, shape[0], options.rate) as host_set:
                rows = run(host_set, shape, options)
        except Failed as error:
            sys.exit(f"hosts.py: {error}")
        print(f"torch {torch.__version__}, {name}, {options.rate or 'no'} limit of rate, us for a "
              "call")
        print_rows(rows)
        if options.json:
            keep(options.json, f"{name} {options.rate}".strip(),
                 {"torch": torch.__version__, "us": rows})


if __name__ == "__main__":
    run_main(main)

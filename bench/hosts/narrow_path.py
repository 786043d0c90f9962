#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a path that carries less than the interfaces say costs a job.

The hosts are network namespaces of this machine (as root). The switch's port of the last host gets
a smaller MTU, so that full datagrams to it vanish. A line is a number of broadcasts of one full
packet (bench/hosts/narrow_path.cpp), from the first one of the job on: their rate with all ports
alike, with the narrow one, and the share that is left. Medians of repetitions by turns.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from host_set import Failed, HostSet, in_a_row, run_main, unisono_job, why_not

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FULL_MTU = 1500


def numbers(text):
    return [int(word) for word in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/hosts/narrow_path.py --calls 1000,10000",
    )
    add = parser.add_argument
    add("--hosts", type=int, default=4, help="default: 4")
    add("--per-host", type=int, default=1, help="ranks on each; default: 1")
    add("--calls", type=numbers, default=[1000, 10000], help="default: 1000,10000")
    add("--mtu", type=int, default=1300, help="of the narrow port; default: 1300")
    add("--multicast", choices=["auto", "on", "off"], default="auto", help="default: auto")
    add("--repeat", type=int, default=5, help="repetitions; default: 5")
    add("--limit", type=float, default=120, help="seconds after which it is given up")
    add("--build", type=pathlib.Path, default=ROOT / "build/release",
        help="the folder of bin/unisono and bench/narrow_path; default: build/release")
    add("--json", type=pathlib.Path, help="write the figures to this file too")
    return parser.parse_args()


def keeper_of(host_set):
    """The process in whose namespace the switch is, from the record of the hosts."""
    record = pathlib.Path("/run/unisono/hosts", host_set.name).read_text()
    return record.splitlines()[0].removeprefix("keeper ")


def set_port(host_set, mtu):
    """Of the last host, at the switch: in the namespace of the process that keeps the hosts."""
    port = host_set.names()[-1]
    command = ["nsenter", "-t", keeper_of(host_set), "-n", "ip", "link", "set", port]
    done = subprocess.run([*command, "mtu", str(mtu)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"ip link set {port} mtu {mtu}: {done.stderr.strip()}")


def measure(host_set, calls, arguments):
    program = arguments.build.resolve() / "bench/narrow_path"
    placement = in_a_row(host_set.count, arguments.per_host)
    settings = {"UNISONO_MULTICAST": arguments.multicast, "UNISONO_LOG": "error"}
    job = unisono_job(host_set, placement, ["--calls", calls], settings, program)
    return calls / float(host_set.run(job, arguments.limit))


def rows(host_set, arguments):
    for calls in arguments.calls:
        rates = {FULL_MTU: [], arguments.mtu: []}
        for _ in range(arguments.repeat):
            for mtu, samples in rates.items():
                set_port(host_set, mtu)
                samples.append(measure(host_set, calls, arguments))
        full, narrow = (statistics.median(samples) for samples in rates.values())
        yield {"calls": calls, "full_per_s": full, "narrow_per_s": narrow, "share": narrow / full}


def main():
    arguments = parse_arguments()
    if reason := why_not(arguments.build / "bin/unisono"):
        sys.exit(f"narrow_path.py: {reason}")
    print(f"{'calls':>8} {'full':>9} {'narrow':>9}   per second {'share':>6}")
    table = []
    try:
        with HostSet(arguments.build / "bin/unisono", arguments.hosts) as host_set:
            for row in rows(host_set, arguments):
                table.append(row)
                print("{calls:>8} {full_per_s:>9.0f} {narrow_per_s:>9.0f} {share:>19.2f}".format(
                    **row), flush=True)
    except Failed as error:
        sys.exit(f"narrow_path.py: {error}")
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    run_main(main)

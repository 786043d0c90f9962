#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two builds of Unisono by turns: does a change make anything slower?

    bench/hosts/versions.py --old ../before/build/release --new build/release

Each cell is one collective and size of `unisono bench`: ranks of this machine (1x2), ranks on hosts
in network namespaces (4x1, as root), and the same through the NIC path, each build with its own
unisonod (4x1nic). Both run in turn, and the order changes with each repetition. For each cell it
prints the medians of the repetitions and the median of the pairs' ratios new / old: above 1 the new
build is slower. The last line of each shape has the geometric mean and the worst cell.
"""

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

from peer_report import Unusable, geometric_mean, progress, read_report  # noqa: E402

from host_set import (  # noqa: E402
    Failed,
    HostSet,
    in_a_row,
    parse_shape,
    run_main,
    unisono_job,
    why_not,
)

COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather"]
DAEMON_SERVES = " serves "


class Shape:
    def __init__(self, text):
        self.text = text
        self.nic = text.endswith("nic")
        self.hosts, self.per_host = parse_shape(text.removesuffix("nic"))
        self.ranks = self.hosts * self.per_host


class Build:
    def __init__(self, name, folder):
        self.name = name
        self.unisono = (folder / "bin" / "unisono").resolve()
        self.daemon = (folder / "bin" / "unisonod").resolve()

    def local(self, shape, words, limit):
        command = [self.unisono, "bench", *words, "-n", str(shape.ranks)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        if done.returncode != 0:
            raise Failed(f"{self.unisono}: exit status {done.returncode}: {done.stderr}")
        return done.stdout

    def between_hosts(self, host_set, shape, words, limit):
        with self.daemons(host_set, shape):
            settings = {"UNISONO_NIC": "on" if shape.nic else "off"}
            placement = in_a_row(shape.hosts, shape.per_host)
            words = ["bench", *words, "--as-rank"]
            job = unisono_job(host_set, placement, words, settings, self.unisono)
            job = [(host, command,
                    {**environment, "UNISONO_NIC_SOCKET": self.socket(host_set, host)})
                   for host, command, environment in job]
            return host_set.run(job, limit)

    @staticmethod
    def socket(host_set, host):
        return str(pathlib.Path(host_set.folder.name, f"nic{host}.sock"))

    @contextlib.contextmanager
    def daemons(self, host_set, shape):
        started = []
        try:
            for host in range(shape.hosts if shape.nic else 0):
                words = [self.daemon, "--interface", "eth0", "--socket"]
                started.append(host_set.start(host, [*words, self.socket(host_set, host)]))
            for daemon in started:
                said = daemon.stderr.readline()
                if DAEMON_SERVES not in said:
                    raise Failed(said.strip() or "unisonod did not start")
            yield
        finally:
            for daemon in started:
                daemon.terminate()
            for daemon in started:
                daemon.communicate()


def cells(report, method):
    return {(cell["collective"], cell["size"]): cell[method]["median_us"]
            for cell in report["results"]}


def measure(shape, builds, arguments):
    """{cell: [(old, new), ...]}, one pair for each repetition."""
    words = [*arguments.collectives, "--format", "json", "--method", arguments.method]
    words += ["--sizes", arguments.sizes, "--seconds", str(arguments.seconds)]
    pairs = {}
    with contextlib.ExitStack() as stack:
        host_set = None
        if shape.hosts > 1:
            host_set = stack.enter_context(HostSet(builds[1].unisono, shape.hosts))
        for repetition in range(arguments.repeat):
            found = {}
            for build in builds if repetition % 2 == 0 else reversed(builds):
                progress(f"{shape.text}, repetition {repetition + 1}, {build.name}")
                said = (build.local(shape, words, arguments.limit) if host_set is None else
                        build.between_hosts(host_set, shape, words, arguments.limit))
                found[build.name] = cells(read_report(said), arguments.method)
            for cell, old in found["old"].items():
                pairs.setdefault(cell, []).append((old, found["new"][cell]))
    progress("")
    return pairs


def print_table(shape, pairs):
    print(f"\n# {shape.text}; medians in us")
    print(f"# {'collective':<13}{'size':>8}{'old':>10}{'new':>10}{'new/old':>9}")
    ratios = {}
    for cell, both in pairs.items():
        old, new = (statistics.median(side) for side in zip(*both))
        ratios[cell] = statistics.median(after / before for before, after in both)
        collective, size = cell
        size = size if collective != "barrier" else ""
        print(f"  {collective:<13}{size:>8} {old:9.2f} {new:9.2f} {ratios[cell]:8.3f}")
    worst = max(ratios, key=ratios.get)
    mean = geometric_mean(list(ratios.values()))
    print(f"# geometric mean {mean:.3f}, worst {ratios[worst]:.3f} ({worst[0]} {worst[1]})")
    sys.stdout.flush()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--old", type=pathlib.Path, required=True, help="build folder of the state before")
    add("--new", type=pathlib.Path, required=True, help="build folder of the state after")
    add("--shapes", default="1x2,1x4,1x8,4x1,4x1nic", help="default: %(default)s")
    add("--collectives", type=lambda text: text.split(","), default=COLLECTIVES,
        help=f"default: {','.join(COLLECTIVES)}")
    add("--sizes", default="8,1024,65536", help="bytes; default: %(default)s")
    add("--method", choices=["loop", "single"], default="loop", help="default: %(default)s")
    add("--repeat", type=int, default=5, help="pairs; default: %(default)s")
    add("--seconds", type=float, default=0.1, help="time for one line; default: %(default)s")
    add("--limit", type=float, default=120, help="seconds after which a run is given up")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    try:
        arguments.shapes = [Shape(text) for text in arguments.shapes.split(",")]
    except argparse.ArgumentTypeError as error:
        parser.error(f"--shapes: {error}")
    return arguments


def main():
    arguments = parse_arguments()
    builds = [Build("old", arguments.old), Build("new", arguments.new)]
    for build in builds:
        if any(s.hosts > 1 for s in arguments.shapes) and (reason := why_not(build.unisono)):
            sys.exit(f"versions.py: {reason}")
    try:
        for shape in arguments.shapes:
            print_table(shape, measure(shape, builds, arguments))
    except (Failed, Unusable, subprocess.TimeoutExpired) as error:
        sys.exit(f"versions.py: {error}")


if __name__ == "__main__":
    run_main(main)

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what compare.py measured, on one host or between hosts: latency against size, a panel for
each collective.

Example:
  bench/peers/compare.py --shapes 2 --sizes 8,64,512,4096,32768,262144
  build/venv/bin/python bench/peers/picture.py build/bench/peers.json latency.svg
"""
import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend has to be chosen first)

LIBRARIES = [("unisono", "Unisono", "#c02020", "o"), ("openmpi", "Open MPI", "#2050a0", "s"),
             ("mpich", "MPICH", "#208040", "^"),
             ("openmpi41", "Open MPI 4.1", "#2050a0", "s"),
             ("openmpi50", "Open MPI 5.0", "#60a0e0", "D"),
             ("mpich40", "MPICH 4.0", "#208040", "^"), ("mpich50", "MPICH 5.0", "#80c060", "v"),
             ("openmpi50xhc", "Open MPI 5.0, xhc", "#6040c0", "d"),
             ("openmpi50acoll", "Open MPI 5.0, acoll", "#a040c0", "p"),
             ("intel", "Intel MPI", "#c08020", "*"), ("gloo", "Gloo", "#808080", "x")]


def draw(axes, results, collective):
    rows = sorted((row for row in results if row["collective"] == collective),
                  key=lambda row: row["size"])
    for key, name, color, marker in LIBRARIES:
        points = [(row["size"], row["median_us"][key]) for row in rows if key in row["median_us"]]
        if points:
            axes.plot(*zip(*points), color=color, marker=marker, markersize=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(collective)
    axes.set_xlabel("bytes")
    axes.grid(True, which="major", alpha=0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="peers.json")
    parser.add_argument("picture", type=pathlib.Path, help="the SVG to write")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--hosts", type=int, help="of those with so many ranks; default: any")
    parser.add_argument("--method", default="single", choices=["single", "loop"])
    arguments = parser.parse_args()
    data = json.loads(arguments.data.read_text())
    results = [row for row in data["results"] if row["ranks"] == arguments.ranks
               and row["method"] == arguments.method and row["size"] > 0
               and arguments.hosts in (None, row.get("hosts", 1))]
    collectives = list(dict.fromkeys(row["collective"] for row in results))
    if not collectives:
        parser.error(f"{arguments.data} has no sizes for {arguments.ranks} ranks")
    plt.rcParams["svg.hashsalt"] = "unisono"  # the same data gives the same file
    figure, panels = plt.subplots(1, len(collectives), figsize=(3 * len(collectives), 3.2),
                                  sharey=True, squeeze=False)
    for axes, collective in zip(panels[0], collectives):
        draw(axes, results, collective)
    panels[0][0].set_ylabel("median latency, us")
    panels[0][0].legend()
    machine = data["machine"]
    hosts = results[0].get("hosts", 1)
    where = f"{hosts} hosts in namespaces of one machine" if hosts > 1 else "one machine"
    figure.suptitle(f"{arguments.ranks} ranks, {where}: {machine['processor']}, "
                    f"{machine['cores']} cores, {machine['kernel']}, {machine['compiler']}",
                    fontsize=9)
    figure.tight_layout()
    arguments.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()

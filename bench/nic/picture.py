#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what bench/nic/compare.py measured: which share of the calls takes longer than a time, a
panel for each collective and number of hosts. Where a curve ends below, there are no more calls.

Example:
  bench/nic/compare.py --quiet 60
  build/venv/bin/python bench/nic/picture.py build/bench/nic.json docs/pictures/nic-path.svg
"""
import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend has to be chosen first)

LOOKS = [("nic", "Unisono, NIC path", "#c02020", "-"),
         ("udp", "Unisono, UDP multicast", "#e08040", "-"),
         ("tcp", "TCP tree", "#404040", "--"),
         ("openmpi41", "Open MPI 4.1", "#2050a0", "-"),
         ("openmpi50", "Open MPI 5.0", "#60a0e0", "-"),
         ("mpich40", "MPICH 4.0", "#208040", "-"), ("mpich50", "MPICH 5.0", "#80c060", "-"),
         ("gloo", "Gloo", "#808080", ":")]


def draw(axes, results, collective, hosts):
    for name, label, color, style in LOOKS:
        for row in results:
            if (row["name"], row["collective"], row["hosts"]) == (name, collective, hosts):
                shares, times = zip(*row["quantiles_us"])
                axes.plot(times, shares, style, color=color, linewidth=1.2, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"{collective}, {hosts} hosts")
    axes.grid(True, which="major", alpha=0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="nic.json")
    parser.add_argument("picture", type=pathlib.Path, help="the SVG to write")
    arguments = parser.parse_args()
    data = json.loads(arguments.data.read_text())
    results = data["results"]
    collectives = list(dict.fromkeys(row["collective"] for row in results))
    hosts = sorted({row["hosts"] for row in results})
    if not results:
        parser.error(f"{arguments.data} has no results")
    plt.rcParams["svg.hashsalt"] = "unisono"  # the same data gives the same file
    size = (3.4 * len(hosts), 3 * len(collectives) + 0.6)
    figure, panels = plt.subplots(len(collectives), len(hosts), figsize=size, sharey=True,
                                  sharex=True, squeeze=False)
    for row, collective in zip(panels, collectives):
        for axes, count in zip(row, hosts):
            draw(axes, results, collective, count)
        row[0].set_ylabel("share of calls that takes longer")
    for axes in panels[-1]:
        axes.set_xlabel("us")
    panels[0][0].legend(fontsize=7)
    hogs = ", a hog on each core" if data["hogs"] else ""
    per_host = results[0].get("per_host", 1)
    ranks = "one rank" if per_host == 1 else f"{per_host} ranks"
    times = "Last in to last out" if data.get("apart_us") else "Whole calls"
    figure.suptitle(f"{times}, 8 bytes, {ranks} a host{hogs}", fontsize=10)
    figure.tight_layout()
    arguments.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()

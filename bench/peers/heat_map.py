#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws how many times faster Unisono is than the best other library: a heat map of collectives and
sizes for each shape that compare.py measured. Writes SVG; standard library only.

Example:
  bench/peers/heat_map.py build/bench/peers.json docs/pictures/peers.svg
"""

import argparse
import json
import math
import pathlib
from xml.sax.saxutils import escape

CELL_WIDTH, CELL_HEIGHT, GAP = 38, 22, 16
NAMES, TITLE, FOOT, SIZES = 108, 24, 40, 20
FULL = 8.0  # so many times faster or slower has the full colour
AHEAD, BEHIND, EVEN, NONE = (33, 113, 181), (203, 24, 29), (247, 247, 247), (225, 225, 225)


def colour(ratio):
    """Blue where Unisono is ahead, red where it is behind, white where they are equal."""
    if ratio is None:
        return "rgb(%d,%d,%d)" % NONE
    share = min(1.0, abs(math.log(ratio)) / math.log(FULL))
    end = AHEAD if ratio >= 1 else BEHIND
    return "rgb(%d,%d,%d)" % tuple(round(a + share * (b - a)) for a, b in zip(EVEN, end))


def ink(ratio):
    return "white" if ratio and abs(math.log(ratio)) > 0.75 * math.log(FULL) else "black"


def size_text(size):
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def ratio_text(ratio):
    if ratio is None:
        return "-"
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 0.995 else f"{ratio:.2f}"


def title_of(hosts, ranks):
    if hosts == 1:
        return f"{ranks} ranks, one machine"
    per_host = f", {ranks // hosts} ranks each" if ranks > hosts else ""
    return f"{hosts} hosts{per_host}"


def text(x, y, words, size=11, anchor="middle", fill="black"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}">{escape(words)}</text>')


def draw_panel(parts, left, cells, collectives, sizes):
    """`cells`: {(collective, size): ratio}. A barrier has no size: its one cell is the first."""
    for column, size in enumerate(sizes):
        x = left + column * CELL_WIDTH + CELL_WIDTH / 2
        parts.append(text(x, TITLE + SIZES - 6, size_text(size), 10))
    for row, collective in enumerate(collectives):
        y = TITLE + SIZES + row * CELL_HEIGHT
        for column, size in enumerate(sizes if collective != "barrier" else [0]):
            if (collective, size) not in cells:
                continue
            x, ratio = left + column * CELL_WIDTH, cells[(collective, size)]
            parts.append(f'<rect x="{x:g}" y="{y:g}" width="{CELL_WIDTH - 1}" '
                         f'height="{CELL_HEIGHT - 1}" fill="{colour(ratio)}"/>')
            parts.append(text(x + (CELL_WIDTH - 1) / 2, y + 15, ratio_text(ratio),
                              fill=ink(ratio)))


def draw(document, method="single"):
    """The SVG, or an empty text if there is no ratio to draw."""
    rows = [row for row in document["results"] if row["method"] == method]
    if not any(row.get("ratio") for row in rows):
        return ""
    shapes = list(dict.fromkeys((row.get("hosts", 1), row["ranks"]) for row in rows))
    collectives = list(dict.fromkeys(row["collective"] for row in rows))
    panels, left = [], NAMES
    parts = [text(NAMES - 8, TITLE + SIZES + i * CELL_HEIGHT + 15, name, 11, "end")
             for i, name in enumerate(collectives)]
    for shape in shapes:
        cells = {(row["collective"], row["size"]): row.get("ratio") for row in rows
                 if (row.get("hosts", 1), row["ranks"]) == shape}
        sizes = sorted({size for _, size in cells if size > 0}) or [0]
        draw_panel(panels, left, cells, collectives, sizes)
        width = len(sizes) * CELL_WIDTH
        parts.append(text(left + width / 2, 14, title_of(*shape), 12))
        left += width + GAP
    bottom = TITLE + SIZES + len(collectives) * CELL_HEIGHT
    names = [name for name in document["versions"] if name != "unisono"]
    machine = document.get("machine") or {}
    parts += panels
    parts.append(text(8, bottom + 16, f"times faster than the best of {', '.join(names)}; columns: "
                      "bytes; blue: faster, red: slower", 10, "start"))
    parts.append(text(8, bottom + 31, f"{machine.get('processor', '')}, {machine.get('cores', '')} "
                      f"cores, {machine.get('kernel', '')}; "
                      + ("each call after a barrier" if method == "single" else "calls in a row"),
                      10, "start"))
    width, height = max(left - GAP + 8, 560), bottom + FOOT
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def write(document, path, method="single"):
    """Whether there was something to draw."""
    picture = draw(document, method)
    if picture:
        path.write_text(picture)
    return bool(picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="peers.json")
    parser.add_argument("picture", type=pathlib.Path, help="the SVG to write")
    parser.add_argument("--method", default="single", choices=["single", "loop"])
    arguments = parser.parse_args()
    if not write(json.loads(arguments.data.read_text()), arguments.picture, arguments.method):
        parser.error(f"{arguments.data} has no ratios")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Regrets of today's choices on the candidates that choice.py has measured.

A change of the model changes choices, but not what candidates take. So this needs no quiet machine:
it asks `unisono explain` for the choices by rule, by price and of the library, and looks up their
times in a JSON file of choice.py. If a choice was not measured, the measured parameters of its
algorithm that are nearest by price stand for it; the output counts such cells.
"""

import argparse
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from choice import CHOICES, ROOT, Shape, explain, print_summary, summary  # noqa: E402


def shape_text(cell):
    """Older files have numbers of ranks only."""
    return cell.get("shape", str(cell["ranks"]))


def stand_in(name, measured, predicted):
    """The measured candidate that is nearest to one that was not measured."""
    row = name.partition("(")[0]
    of_row = [each for each in measured if each.partition("(")[0] == row and each in predicted]
    near = of_row or [each for each in measured if each in predicted]
    return min(near, key=lambda each: abs(math.log(predicted[each] / predicted[name])))


def regrets_of(arguments, cell):
    explanation = explain(arguments, cell["collective"], Shape(shape_text(cell)), cell["size"],
                          arguments.machine)
    measured = {name: each["measured_us"] for name, each in cell["candidates"].items()}
    predicted = {each["algorithm"]: each["ns"] for each in explanation["priced"]}
    names = {"rule": explanation["by_rule"], "price": explanation["by_price"],
             "library": explanation["algorithm"]}
    best = min(measured.values())
    regret, missing = {}, 0
    for by, name in names.items():
        if name not in measured:
            missing += by == "library"
            name = stand_in(name, measured, predicted)
        regret[by] = measured[name] / best
    return {**cell, "regret": regret, "chosen": names}, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="JSON file of choice.py")
    parser.add_argument("--machine", type=pathlib.Path, help="machine file for the prices")
    parser.add_argument("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono")
    parser.add_argument("--cells", action="store_true", help="print every cell")
    arguments = parser.parse_args()
    cells, missing = [], 0
    for cell in json.loads(arguments.data.read_text())["cells"]:
        cell, more = regrets_of(arguments, cell)
        cells.append(cell)
        missing += more
        if arguments.cells:
            print(f"  {cell['collective']:<15}{shape_text(cell):>6}{cell['size']:>9}"
                  + "".join(f"{cell['regret'][by]:>7.2f}  {cell['chosen'][by]:<26}"
                            for by in CHOICES))
    print(f"  {'collective':<15}" + "".join(f"{by:>9}{'worst':>7}" for by in CHOICES))
    for collective in dict.fromkeys(cell["collective"] for cell in cells):
        figures = summary([cell for cell in cells if cell["collective"] == collective])
        print(f"  {collective:<15}" + "".join(f"{figures[by]['geometric_mean']:>9.3f}"
                                              f"{figures[by]['worst']:>7.2f}" for by in CHOICES))
    print_summary(summary(cells))
    print(f"# {missing} of {len(cells)} choices of the library stand for others of their algorithm")


if __name__ == "__main__":
    main()

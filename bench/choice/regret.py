#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Regrets of today's choices on the candidates that choice.py has measured.

A change of the model changes choices, but not what candidates take. So this needs no quiet machine:
it asks `unisono explain` for the choices by rule, by price and of the library, and looks up their
times in JSON files of choice.py. If a choice was not measured, the measured parameters of its
algorithm that are nearest by price stand for it; the output counts such cells.
"""

import argparse
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from choice import (CHOICES, ROOT, Shape, choices_of, explain, one_of_equals,  # noqa: E402
                    print_summaries, summary, write_report)
from figures import regret_of, regret_over_luckiest  # noqa: E402


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
    shape = Shape(shape_text(cell))
    explanation = explain(arguments, cell["collective"], shape, cell["size"], arguments.machine)
    # Older files have one figure of each candidate.
    measured = {name: dict(enumerate(each.get("all_us", [each["measured_us"]])))
                for name, each in cell["candidates"].items()}
    predicted = {each["algorithm"]: each["ns"] for each in explanation["priced"]}
    names = choices_of(explanation, shape)
    # Of equal schedules, another one may have been measured.
    stands_for = one_of_equals(explanation, measured)
    names = {by: stands_for.get(name, name) for by, name in names.items()}
    missing = names["library"] not in measured
    ran = {by: name if name in measured else stand_in(name, measured, predicted)
           for by, name in names.items()}
    return {**cell, "chosen": names,
            "regret": {by: regret_of(measured, name) for by, name in ran.items()},
            "over_luckiest": {by: regret_over_luckiest(measured, name)
                              for by, name in ran.items()}}, missing


def judged_again(arguments, cells):
    """The cells with today's choices, and how many of them were not measured. With the NIC path,
    only a job knows the choice: these cells stay as they are."""
    judged, missing = [], 0
    for cell in cells:
        more = 0
        if "+" not in shape_text(cell):
            cell, more = regrets_of(arguments, cell)
        judged.append({"method": "loop", **cell})  # older files have calls in a row
        missing += more
    return judged, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, nargs="+", help="JSON files of choice.py")
    parser.add_argument("--machine", type=pathlib.Path, help="machine file for the prices")
    parser.add_argument("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono")
    parser.add_argument("--cells", action="store_true", help="print every cell")
    parser.add_argument("--json", type=pathlib.Path, help="write the judged cells to this file")
    arguments = parser.parse_args()
    reports = [json.loads(path.read_text()) for path in arguments.data]
    cells, missing = judged_again(arguments, [cell for each in reports for cell in each["cells"]])
    if arguments.cells:
        for cell in cells:
            print(f"  {cell['collective']:<15}{shape_text(cell):>8}{cell['size']:>9} "
                  f"{cell['method']:<6}"
                  + "".join(f"{cell['regret'][by]:>7.2f}  {cell['chosen'][by]:<26}"
                            for by in CHOICES))
    print(f"  {'collective':<15}" + "".join(f"{by:>9}{'worst':>7}" for by in CHOICES))
    for collective in dict.fromkeys(cell["collective"] for cell in cells):
        figures = summary([cell for cell in cells if cell["collective"] == collective])
        print(f"  {collective:<15}" + "".join(f"{figures[by]['geometric_mean']:>9.3f}"
                                              f"{figures[by]['worst']:>7.2f}" for by in CHOICES))
    print_summaries(cells)
    print(f"# {missing} of {len(cells)} choices of the library stand for others of their algorithm")
    if arguments.json:
        commands = [*(each["command"] for each in reports), " ".join(["regret.py", *sys.argv[1:]])]
        write_report(arguments.json, commands, reports[0]["machine"], cells)


if __name__ == "__main__":
    main()

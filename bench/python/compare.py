#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a call from Python costs more than the same call from C.

    bench/python/compare.py --build build/release --python build/venv-python/bin/python
                            [--json FILE]

Runs bench/python/call.c and call.py by turns as a job of one rank, where a collective
communicates with nobody, and compares the processor time of each pair. Also times
`import unisono`, with NumPy not yet imported. Prints medians over the pairs. NumPy gets no threads
of OpenBLAS: they spin for some time after their start, which would count as time of the calls.
Standard library only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
IMPORT = ("import time; begin = time.process_time_ns(); import unisono; "
          "print(time.process_time_ns() - begin)")


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, text=True,
                          stdout=subprocess.PIPE,
                          env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True, help="has the package unisono")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    build = options.build.resolve()
    differences, plan_differences, from_c = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "call"
        output("cc", "-O2", f"-I{TOP / 'include'}", HERE / "call.c", "-o", program,
               f"-L{build / 'lib'}", f"-Wl,-rpath,{build / 'lib'}", "-lunisono")
        run = (build / "bin" / "unisono", "run", "-n", 1)
        for _ in range(options.pairs):
            c_call, c_plan = map(float, output(*run, program, options.calls).split())
            call, plan = map(float, output(*run, options.python, HERE / "call.py",
                                           options.calls).split())
            from_c.append(c_call)
            differences.append(call - c_call)
            plan_differences.append(plan - c_plan)
    imports = [int(output(options.python, "-c", IMPORT)) / 1e6 for _ in range(options.pairs)]
    figures = {"allreduce from C, ns": statistics.median(from_c),
               "allreduce of a NumPy array, ns more than C": statistics.median(differences),
               "plan, ns more than C": statistics.median(plan_differences),
               "import, ms": statistics.median(imports)}
    for name, figure in figures.items():
        print(f"{name:44}{figure:8.0f}")
    if options.json:
        of_run = {"pairs": options.pairs, "calls": options.calls}
        options.json.write_text(json.dumps(of_run | figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

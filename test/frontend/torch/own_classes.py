#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own class of tests for back ends passes with unisono where it passes with Gloo.

usage: own_classes.py --environment DIRECTORY [--ranks N] [METHOD ...]

The class is in torch's wheel (torch.testing._internal.distributed.distributed_test). Each method
that passes with Gloo on this machine has to pass with unisono, but for EXCEPTIONS. PyTorch
skips methods that need GPUs or the back ends of MPI and NCCL. Ends with 77 (skipped) and the reason
without the environment of scripts/python_environment.py --torch. Standard library only.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
EXCEPTIONS = {
    "test_ddp_logging_data_cpu": "DDP logs the back ends that are not in torch as 'custom'",
}


def run(python, backend, ranks, methods, folder):
    """Method -> outcome; and the traces of those that failed."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UNISONO_", "OMPI_", "PMI", "SLURM_", "PYTHONPATH"))}
    results = folder / backend
    done = subprocess.run([str(word) for word in (python, HERE / "own_classes_run.py", backend,
                                                  ranks, results, *methods)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=environment | {"TMPDIR": str(folder)})
    lines = results.read_text().splitlines() if results.exists() else []
    outcomes = dict(line.split()[:2] for line in lines)
    counts = collections.Counter(outcomes.values())
    print(f"{backend}, {ranks} ranks: " + ", ".join(f"{count} {outcome}" for outcome, count
                                                    in sorted(counts.items())), flush=True)
    if done.returncode != 0 or not counts["passed"]:
        sys.exit(f"{backend}: exit status {done.returncode}\n{done.stdout[-8000:]}")
    return outcomes, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=4, help="some methods need four")
    parser.add_argument("methods", nargs="*", help="such as test_all_gather; without any: all")
    options = parser.parse_args()
    if not (options.environment / "wheel.stamp").is_file():
        print(f"skipped: {options.environment} is not complete; scripts/python_environment.py "
              "--torch makes it, and needs a package index (pip)")
        return SKIPPED
    python = options.environment / "bin" / "python"
    with tempfile.TemporaryDirectory() as name:
        theirs, _ = run(python, "gloo", options.ranks, options.methods, pathlib.Path(name))
        ours, said = run(python, "unisono", options.ranks, options.methods, pathlib.Path(name))
    passed = {method for method, outcome in theirs.items() if outcome == "passed"}
    missed = {method for method in passed if ours.get(method) != "passed"}
    for method in sorted(missed & EXCEPTIONS.keys()):
        print(f"exception: {method}: {EXCEPTIONS[method]}")
    failed = sorted(missed - EXCEPTIONS.keys())
    # A reason that holds no longer has to go.
    stale = sorted(passed & EXCEPTIONS.keys() - missed)
    if failed:
        print("\n".join(["pass with gloo, and not with unisono:", *failed, said[-20_000:]]))
    if stale:
        print("\n".join(["pass, and are exceptions:", *stale]))
    return 1 if failed or stale else 0


if __name__ == "__main__":
    sys.exit(main())

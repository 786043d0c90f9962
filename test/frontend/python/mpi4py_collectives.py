#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of collectives pass with unisono.mpi, after one changed line: the import.

usage: mpi4py_collectives.py --environment DIRECTORY --cache DIRECTORY --ranks N ... -- MODULE ...

Fetches mpi4py's source package, once for each cache; nothing of it is built. Every method of the
modules has to pass at every rank, unless mpi4py itself skips it. Ends with 77 (skipped) and the
reason without the environment of scripts/python_environment.py, or without a package index.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from mpi4py_test import VERSION  # noqa: E402

SKIPPED = 77
MOST_SECONDS = 600  # of one run; a hang ends there
# How a program imports it, and how the tests' helpers do.
IMPORTS = {"from mpi4py import MPI\n": "from unisono import mpi as MPI\n",
           'import_module("mpi4py.MPI")': 'import_module("unisono.mpi")'}


def fetch(python, cache):
    """The folder of the tests with our import; None without an index."""
    tests = cache / "tests"
    stamp = cache / "fetched"
    if stamp.exists() and stamp.read_text() == VERSION:
        return tests
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    source = f"mpi4py=={VERSION}"
    fetched = subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps",
                              "--no-binary", "mpi4py", "--dest", cache, source],
                             capture_output=True, text=True)
    if fetched.returncode != 0:
        print(f"skipped: pip cannot fetch {source}: {fetched.stderr.strip().splitlines()[-1]}")
        return None
    with tarfile.open(cache / f"mpi4py-{VERSION}.tar.gz") as packed:
        packed.extractall(cache)
    shutil.copytree(cache / f"mpi4py-{VERSION}" / "test", tests)
    for path in tests.glob("*.py"):
        text = path.read_text()
        for theirs, ours in IMPORTS.items():
            text = text.replace(theirs, ours)
        path.write_text(text)
    stamp.write_text(VERSION)
    return tests


def run(python, tests, ranks, module):
    """Method -> the set of its outcomes; and what the ranks said."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UNISONO_", "PYTHONPATH"))}
    with tempfile.TemporaryDirectory() as results:
        command = ["timeout", str(MOST_SECONDS), python, "-m", "unisono", "run", "-n", str(ranks),
                   python, HERE.parent / "mpi4py_rank.py", tests, results, module]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env={**environment, "MPI_MODULE": "unisono.mpi"})
        outcomes = {}
        for rank in range(ranks):
            path = pathlib.Path(results) / str(rank)
            for line in path.read_text().splitlines() if path.exists() else []:
                name, outcome = line.split()
                outcomes.setdefault(name, []).append(outcome)
    return outcomes, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--environment", required=True, type=pathlib.Path)
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where mpi4py is kept")
    parser.add_argument("--ranks", type=int, nargs="+", default=[3])
    parser.add_argument("modules", nargs="+", help="such as test_cco_buf")
    options = parser.parse_args()
    python = options.environment / "bin" / "python"
    if not (options.environment / "wheel.stamp").is_file():
        print(f"skipped: {options.environment} is not complete; scripts/python_environment.py "
              "makes it, and needs a package index (pip)")
        return SKIPPED
    tests = fetch(python, options.cache / "mpi4py-tests")
    if tests is None:
        return SKIPPED
    failed = False
    for ranks in options.ranks:
        for module in options.modules:
            outcomes, said = run(python, tests, ranks, module)
            passed = [name for name, each in outcomes.items() if each == ["passed"] * ranks]
            skipped = [name for name, each in outcomes.items() if each == ["skipped"] * ranks]
            others = sorted(outcomes.keys() - set(passed) - set(skipped))
            print(f"{module}, {ranks} ranks: {len(passed)} methods pass, mpi4py skips "
                  f"{len(skipped)}, {len(others)} fail")
            if others or not passed:
                print("\n".join(["these do not pass:", *others, said]))
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

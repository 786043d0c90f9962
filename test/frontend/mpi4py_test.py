#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of collectives: methods that pass with the bare MPI pass with the drop-in.

usage: mpi4py_test.py --bin DIRECTORY --cache DIRECTORY [--ranks N ...] {openmpi,mpich} MODULE ...

Builds mpi4py from its source package with the MPI's compiler, once for each cache. Ends with 77 if
the MPI is not installed, or if no package index is reached.
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
VERSION = "4.1.1"
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1"}
SKIPPED = 77
MOST_SECONDS = 400  # of one run; a hang ends there


def build(cache, mpi):
    """The interpreter that imports mpi4py, and the folder of its tests; None without an index."""
    python = cache / "venv" / "bin" / "python"
    tests = cache / f"mpi4py-{VERSION}" / "test"
    stamp = cache / "built"
    if stamp.exists() and stamp.read_text() == VERSION:
        return python, tests
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", cache / "venv"], check=True)
    source = f"mpi4py=={VERSION}"
    fetch = subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
                            "mpi4py", "--dest", cache, source], capture_output=True, text=True)
    if fetch.returncode != 0:
        print(f"skipped: pip cannot fetch {source}: {fetch.stderr.strip().splitlines()[-1]}")
        return None
    archive = cache / f"mpi4py-{VERSION}.tar.gz"
    with tarfile.open(archive) as packed:
        packed.extractall(cache)
    # Without optimization it compiles in a tenth of the time.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", archive],
                   env={**os.environ, "MPICC": shutil.which(f"mpicc.{mpi}"), "CFLAGS": "-O0"},
                   check=True)
    stamp.write_text(VERSION)
    return python, tests


def run(launcher, ranks, words, more):
    """Method -> whether it passed at all ranks; and what the ranks said."""
    with tempfile.TemporaryDirectory() as results:
        command = ["timeout", str(MOST_SECONDS), *launcher, "-n", str(ranks), words[0],
                   HERE / "mpi4py_rank.py", words[1], results, *words[2:]]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env={**os.environ, **ROOT_MAY, **more})
        outcomes = {}
        for rank in range(ranks):
            path = pathlib.Path(results) / str(rank)
            for line in path.read_text().splitlines() if path.exists() else []:
                name, outcome = line.split()
                outcomes.setdefault(name, []).append(outcome)
    passed = {name for name, all in outcomes.items() if all == ["passed"] * ranks}
    return passed, f"exit status {done.returncode}\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where the tool is")
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where mpi4py is kept")
    parser.add_argument("--ranks", type=int, nargs="+", default=[3])
    parser.add_argument("mpi", choices=["openmpi", "mpich"])
    parser.add_argument("modules", nargs="+", help="such as test_cco_buf")
    options = parser.parse_args()
    launcher = shutil.which(f"mpirun.{options.mpi}")
    if launcher is None or shutil.which(f"mpicc.{options.mpi}") is None:
        print(f"skipped: {options.mpi} is not installed")
        return SKIPPED
    built = build(options.cache / f"mpi4py-{options.mpi}", options.mpi)
    if built is None:
        return SKIPPED
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        # Not a link: MPICH's mpirun looks for its parts beside the name that it is called by.
        command = pathlib.Path(folder) / "mpirun"
        command.write_text(f'#!/bin/sh\nexec {launcher} "$@"\n')
        command.chmod(0o755)
        path = {"PATH": f"{folder}:{os.environ['PATH']}"}
        for ranks in options.ranks:
            for module in options.modules:
                words = [*built, module]
                bare, said = run([launcher], ranks, words, {})
                if not bare:
                    print(f"{module}, {ranks} ranks: nothing passes with the bare MPI: {said}")
                    failed = True
                ours, said = run([options.bin / "unisono", "mpirun"], ranks, words, path)
                missing = sorted(bare - ours)
                print(f"{module}, {ranks} ranks: {len(bare & ours)} of {len(bare)} methods pass")
                if missing:
                    print("\n".join(["these do not:", *missing, said]))
                    failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

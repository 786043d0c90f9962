#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of collectives: methods that pass with the bare MPI pass with the drop-in.

usage: mpi4py_test.py --bin DIRECTORY --cache DIRECTORY [--environments FOLDER] [--ranks N ...] --
           MPI MODULE ...

Builds mpi4py from its source package for the MPI (host_mpi.py), once for each cache. Ends with 77
if the MPI is not installed, or if no package index is reached.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

import host_mpi

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "4.1.1"
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
    compiler = cache / "mpicc"
    before, after = shlex.join(mpi.compiler), shlex.join(mpi.libraries)
    compiler.write_text(f'#!/bin/sh\nexec {before} "$@" {after}\n')
    compiler.chmod(0o755)
    # Without optimization it compiles in a tenth of the time.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", archive],
                   env={**os.environ, "MPICC": str(compiler), "CFLAGS": "-O0"}, check=True)
    stamp.write_text(VERSION)
    return python, tests


def run(launcher, ranks, words, variables):
    """Method -> whether it passed at all ranks; and what the ranks said."""
    with tempfile.TemporaryDirectory() as results:
        command = ["timeout", str(MOST_SECONDS), *launcher, "-n", str(ranks), words[0],
                   HERE / "mpi4py_rank.py", words[1], results, *words[2:]]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env=variables)
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
    parser.add_argument("--environments", type=pathlib.Path, default=host_mpi.ENVIRONMENTS,
                        help="folder of scripts/mpi_environments.py")
    parser.add_argument("mpi", choices=host_mpi.NAMES)
    parser.add_argument("modules", nargs="+", help="such as test_cco_buf")
    options = parser.parse_args()
    try:
        mpi = host_mpi.find(options.mpi, options.environments)
    except host_mpi.Missing as error:
        print(f"skipped: {error}")
        return SKIPPED
    built = build(options.cache / f"mpi4py-{mpi.name}", mpi)
    if built is None:
        return SKIPPED
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        mpi.write_launchers(folder)
        variables = mpi.environment(folder, {})
        for ranks in options.ranks:
            for module in options.modules:
                words = [*built, module]
                bare, said = run(["mpirun"], ranks, words, variables)
                if not bare:
                    print(f"{module}, {ranks} ranks: nothing passes with the bare MPI: {said}")
                    failed = True
                ours, said = run([options.bin / "unisono", "mpirun"], ranks, words, variables)
                missing = sorted(bare - ours)
                print(f"{module}, {ranks} ranks: {len(bare & ours)} of {len(bare)} methods pass")
                if missing:
                    print("\n".join(["these do not:", *missing, said]))
                    failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

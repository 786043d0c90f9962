#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The comparison between hosts (bench/hosts/compare.py), with tiny counts: what is installed is
measured, what is not is named, and no host remains.

usage: compare_test.py --bin DIRECTORY --script bench/hosts/compare.py
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = None
PEERS = {"openmpi41": "mpirun.openmpi", "mpich40": "mpiexec.mpich"}


class ComparisonBetweenHosts(unittest.TestCase):
    def compare(self, folder, *words):
        return subprocess.run(
            [
                *[sys.executable, OPTIONS.script, "--unisono", OPTIONS.bin / "unisono"],
                *["--output", folder, "--sizes", "8", "--seconds", "0.002", "--repeat", "1"],
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_measures_what_is_there_and_names_what_is_not(self):
        there = [name for name, program in PEERS.items() if shutil.which(program)]
        with tempfile.TemporaryDirectory(prefix="unisono-compare-") as folder:
            done = self.compare(
                folder,
                *["--shapes", "2x1", "--collectives", "barrier,allreduce", "--hogs"],
                *["--only", ",".join(["unisono", *PEERS, "mpich50"])],
            )
            if "does not let us make namespaces" in done.stdout:
                print(f"skipped: {done.stdout.strip()}")
                self.skipTest("no namespaces")
            self.assertEqual(done.returncode, 0, done.stdout)
            document = json.loads(pathlib.Path(folder, "hosts.json").read_text())
        self.assertIn("mpich50 is left out: not there: ", done.stdout)
        cells = [row for row in document["results"] if row["method"] == "single"]
        self.assertEqual([row["collective"] for row in cells], ["barrier", "allreduce"])
        for row in cells:
            self.assertEqual(sorted(row["median_us"]), sorted([*there, "unisono"]), done.stdout)
            self.assertEqual((row["hosts"], row["ranks"]), (2, 2))

    def test_refuses_what_it_cannot_read(self):
        done = self.compare("unused", "--shapes", "2")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("'2' is no HOSTSxRANKS, as 4x1", done.stdout)
        done = self.compare("unused", "--only", "slurm")
        self.assertIn("nothing is named 'slurm'", done.stdout)


def why_not():
    if os.geteuid() != 0:
        return "needs root"
    return "" if any(map(shutil.which, PEERS.values())) else "no MPI is installed"


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--script", required=True, type=pathlib.Path)
    OPTIONS = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 0
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

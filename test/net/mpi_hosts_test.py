#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified MPI programs on several hosts by `unisono mpirun`, without a setting of Unisono's. All
collectives give the right results, and random programs those of the bare MPI. The MPI itself works
between hosts by TCP.

usage: mpi_hosts_test.py --bin DIRECTORY --program SOURCE --random SOURCE [--seeds N] [CLASS...]
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from host_set import AGENT, HostSet

RANKS_PER_HOST = 2
COLLECTIVES = ("barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter",
               "alltoall", "reduce_scatter", "scan", "exscan", "allgatherv", "gatherv", "scatterv",
               "alltoallv", "reduce_scatterv")
SIZES = (8, 4096, 131072)
STEPS = 40  # of a random program
OPTIONS = argparse.Namespace()
# The SKIP_RETURN_CODE for ctest: nothing went wrong, but not everything could be run.
SKIPPED = 77


class Running(unittest.TestCase):
    def run_on(self, hosts, tool, words, more=None):
        """The output of the program, with the errors of all. more: variables of the ranks."""
        lines = "".join(f"{host} slots={RANKS_PER_HOST}\n" for host in hosts.names())
        hosts.write("mpirun", '#!/bin/sh\nexec mpirun.openmpi "$@"\n')
        variables = [word for name in more or {} for word in ("-x", name)]
        done = hosts.unisono_hosts(
            *["exec", hosts.names()[0], *tool, "mpirun", "--allow-run-as-root"],
            *["--mca", "plm_rsh_agent", hosts.write("agent", AGENT)],
            *["--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "mpi_yield_when_idle", "1"],
            *["--hostfile", hosts.write("hostfile", lines), *variables],
            *["-n", str(RANKS_PER_HOST * hosts.number), *map(str, words)],
            environment={
                **hosts.environment,
                "PATH": f"{hosts.folder.name}:{hosts.environment['PATH']}",
                **(more or {}),
            },
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def make(self, number, source):
        """So many hosts, and a program."""
        hosts = HostSet(OPTIONS.bin, number)
        self.addCleanup(hosts.down)
        program = str(pathlib.Path(hosts.folder.name) / "program")
        subprocess.run(["mpicc.openmpi", "-O1", str(source.resolve()), "-o", program], check=True,
                       cwd=hosts.folder.name)
        return hosts, program


class SeveralHosts(Running):
    def make_twin(self, number):
        hosts, program = self.make(number, OPTIONS.program)
        return hosts, [program, "--seconds", "0.001"]

    def expect_right_results(self, number):
        """The program verifies what it gets. Its report is in a file, apart from warnings."""
        hosts, program = self.make_twin(number)
        words = ["--collectives", ",".join(COLLECTIVES), "--sizes", ",".join(map(str, SIZES))]
        report = pathlib.Path(hosts.folder.name) / "report"
        to_file = ["sh", "-c", f'exec "$@" >"{report}.$OMPI_COMM_WORLD_RANK"', "sh"]
        self.run_on(hosts, ["unisono"], [*to_file, *program, *words])
        report = json.loads(report.with_suffix(".0").read_text())
        self.assertEqual(report["ranks"], RANKS_PER_HOST * number)
        lines = [(cell["collective"], cell["size"]) for cell in report["results"]]
        self.assertEqual(lines, [(name, size) for name in COLLECTIVES
                                 for size in (SIZES if name != "barrier" else [0])])
        self.assertEqual([cell["wrong"] for cell in report["results"]], [0] * len(lines))

    def test_all_collectives_without_a_setting(self):
        for number in (2, 4):
            with self.subTest(hosts=number):
                self.expect_right_results(number)

    def test_unisono_does_them(self):
        hosts, program = self.make_twin(2)
        log = self.run_on(hosts, ["unisono"], [*program, "--collectives", "barrier"],
                          {"UNISONO_LOG": "info"})
        self.assertRegex(log, r"\[rendezvous\] job \S+ of 4 ranks on 2 hosts has started")
        self.assertIn("rank 3 of 4: Unisono does the collectives of a communicator", log)


class RandomPrograms(Running):
    """Each program checks its results, and prints a hash of all that its ranks received."""

    def hashes(self, output):
        """The hashes of all ranks. Warnings of the launcher stand between them."""
        return re.findall(r"^seed \d+: \d+ steps, hashes (.+)$", output, re.MULTILINE)

    def test_results_are_those_of_the_bare_mpi(self):
        for number in (2, 4):
            hosts, program = self.make(number, OPTIONS.random)
            for seed in range(OPTIONS.seeds):
                words = [program, 1000 * number + seed, STEPS, 1, "plain"]
                with self.subTest(hosts=number, seed=words[1]):
                    bare = self.hashes(self.run_on(hosts, [], words))
                    self.assertEqual(len(bare[0].split()), RANKS_PER_HOST * number)
                    self.assertEqual(self.hashes(self.run_on(hosts, ["unisono"], words)), bare)


def why_not():
    """Why the test cannot run here, as far as is known before hosts are made."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mpirun.openmpi", "mpicc.openmpi") if not shutil.which(name)]
    return f"{', '.join(missing)} not installed" if missing else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--program", required=True, type=pathlib.Path,
                        help="source of the program that verifies each collective")
    parser.add_argument("--random", required=True, type=pathlib.Path,
                        help="source of the random program")
    parser.add_argument("--seeds", type=int, default=1, help="random programs on so many hosts")
    parser.add_argument("tests", nargs="*", help="such as RandomPrograms")
    parser.parse_args(namespace=OPTIONS)
    if reason := why_not():
        print(f"skipped: {reason}")
        return SKIPPED
    result = unittest.main(argv=[sys.argv[0], *OPTIONS.tests], exit=False).result
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())

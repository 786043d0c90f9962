#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An unmodified MPI program on several hosts by `unisono mpirun`, without a setting of Unisono's:
all collectives give the right results. The MPI itself works between hosts by TCP.

usage: mpi_hosts_test.py --bin DIRECTORY --program SOURCE
"""

import argparse
import json
import os
import pathlib
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
OPTIONS = argparse.Namespace()
# The SKIP_RETURN_CODE for ctest: nothing went wrong, but not everything could be run.
SKIPPED = 77


class SeveralHosts(unittest.TestCase):
    def run_on(self, hosts, tool, words, more=None):
        """What the program prints, with the errors of all. more: variables of the ranks."""
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

    def make(self, number):
        """So many hosts, and the program."""
        hosts = HostSet(OPTIONS.bin, number)
        self.addCleanup(hosts.down)
        program = str(pathlib.Path(hosts.folder.name) / "program")
        source = str(OPTIONS.program.resolve())
        subprocess.run(["mpicc.openmpi", "-O1", source, "-o", program], check=True,
                       cwd=hosts.folder.name)
        return hosts, [program, "--seconds", "0.001"]

    def expect_right_results(self, number):
        """The program verifies what it gets."""
        hosts, program = self.make(number)
        words = ["--collectives", ",".join(COLLECTIVES), "--sizes", ",".join(map(str, SIZES))]
        output = self.run_on(hosts, ["unisono"], [*program, *words])
        report = json.loads(output[output.index("{"):output.rindex("}") + 1])
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
        hosts, program = self.make(2)
        log = self.run_on(hosts, ["unisono"], [*program, "--collectives", "barrier"],
                          {"UNISONO_LOG": "info"})
        self.assertRegex(log, r"\[rendezvous\] job \S+ of 4 ranks on 2 hosts has started")
        self.assertIn("rank 3 of 4: Unisono does the collectives of a communicator", log)


def why_not():
    """Why the test cannot run here, as far as is known before hosts are made."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mpirun.openmpi", "mpicc.openmpi") if not shutil.which(name)]
    return f"{', '.join(missing)} not installed" if missing else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--program", required=True, type=pathlib.Path, help="its source")
    parser.parse_args(namespace=OPTIONS)
    if reason := why_not():
        print(f"skipped: {reason}")
        return SKIPPED
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job of several hosts under a real launcher, which reaches the test hosts as it would by ssh.
It runs all collectives through the C API, without a setting and with an address.

usage: launcher_test.py --bin DIRECTORY --program CONFORMANCE --beside-mpi BESIDE_MPI LAUNCHER
"""

import argparse
import collections
import os
import pathlib
import secrets
import shutil
import sys
import time
import unittest

from host_set import AGENT, HostSet

HOSTS = 3
RANKS_PER_HOST = 2
RANKS = HOSTS * RANKS_PER_HOST
ADDRESS = "tcp:10.77.0.1:7000"

class OpenMpi:
    """Debian's Open MPI."""

    programs = ("mpirun.openmpi",)
    stores = ("",)  # options with which it offers a key-value store
    library = "libmpi.so.40"

    @staticmethod
    def command(hosts, settings, _store):
        lines = "".join(f"{host} slots={RANKS_PER_HOST}\n" for host in hosts.names())
        words = ["mpirun.openmpi", "--allow-run-as-root"]
        words += ["--mca", "plm_rsh_agent", hosts.write("agent", AGENT)]
        words += ["--hostfile", hosts.write("hostfile", lines), "-n", str(RANKS)]
        for name in settings:
            words += ["-x", name]
        return words


class Mpich:
    """Debian's MPICH: hydra. It hands on its whole environment. (With -genvlist
    MPICH 4.0 loses a listed variable on the other hosts if it is the last of the environment.)"""

    programs = ("mpiexec.mpich",)
    stores = ("",)
    library = "libmpich.so.12"

    @staticmethod
    def command(hosts, _settings, _store):
        lines = "".join(f"{host}:{RANKS_PER_HOST}\n" for host in hosts.names())
        words = ["mpiexec.mpich", "-launcher", "ssh"]
        words += ["-launcher-exec", hosts.write("agent", AGENT)]
        return words + ["-f", hosts.write("hosts", lines), "-n", str(RANKS)]


class Slurm:
    """Debian's Slurm, with a controller on the first host and a daemon on each. It, too, hands on
    the whole environment of srun."""

    programs = ("srun", "sinfo", "slurmctld", "slurmd")
    stores = ("--mpi=pmi2", "--mpi=pmix")
    library = None

    # The hosts have no control groups. Nobody else is on their network to be kept out.
    configuration = """ClusterName=test
SlurmctldHost={first}(10.77.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
MpiDefault=none
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES
"""

    @classmethod
    def configure(cls, hosts):
        text = cls.configuration.format(first=hosts.names()[0], folder=hosts.folder.name)
        for number, host in enumerate(hosts.names(), start=1):
            text += f"NodeName={host} NodeAddr=10.77.0.{number} CPUs={RANKS_PER_HOST}\n"
        hosts.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        return "SLURM_CONF=" + hosts.write("slurm.conf", text)

    @classmethod
    def command(cls, hosts, _settings, store):
        configuration = cls.configure(hosts)
        if not hosts.daemons:
            cls.start(hosts, configuration)
        words = ["env", configuration, "srun", f"--nodes={HOSTS}", "-n", str(RANKS)]
        return words + ([store] if store else [])

    @staticmethod
    def start(hosts, configuration):
        first = hosts.names()[0]
        hosts.start_daemon(first, ["env", configuration, "slurmctld", "-D"])
        for host in hosts.names():
            hosts.start_daemon(host, ["env", configuration, "slurmd", "-D", "-N", host])
        idle = f"idle {HOSTS}"
        state = ["exec", first, "env", configuration, "sinfo", "--noheader", "--format=%T %D"]
        while hosts.unisono_hosts(*state).stdout.strip() != idle:
            hosts.check_daemons()
            time.sleep(0.05)


LAUNCHERS = {"openmpi": OpenMpi, "mpich": Mpich, "slurm": Slurm}
OPTIONS = None
# The SKIP_RETURN_CODE for ctest: nothing went wrong, but not everything could be run.
SKIPPED = 77


class JobOfSeveralHosts(unittest.TestCase):
    def setUp(self):
        self.hosts = HostSet(OPTIONS.bin, HOSTS)
        self.addCleanup(self.hosts.down)

    def launch(self, settings, program, store=""):
        """Starts the launcher on the first host, with these settings for the ranks."""
        command = LAUNCHERS[OPTIONS.launcher].command(self.hosts, settings, store)
        return self.hosts.unisono_hosts(
            *["exec", self.hosts.names()[0], *command, *program],
            environment={**self.hosts.environment, **settings},
        )

    def expect_all_conform(self, settings, store=""):
        script = 'hostname; exec "$0"'
        done = self.launch(settings, ["sh", "-c", script, str(OPTIONS.program)], store)
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = collections.Counter(done.stdout.splitlines())
        for host in self.hosts.names():
            self.assertEqual(lines[host], RANKS_PER_HOST, done.stdout)
        for rank in range(RANKS):
            self.assertEqual(lines[f"rank {rank} of {RANKS} conforms"], 1, done.stdout)
        return done.stdout

    def test_with_an_address(self):
        self.expect_all_conform(
            {"UNISONO_RENDEZVOUS": ADDRESS, "UNISONO_JOB_KEY": secrets.token_hex(16)}
        )

    def test_without_settings(self):
        for store in LAUNCHERS[OPTIONS.launcher].stores:
            with self.subTest(store):
                self.expect_all_conform({}, store)

    def test_beside_mpi(self):
        """MPI begins first, or second, or is there but never begins."""
        launcher = LAUNCHERS[OPTIONS.launcher]
        if launcher.library is None:
            self.skipTest("this launcher has no MPI library of its own")
        for when in ("before", "after", "never"):
            with self.subTest(when):
                done = self.launch({}, [str(OPTIONS.beside_mpi), launcher.library, when])
                self.assertEqual(done.returncode, 0, done.stdout)
                for rank in range(RANKS):
                    self.assertIn(f"rank {rank} of {RANKS} sums {RANKS}\n", done.stdout)

    def test_networks_that_leave_nothing(self):
        """All ranks say why, also those that were only told."""
        settings = {"UNISONO_NETWORKS": "192.0.2.0/24"}
        store = LAUNCHERS[OPTIONS.launcher].stores[0]
        done = self.launch(settings, [str(OPTIONS.program)], store)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("rank 0's host knows no address of another host", done.stdout)
        self.assertIn('(UNISONO_NETWORKS="192.0.2.0/24"', done.stdout)

    def test_what_is_missing_is_said(self):
        if OPTIONS.launcher != "slurm":
            self.skipTest("this launcher always has what it takes")
        done = self.launch({}, [str(OPTIONS.program)], "--mpi=none")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("unsupported: several hosts without a rendezvous address", done.stdout)
        self.assertIn(f"SLURM_STEP_NUM_NODES={HOSTS}", done.stdout)
        self.assertIn("srun --mpi=pmi2", done.stdout)


def why_not():
    """Why the test cannot run here, as far as is known before hosts are made."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in LAUNCHERS[OPTIONS.launcher].programs if not shutil.which(name)]
    return f"{', '.join(missing)} not installed" if missing else ""


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--program", required=True, type=pathlib.Path, help="what the ranks run")
    parser.add_argument("--beside-mpi", required=True, type=pathlib.Path, help="... next to MPI")
    parser.add_argument("launcher", choices=sorted(LAUNCHERS))
    OPTIONS = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return SKIPPED
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    if not result.wasSuccessful():
        return 1
    return 0  # a case that is skipped has no meaning for this launcher


if __name__ == "__main__":
    sys.exit(main())

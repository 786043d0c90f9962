#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job of several hosts under a real launcher, which reaches the test hosts as it would by ssh:
all collectives through the C API, and what it says without an address.

usage: launcher_test.py --bin DIRECTORY --program PROCESS_CONFORMANCE openmpi|mpich
"""

import argparse
import collections
import os
import pathlib
import random
import secrets
import shutil
import string
import subprocess
import sys
import tempfile
import unittest

HOSTS = 3
RANKS_PER_HOST = 2
RANKS = HOSTS * RANKS_PER_HOST
ADDRESS = "tcp:10.77.0.1:7000"

# In place of ssh: nothing of the launcher's environment reaches the other host, so that what the
# ranks need has to come by the launcher. MPICH's -x is "no X11 forwarding".
AGENT = """#!/bin/sh
[ "$1" = -x ] && shift
exec env -i PATH="$PATH" TMPDIR="$TMPDIR" unisono hosts exec --shell "$@"
"""


class OpenMpi:
    """Debian's Open MPI."""

    command = "mpirun.openmpi"

    @staticmethod
    def host_line(host):
        return f"{host} slots={RANKS_PER_HOST}"

    @staticmethod
    def arguments(hostfile, agent, forwarded):
        words = ["--allow-run-as-root", "--mca", "plm_rsh_agent", agent]
        words += ["--hostfile", hostfile, "-n", str(RANKS)]
        for name in forwarded:
            words += ["-x", name]
        return words


class Mpich:
    """Debian's MPICH: hydra. It hands on its whole environment. (Its -genvlist leaves out the last
    variable of the environment, listed or not, on all hosts but the first: MPICH 4.0.)"""

    command = "mpiexec.mpich"

    @staticmethod
    def host_line(host):
        return f"{host}:{RANKS_PER_HOST}"

    @staticmethod
    def arguments(hostfile, agent, _forwarded):
        words = ["-launcher", "ssh", "-launcher-exec", agent]
        return words + ["-f", hostfile, "-n", str(RANKS)]


LAUNCHERS = {"openmpi": OpenMpi, "mpich": Mpich}
OPTIONS = None


class HostSet:
    """Test hosts of this process and a folder for its files; both go with it."""

    def __init__(self):
        self.name = "t" + "".join(random.choices(string.ascii_lowercase, k=7))
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-launcher-")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_")}
        self.environment["PATH"] = f"{OPTIONS.bin.resolve()}:{os.environ['PATH']}"
        self.environment["TMPDIR"] = self.folder.name  # the launchers keep files there
        up = self.unisono_hosts("up", str(HOSTS), "--name", self.name, "--owner", str(os.getpid()))
        if up.returncode != 0:
            self.folder.cleanup()
            # As the machine may forbid namespaces to root, in a container.
            if "does not let us make namespaces" in up.stdout:
                print(f"skipped: {up.stdout.strip()}")
                raise unittest.SkipTest("no namespaces")
            raise RuntimeError(up.stdout)

    def unisono_hosts(self, *words, environment=None):
        return subprocess.run(
            ["unisono", "hosts", *words],
            cwd=self.folder.name,
            env=environment or self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def names(self):
        return [f"{self.name}{number}" for number in range(1, HOSTS + 1)]

    def write(self, name, text):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def down(self):
        done = self.unisono_hosts("down", self.name)
        self.folder.cleanup()
        if done.returncode != 0:
            raise RuntimeError(done.stdout)


class JobOfSeveralHosts(unittest.TestCase):
    def setUp(self):
        self.hosts = HostSet()
        self.addCleanup(self.hosts.down)

    def launch(self, settings, program):
        """Starts the launcher on the first host, with these settings for the ranks."""
        launcher = LAUNCHERS[OPTIONS.launcher]
        lines = "".join(launcher.host_line(host) + "\n" for host in self.hosts.names())
        hostfile = self.hosts.write("hostfile", lines)
        agent = self.hosts.write("agent", AGENT)
        arguments = launcher.arguments(hostfile, agent, settings)
        return self.hosts.unisono_hosts(
            *["exec", self.hosts.names()[0], launcher.command, *arguments, *program],
            environment={**self.hosts.environment, **settings},
        )

    def test_every_collective_is_right(self):
        settings = {"UNISONO_RENDEZVOUS": ADDRESS, "UNISONO_JOB_KEY": secrets.token_hex(16)}
        script = 'hostname; exec "$0"'
        done = self.launch(settings, ["sh", "-c", script, str(OPTIONS.program)])
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = collections.Counter(done.stdout.splitlines())
        for host in self.hosts.names():
            self.assertEqual(lines[host], RANKS_PER_HOST, done.stdout)
        for rank in range(RANKS):
            self.assertEqual(lines[f"rank {rank} of {RANKS} conforms"], 1, done.stdout)

    def test_without_an_address_it_says_what_is_missing(self):
        done = self.launch({}, [str(OPTIONS.program)])
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("unsupported: several hosts without an address", done.stdout)
        placed = f"placed {RANKS_PER_HOST} of {RANKS} ranks on this host"
        self.assertIn(placed, done.stdout)
        self.assertIn("UNISONO_RENDEZVOUS=tcp:HOST:PORT", done.stdout)


def why_not():
    """Why the test cannot run here, as far as is known before hosts are made."""
    if os.geteuid() != 0:
        return "needs root"
    command = LAUNCHERS[OPTIONS.launcher].command
    return "" if shutil.which(command) else f"{command} is not installed"


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--program", required=True, type=pathlib.Path, help="what the ranks run")
    parser.add_argument("launcher", choices=sorted(LAUNCHERS))
    OPTIONS = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 0
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""Test hosts for tests in Python, and how a launcher reaches them in place of ssh."""

import os
import pathlib
import random
import string
import subprocess
import tempfile
import unittest

# Nothing of the launcher's environment reaches the other host, so the launcher has to pass on all
# that ranks need. MPICH's -x is "no X11 forwarding".
AGENT = """#!/bin/sh
[ "$1" = -x ] && shift
exec env -i PATH="$PATH" TMPDIR="$TMPDIR" unisono hosts exec --shell "$@"
"""


class HostSet:
    """Test hosts of this process and a folder for its files; both go with it."""

    def __init__(self, tool, number):
        """tool: the folder of unisono."""
        self.number = number
        self.name = "t" + "".join(random.choices(string.ascii_lowercase, k=7))
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-launcher-")
        self.daemons = []
        foreign = ("UNISONO_", "SLURM_")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.environment["PATH"] = f"{tool.resolve()}:{os.environ['PATH']}"
        self.environment["TMPDIR"] = self.folder.name  # the launchers keep files there
        up = self.unisono_hosts(
            "up", str(number), "--name", self.name, "--owner", str(os.getpid())
        )
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

    def start_daemon(self, host, words):
        """It ends with the hosts, at the latest."""
        output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        daemon = subprocess.Popen(
            ["unisono", "hosts", "exec", host, *words],
            cwd=self.folder.name,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        self.daemons.append((daemon, output))

    def check_daemons(self):
        for daemon, output in self.daemons:
            if daemon.poll() is not None:
                output.seek(0)
                raise RuntimeError(f"{' '.join(daemon.args)} has ended:\n{output.read()}")

    def names(self):
        return [f"{self.name}{number}" for number in range(1, self.number + 1)]

    def write(self, name, text):
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def down(self):
        done = self.unisono_hosts("down", self.name)
        for daemon, output in self.daemons:
            daemon.wait()
            output.close()
        self.folder.cleanup()
        if done.returncode != 0:
            raise RuntimeError(done.stdout)

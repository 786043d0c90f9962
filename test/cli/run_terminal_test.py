#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""unisono run at a terminal: typing reaches rank 0, ^C and ^Z reach every rank, nothing is left.

usage: run_terminal_test.py --bin DIRECTORY
"""

import argparse
import os
import pty
import re
import select
import signal
import sys
import time
import unittest

BINARY = ""
# A bound for the whole suite to end if something hangs; it decides nothing while all is well.
PATIENCE_SECONDS = 60


class Terminal:
    """A job of `unisono run` as the foreground job of a terminal of its own."""

    def __init__(self, *arguments):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_")}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(BINARY, ["unisono", "run", *arguments], environment)
        self.seen = ""

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, pattern):
        """Reads until the pattern was seen; gives the match."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not (match := re.search(pattern, self.seen)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise AssertionError(f"'{pattern}' was not seen in: {self.seen}")
            try:
                self.seen += os.read(self.terminal, 4096).decode()
            except OSError as error:  # EIO: the job has closed its terminal
                raise AssertionError(f"'{pattern}' was not seen in: {self.seen}") from error
        return match

    def exit_status(self):
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.terminal)
        return status


def process_state(pid):
    """The letter of /proc/<pid>/stat, or '' if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_for_state(pid, states):
    until = time.monotonic() + PATIENCE_SECONDS
    while process_state(pid) not in states:
        if time.monotonic() > until:
            raise AssertionError(f"process {pid} is in state '{process_state(pid)}', not {states}")
        time.sleep(0.01)


class TestTerminal(unittest.TestCase):
    def test_typing_reaches_rank_0_only(self):
        job = Terminal("-n", "2", "--tag", "cat")
        job.type("hello\n")
        job.wait_for(r"\[0\] hello")
        job.type("\x04")
        self.assertEqual(job.exit_status(), 0)
        self.assertNotIn("[1] hello", job.seen)

    def test_control_c_reaches_every_rank(self):
        script = 'trap "echo interrupted; exit 0" INT; echo ready; while :; do sleep 0.05; done'
        job = Terminal("-n", "2", "--tag", "sh", "-c", script)
        job.wait_for(r"\[0\] ready")
        job.wait_for(r"\[1\] ready")
        job.type("\x03")
        job.wait_for(r"\[0\] interrupted")
        job.wait_for(r"\[1\] interrupted")
        self.assertEqual(job.exit_status(), 0)

    def test_an_interrupted_job_has_the_status_of_sigint(self):
        job = Terminal("-n", "2", "sh", "-c", "echo ready; exec sleep 1000")
        job.wait_for(r"ready\s+ready")
        job.type("\x03")
        self.assertEqual(job.exit_status(), 128 + signal.SIGINT)

    def test_control_z_stops_and_fg_continues(self):
        job = Terminal("-n", "1", "sh", "-c", 'echo pid $$ done; read line; echo got "$line"')
        rank = int(job.wait_for(r"pid (\d+) done").group(1))
        job.type("\x1a")
        wait_for_state(rank, "T")
        wait_for_state(job.pid, "T")
        os.kill(job.pid, signal.SIGCONT)
        wait_for_state(rank, "SR")
        job.type("more\n")
        job.wait_for("got more")
        self.assertEqual(job.exit_status(), 0)

    def test_a_closed_terminal_ends_the_job(self):
        job = Terminal("-n", "1", "sh", "-c", "echo pid $$ done; exec sleep 1000")
        rank = int(job.wait_for(r"pid (\d+) done").group(1))
        wait_for_state(rank, "S")
        os.close(job.terminal)  # the kernel sends SIGHUP to the foreground job
        status = os.waitstatus_to_exitcode(os.waitpid(job.pid, 0)[1])
        self.assertEqual(status, 128 + signal.SIGHUP)
        self.assertEqual(process_state(rank), "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, help="directory of the unisono binary")
    options, rest = parser.parse_known_args()
    BINARY = os.path.join(options.bin, "unisono")
    unittest.main(argv=sys.argv[:1] + rest)

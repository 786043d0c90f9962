# SPDX-License-Identifier: BSD-3-Clause
"""All processes in one scheduling group, while hosts share a machine.

Where Linux groups processes by session (`sched_autogroup_enabled`), it shares a core among the
groups by the time they have used, and giving the core away means nothing between them. Each host's
processes are a session. So a host that multicasts for others, in its soft interrupt, had to wait
afterwards until each of the others had used as much time, if only by waiting. Hosts of their own do
not do that to each other.
"""

import pathlib
import shlex
import subprocess
import sys

SETTING = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")


class OneGroup:
    """For processes that start between start() and end(); the first of two at a time to end, ends
    both. Where the setting cannot be changed that is said, and nothing else happens."""

    def __init__(self, setting=SETTING):
        self.setting = setting
        self.guard = None

    def start(self):
        if not self.setting.exists() or self.setting.read_text().strip() != "1":
            return
        # Sets it back when its input ends: however this process does, `kill -9` included.
        restore = f"trap '' INT TERM HUP; read _; echo 1 > {shlex.quote(str(self.setting))}"
        self.guard = subprocess.Popen(
            ["sh", "-c", restore], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self.setting.write_text("0")
        except OSError as error:
            print(f"{self.setting} stays 1, sessions share cores: {error}", file=sys.stderr)

    def end(self):
        if self.guard is not None:
            self.guard.stdin.close()
            self.guard.wait()
            self.guard = None

# SPDX-License-Identifier: BSD-3-Clause
"""Programs that only burn processor time, one for each core: a machine that does other work too."""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
LOOP = "while True: pass"


def bind_to(core):
    """In the child: stays on this core, and goes when its parent is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, {core})


class Hogs:
    """A context: they run in it, and no longer."""

    def __init__(self, wanted=True):
        self.processes = []
        for core in sorted(os.sched_getaffinity(0)) if wanted else []:
            self.processes.append(
                subprocess.Popen([sys.executable, "-c", LOOP], preexec_fn=lambda c=core: bind_to(c))
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

# SPDX-License-Identifier: BSD-3-Clause
"""Files of figures: each run of a benchmark adds its own, and replaces those of the same run."""

import json
import os
import platform
import sys
from pathlib import Path


def _processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def keep(path, run, figures):
    """`run` names the run, for instance "2 ranks"; `figures` are what JSON can hold."""
    whole = json.loads(path.read_text()) if path.exists() else {}
    whole["machine"] = {"processor": _processor(), "cores": os.cpu_count(),
                        "usable_cores": len(os.sched_getaffinity(0)),
                        "kernel": f"{platform.system()} {platform.release()}"}
    # Where the file goes is no part of how to repeat it.
    words = iter(sys.argv[1:])
    rest = [word for word in words if not (word == "--json" and next(words))]
    command = " ".join([f"bench/torch/{Path(sys.argv[0]).name}", *rest])
    whole.setdefault("runs", {})[run] = {"command": command, **figures}
    path.write_text(json.dumps(whole, indent=1) + "\n")

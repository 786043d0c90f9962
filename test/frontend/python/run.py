#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of a Python front end in the environment that scripts/python_environment.py has
made. They are those of this folder, or of the folders that are named. Exits with 77 (skipped) and
the reason if there is none. Standard library only."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, required=True)
    options, rest = parser.parse_known_args()
    python = options.environment / "bin" / "python"
    if not (options.environment / "wheel.stamp").is_file():
        print(f"skipped: {options.environment} is not complete; scripts/python_environment.py "
              "makes it, and needs a package index (pip)")
        return SKIPPED
    # Jobs of an outer launcher are not those of the tests.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UNISONO_", "OMPI_", "PMI", "SLURM_", "PYTHONPATH"))}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               *(rest or [Path(__file__).parent])]
    return subprocess.run(command, check=False, env=environment | {"PYTHONDONTWRITEBYTECODE": "1"}
                          ).returncode


if __name__ == "__main__":
    sys.exit(main())

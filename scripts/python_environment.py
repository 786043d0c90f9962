#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the virtual environment in which the Python front end is tested.

    scripts/python_environment.py --build build/release --environment build/venv-python

Installs test/frontend/python/requirements.txt, which needs a package index, and the wheel of
frontend/python with the library and the tool of the build. Ends with 1 and the reason if pip fails.
Standard library only.
"""

import argparse
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
REQUIREMENTS = TOP / "test" / "frontend" / "python" / "requirements.txt"


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        sys.exit(f"python_environment: failed: {' '.join(map(str, command))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="with bin, lib and include")
    parser.add_argument("--environment", type=Path, required=True)
    options = parser.parse_args()
    python = options.environment / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = options.environment / "requirements.stamp"
    complete = options.environment / "wheel.stamp"
    complete.unlink(missing_ok=True)
    if not wanted.is_file() or wanted.read_text() != REQUIREMENTS.read_text():
        run(sys.executable, "-m", "venv", options.environment)
        run(*pip, "-r", REQUIREMENTS)
        wanted.write_text(REQUIREMENTS.read_text())
    # The build folder stays, so that only what has changed is compiled.
    run(*pip, "--no-build-isolation", "--no-deps", "--force-reinstall",
        f"-Ccmake.define.UNISONO_PREFIX={options.build.resolve()}",
        f"-Cbuild-dir={options.environment.resolve()}/wheel-build", TOP / "frontend" / "python")
    complete.write_text("")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the virtual environments in which the Python front ends are tested.

    scripts/python_environment.py --build build/release --environment build/venv-python
    scripts/python_environment.py --build build/release --environment build/venv-torch --torch
    scripts/python_environment.py --build build/release --environment build/venv-2.8 --torch 2.8

Installs test/frontend/python/requirements.txt, which needs a package index, and the wheel of
frontend/python with the library and the tool of the build. With --torch also torch, which is
some gigabytes, and the wheel of frontend/torch; the newest torch, or of the minor version named.
Ends with 1 and the reason if pip fails. Standard library only.
"""

import argparse
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
REQUIREMENTS = TOP / "test" / "frontend" / "python" / "requirements.txt"
TORCH = TOP / "test" / "frontend" / "torch" / "requirements.txt"
NEWEST = "newest"


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
    parser.add_argument("--torch", nargs="?", const=NEWEST, metavar="VERSION",
                        help="with torch and its back end; the newest, or a minor version: 2.8")
    options = parser.parse_args()
    python = options.environment / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = options.environment / "requirements.stamp"
    complete = options.environment / "wheel.stamp"
    complete.unlink(missing_ok=True)
    files = [REQUIREMENTS, *([TORCH] if options.torch else [])]
    text = "".join(file.read_text() for file in files)
    named = "" if options.torch in (None, NEWEST) else f"torch=={options.torch}.*\n"
    text += named
    if not wanted.is_file() or wanted.read_text() != text:
        run(sys.executable, "-m", "venv", options.environment)
        constraints = options.environment / "constraints.txt"
        constraints.write_text(named)
        for file in files:
            run(*pip, "-r", file, "-c", constraints)
        wanted.write_text(text)
    # The build folders stay, so that only what has changed is compiled.
    install = [*pip, "--no-build-isolation", "--no-deps", "--force-reinstall"]
    run(*install, f"-Ccmake.define.UNISONO_PREFIX={options.build.resolve()}",
        f"-Cbuild-dir={options.environment.resolve()}/wheel-build", TOP / "frontend" / "python")
    if options.torch:
        run(*install, f"-Cbuild-dir={options.environment.resolve()}/torch-build",
            TOP / "frontend" / "torch")
    complete.write_text("")


if __name__ == "__main__":
    main()

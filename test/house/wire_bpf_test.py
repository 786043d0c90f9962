#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The headers of wire/ compile for BPF, where there is no C library and no call.

usage: wire_bpf_test.py --source DIRECTORY

Exits with 77 (skipped) if no clang here compiles for BPF.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ["clang"] + [f"clang-{version}" for version in range(22, 12, -1)]


def compiles_for_bpf(clang):
    return subprocess.run([clang, "-target", "bpf", "-x", "c", "-c", "-o", "/dev/null", "-"],
                          input="int answer;\n", text=True, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=Path)
    source = parser.parse_args().source
    found = [path for path in map(shutil.which, NAMES) if path and compiles_for_bpf(path)]
    if not found:
        print("skipped: no clang here compiles for BPF (Debian: apt-get install clang)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "wire.o"
        result = subprocess.run(
            [found[0], "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-std=c11", "-Wall", "-Wextra",
             "-Werror", "-nostdinc", f"-I{source}/src", "-c", f"{source}/test/house/wire_c11.c",
             "-o", made], check=False)
        if result.returncode != 0 or made.read_bytes()[:4] != b"\x7fELF":
            print(f"FAILED: {found[0]} cannot compile the headers of wire/ for BPF")
            return 1
        print(f"{found[0]}: {made.stat().st_size} bytes of BPF")
    return 0


if __name__ == "__main__":
    sys.exit(main())

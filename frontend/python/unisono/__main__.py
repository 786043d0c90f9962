# SPDX-License-Identifier: BSD-3-Clause
"""`python -m unisono`: the tool `unisono`, which lies beside this file."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    tool = Path(__file__).parent / "bin" / "unisono"
    os.execv(tool, ["unisono", *sys.argv[1:]])


if __name__ == "__main__":
    main()

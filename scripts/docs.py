#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages of docs/reference that are printed by the tool: are they up to date?

    scripts/docs.py --unisono build/release/bin/unisono [--write]

Compares each page with what the tool prints now and shows the difference; --write renews them.
Links between pages are checked by scripts/tidy.py.
"""

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGES = {
    "algorithms.md": ["info", "--algorithms", "--format", "markdown"],
    "settings.md": ["info", "--config", "--format", "markdown"],
    "transports.md": ["info", "--transports", "--format", "markdown"],
}


def printed(unisono, arguments):
    # A setting of the caller's must not get into the pages.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_")}
    return subprocess.run([unisono, *arguments], check=True, text=True, stdout=subprocess.PIPE,
                          env=environment).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unisono", required=True, help="the tool that prints the pages")
    parser.add_argument("--write", action="store_true", help="renew the pages")
    options = parser.parse_args()

    stale = 0
    for name, arguments in PAGES.items():
        page = REFERENCE / name
        new = printed(options.unisono, arguments)
        old = page.read_text() if page.exists() else ""
        if new == old:
            continue
        if options.write:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(new)
            print(f"renewed docs/reference/{name}")
        else:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True), str(page), "printed now"))
    print(f"docs: {len(PAGES)} generated pages, {stale} out of date"
          + ("; run: ./dev docs --write" if stale else ""))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

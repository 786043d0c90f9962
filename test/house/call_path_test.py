#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/explanation/a-call.md lists the files through which a blocking 8-byte allreduce goes.
They are those whose code is executed when one is followed instruction by instruction, and no
others.

usage: call_path_test.py --build DIRECTORY [--source DIRECTORY] [--print]
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PAGE = "docs/explanation/a-call.md"
DECISION = "docs/decisions/0049-one-concept-in-a-file.md"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = re.compile(r"^\| `([a-z_/]+)` \|", re.M)
CANNOT_FOLLOW = 77
OPTIONS = None


def files_of(addresses):
    """The files of src/ that the instructions are from, also by inlining; a header and its source
    count as one."""
    library, numbers = addresses[0].rsplit(" ", 1)[0], [a.rsplit(" ", 1)[1] for a in addresses]
    done = subprocess.run(["addr2line", "--inlines", "--exe", library], text=True, check=True,
                          input="\n".join(numbers), stdout=subprocess.PIPE)
    places = re.findall(r"/src/([a-z_/0-9]+)\.[a-z]+:\d+", done.stdout)
    return set(places)


def follow(mode):
    """The files that one call executes; None: processes cannot be followed here."""
    with tempfile.NamedTemporaryFile() as shared:
        command = [OPTIONS.build / "bin/unisono", "run", "-n", "2", "--",
                   OPTIONS.build / "bin/call_path", mode, shared.name]
        # The looks for dead ranks come by the clock, and are no part of a call.
        environment = {**os.environ, "UNISONO_DETECT_TIMEOUT": "10h"}
        done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    if f"status {CANNOT_FOLLOW}" in done.stderr:
        print(f"skipped: {done.stderr.strip()}")
        return None
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    lines = [line for line in done.stdout.splitlines() if " 0x" in line]
    return files_of(lines)


def sections():
    """{title: files} of the page's tables."""
    text = (OPTIONS.source / PAGE).read_text()
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    return {title: FILE.findall(body) for title, body in zip(parts[1::2], parts[2::2])
            if FILE.search(body)}


class CallPath(unittest.TestCase):
    READY, WAITS, LOOKS = ("When all messages have come", "When it has to wait",
                           "When it looks for failures")

    def check(self, mode, listed):
        executed = follow(mode)
        if executed is None:
            self.skipTest("no process can be followed here")
        self.assertEqual(len(listed), len(set(listed)), "a file is listed twice")
        self.assertEqual(set(listed), executed)

    def test_the_page_lists_the_files_of_a_call_that_need_not_wait(self):
        self.check("ready", sections()[self.READY])

    def test_the_page_lists_the_files_of_a_call_that_sleeps(self):
        found = sections()
        self.check("waits", found[self.READY] + found[self.WAITS] + found[self.LOOKS])

    def test_the_page_says_how_many_they_are(self):
        found = sections()
        text = (OPTIONS.source / PAGE).read_text()
        self.assertIn(f"in {len(found[self.READY])} files:", text)
        self.assertIn(f"takes {len(found[self.WAITS])} more:", text)
        self.assertIn(f"{len(found[self.LOOKS])} more:", text)

    def test_the_decision_says_how_many_they_are(self):
        ready, waits, looks = (len(sections()[t]) for t in (self.READY, self.WAITS, self.LOOKS))
        text = " ".join((OPTIONS.source / DECISION).read_text().split())
        self.assertIn(f"through {ready} files if it need not wait, and through "
                      f"{ready + waits + looks} if it sleeps.", text)
        self.assertIn(f"Of the second number, {looks} are reasons", text)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, default=ROOT)
    parser.add_argument("--print", action="store_true", help="print the files, and test nothing")
    OPTIONS, rest = parser.parse_known_args()
    if OPTIONS.print:
        ready = follow("ready")
        print("ready:", *sorted(ready), sep="\n  ")
        print("waits, besides:", *sorted(follow("waits") - ready), sep="\n  ")
        return
    result = unittest.main(argv=[sys.argv[0], *rest], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else CANNOT_FOLLOW if result.skipped else 0)


if __name__ == "__main__":
    main()

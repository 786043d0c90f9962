#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/explanation/what-can-end-a-wait.md is about the code as it is. Each function, file and test
that it names exists, and each source that calls something that may block is on it.

usage: waits_test.py [--source DIRECTORY]
"""

import argparse
import pathlib
import re
import sys
import tempfile
import unittest

PAGE = "docs/explanation/what-can-end-a-wait.md"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["src", "tools", "include"]
SOURCES = {".c", ".cpp", ".h", ".hpp"}
# A call by its own name, or with :: before it, and not a member of something.
CALL = r"(?<![\w.>:])(?:::)?"
BLOCKING = re.compile("|".join([
    CALL + r"(?:ppoll|poll|connect|accept4?|recv|recvfrom|recvmsg|recvmmsg)\s*\([^;]*?,",
    CALL + r"(?:send|sendmsg|sendmmsg)\s*\([\w>.-]+(?:\.get\(\)|descriptor),",
    CALL + r"read\s*\([\w>.-]*(?:get\(\)|pipe),",
    CALL + r"(?:epoll_wait|nanosleep|sched_yield|waitpid|waitid|sigwaitinfo)\s*\(",
    CALL + r"(?:flock|getaddrinfo)\s*\(",
    CALL + r"pause\(\)",
    r"\bFUTEX_WAIT\b", r"\bcondition_variable\b", r"\bspin_pause\(\)", r"\.join\(\)",
    r"\bthis_thread::(?:yield|sleep_for|sleep_until)\b", r"\bstd::future_status\b",
    r"\bfi_cq_sread\b", r"\bring_buffer__poll\b",
]))
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
QUOTED = re.compile(r"`([^`]+)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
PYTHON_TEST = re.compile(r"^    def (test_\w+)\(", re.M)
NO_TEST = "none"


def blocks(text):
    return BLOCKING.search(COMMENT.sub("", text)) is not None


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text):
    """(number of the line, head, cells) of each row of each table."""
    head = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
        elif not re.fullmatch(r"[|\s:-]+", line):
            yield number, head, cells(line)


class Tree:
    def __init__(self, root):
        self.root = root
        self.names = set()
        for path in (root / "test").rglob("*.cpp"):
            self.names |= {f"{suite}.{name}" for suite, name in TEST.findall(path.read_text())}
        for path in (root / "test").rglob("*_test.py"):
            self.names |= set(PYTHON_TEST.findall(path.read_text()))

    def blocking_files(self):
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SOURCES and blocks(path.read_text()):
                    yield str(path.relative_to(self.root))

    def has_function(self, path, function):
        name = function.rpartition("::")[2].removesuffix("()")
        text = COMMENT.sub("", (self.root / path).read_text())
        return re.search(rf"(?<!\w){re.escape(name)}\s*\(", text) is not None

    def has_test(self, name):
        return (self.root / name).is_file() if "/" in name else name in self.names


def wrong_wait(tree, row):
    """The faults of a row of a table of waits: (function file, ..., not covered, test)."""
    named = QUOTED.findall(row[0])
    paths = [name for name in named if "/" in name]
    functions = [name for name in named if "/" not in name]
    if len(paths) != 1 or not functions:
        yield "the first cell names a function and a file"
        return
    if not (tree.root / paths[0]).is_file():
        yield f"there is no {paths[0]}"
        return
    for function in functions:
        if not tree.has_function(paths[0], function):
            yield f"{paths[0]} has no {function}"
    if not all(row):
        yield "a cell is empty"
    tests = QUOTED.findall(row[-1])
    if not tests and row[-1] != NO_TEST:
        yield f"the last cell names tests, or says {NO_TEST}"
    for test in tests:
        if not tree.has_test(test):
            yield f"there is no test {test}"


def problems(root):
    tree = Tree(root)
    text = (root / PAGE).read_text()
    listed = set()
    for number, head, row in tables(text):
        if head[0] not in ("wait", "file"):
            continue
        listed |= {name for name in QUOTED.findall(row[0]) if "/" in name}
        if len(row) != len(head):
            yield f"{PAGE}:{number}: {len(row)} cells, the table has {len(head)}"
        elif head[0] == "wait":
            yield from (f"{PAGE}:{number}: {what}" for what in wrong_wait(tree, row))
        else:
            for name in QUOTED.findall(row[0]):
                if not (root / name).is_file():
                    yield f"{PAGE}:{number}: there is no {name}"
    for path in tree.blocking_files():
        if path not in listed:
            yield f"{path} may block and is not on {PAGE}"


WAIT = "| wait | waits for | ended by | within | not covered | test |\n| --- |\n"
GOOD_ROW = "| `Bell::sleep` `src/bell.cpp` | a | b | c | d | `Bell.Rings` |\n"


class Checks(unittest.TestCase):
    """The checks themselves, on a tree of two files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="unisono-waits-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/bell.cpp", "void Bell::sleep(int ms) { ppoll(&one, 1, nullptr, nullptr); }")
        self.write("src/quiet.cpp", "// poll(a, b, c)\nbool poll(); int x = client->recv(a, b);")
        self.write("test/bell_test.cpp", "TEST(Bell, Rings) {}\n")
        self.write("test/bell_test.py", "    def test_rings(self):\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def said(self, page):
        self.write(PAGE, page)
        return "\n".join(problems(self.root))

    def test_a_right_page_passes(self):
        self.assertEqual(self.said(WAIT + GOOD_ROW), "")
        self.assertEqual(self.said(WAIT + GOOD_ROW.replace("Bell.Rings", "test_rings")), "")
        self.assertEqual(self.said(WAIT + GOOD_ROW.replace("`Bell.Rings`", NO_TEST)), "")
        self.assertEqual(self.said("| file | why |\n| --- |\n| `src/bell.cpp` | a |\n"), "")

    def test_a_file_that_may_block_has_to_be_there(self):
        self.assertEqual(self.said("Nothing.\n"), f"src/bell.cpp may block and is not on {PAGE}")

    def test_what_is_named_has_to_exist(self):
        for old, new in [("Bell::sleep", "Bell::doze"), ("Bell.Rings", "Bell.Sings"),
                         ("src/bell.cpp", "src/gong.cpp"), ("Bell.Rings", "test_sings"),
                         ("Bell.Rings", "test/cli/bell.txt")]:
            self.assertIn(new.rpartition("::")[2], self.said(WAIT + GOOD_ROW.replace(old, new)))

    def test_a_row_is_complete(self):
        self.assertIn("a cell is empty", self.said(WAIT + GOOD_ROW.replace(" d ", "  ")))
        self.assertIn("names tests", self.said(WAIT + GOOD_ROW.replace("`Bell.Rings`", "it does")))
        self.assertIn("5 cells", self.said(WAIT + GOOD_ROW.replace("| d ", "")))
        nameless = GOOD_ROW.replace("`Bell::sleep`", "")
        self.assertIn("a function and a file", self.said(WAIT + nameless))


class Page(unittest.TestCase):
    def test_is_about_the_code_as_it_is(self):
        found = list(problems(OPTIONS.source))
        self.assertEqual(found, [], "\n" + "\n".join(found))


OPTIONS = None


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, default=ROOT)
    OPTIONS = parser.parse_args()
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

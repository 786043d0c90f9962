#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The README and the tutorial tell the truth: their commands run and print what they say.

A ```console block is a transcript: lines after `$ ` are commands for sh (a line that ends in `\\`
goes on), the lines below are what they print. `[..]` stands for any text within a line, a line of
three dots for any number of lines. Commands run in a copy of the tree's top folder in which
build/release is the build under test. PAGES_OF_PYTHON and PAGES_OF_TORCH need packages: the tests
in test/frontend run them, and the ```python blocks of all pages. ```c and ```cpp blocks are
complete programs, or statements inside main after the headers; they have to compile. The lines that
a complete program prints stand in a transcript of its page. Other blocks (```sh) are not run.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from transcript import matches  # noqa: E402  (the wildcards are those of test/cli)

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
PAGES = ["README.md", "docs/tutorial/*.md"]
PAGES_OF_PYTHON = ["docs/tutorial/04-python.md"]
PAGES_OF_TORCH = ["docs/tutorial/05-pytorch.md"]


def blocks(text, *languages):
    """(line, language, body) of the fenced blocks in one of the languages."""
    for match in BLOCK.finditer(text):
        if match.group(1) in languages:
            yield text.count("\n", 0, match.start()) + 2, match.group(1), match.group(2)


def commands(body):
    """(command, expected lines) of a transcript."""
    steps = []
    for line in re.sub(r"\\\n", "", body).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return steps


class Commands(unittest.TestCase):
    def test_continuation(self):
        self.assertEqual(commands("$ a \\\n  b\nout\n$ c\n"), [("a   b", ["out"]), ("c", [])])


class Pages(unittest.TestCase):
    options = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        for path in self.options.source.iterdir():
            if path.name not in ("build", ".git"):
                (self.top / path.name).symlink_to(path)
        (self.top / "build").mkdir()
        (self.top / "build" / "release").symlink_to(self.options.build)

    def pages(self):
        found = [p for pattern in PAGES for p in sorted(self.options.source.glob(pattern))]
        self.assertTrue(found)
        return [(p.relative_to(self.options.source), p.read_text()) for p in found]

    def test_transcripts(self):
        count = 0
        for page, text in self.pages():
            if str(page) in PAGES_OF_PYTHON + PAGES_OF_TORCH:
                continue
            for line, _, body in blocks(text, "console"):
                for command, expected in commands(body):
                    with self.subTest(page=str(page), line=line, command=command):
                        run = subprocess.run(["sh", "-c", command], cwd=self.top, text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                             check=False)
                        self.assertEqual(run.returncode, 0, run.stdout)
                        self.assertTrue(matches(expected, run.stdout.splitlines()),
                                        "printed:\n" + run.stdout)
                    count += 1
        self.assertGreater(count, 0)

    def test_snippets_compile(self):
        for page, text in self.pages():
            for line, language, body in blocks(text, "c", "cpp"):
                with self.subTest(page=str(page), line=line):
                    self.compile(language, body)

    def test_programs_print_what_the_page_says(self):
        for page, text in self.pages():
            transcripts = "".join(body for _, _, body in blocks(text, "console")).splitlines()
            for line, language, body in blocks(text, "c", "cpp"):
                if " main(" not in body:
                    continue
                with self.subTest(page=str(page), line=line):
                    for printed in self.printed_by(language, body):
                        self.assertIn(printed, transcripts)

    def printed_by(self, language, body):
        """The lines of a complete program, as a job of one rank."""
        library = self.options.build / "lib"
        program = self.top / "program"
        build = subprocess.run(
            ["cc" if language == "c" else "c++", *([] if language == "c" else ["-std=c++20"]),
             "-x", "c" if language == "c" else "c++", f"-I{self.options.source / 'include'}", "-",
             "-o", program, f"-L{library}", f"-Wl,-rpath,{library}", "-lunisono"],
            input=body, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(build.returncode, 0, build.stdout)
        return subprocess.run([program], text=True, check=True,
                              stdout=subprocess.PIPE).stdout.splitlines()

    def compile(self, language, body):
        includes = "".join(re.findall(r"^#include.*\n", body, re.M))
        statements = re.sub(r"^#include.*\n", "", body, flags=re.M)
        if " main(" not in statements:
            statements = f"int main(void) {{\n{statements}\nreturn 0; }}\n"
        flags = {"c": ["cc", "-std=c11"], "cpp": ["c++", "-std=c++20"]}[language]
        run = subprocess.run(
            [*flags, "-x", "c" if language == "c" else "c++", "-fsyntax-only", "-Wall", "-Wextra",
             "-Wno-unused-variable", "-Werror", f"-I{self.options.source / 'include'}", "-"],
            input=includes + statements, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 0, run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    Pages.options, rest = parser.parse_known_args()
    Pages.options.source = Pages.options.source.resolve()
    Pages.options.build = Pages.options.build.resolve()
    # The settings of whoever runs the tests are not part of the page.
    for name in [n for n in os.environ if n.startswith("UNISONO_")]:
        del os.environ[name]
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()

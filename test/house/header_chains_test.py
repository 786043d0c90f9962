#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chains of headers: each header is in one, and no chain hides that a header forgets an include."""

import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("header_chains.py")


def chains_of(files, checked=None):
    """The chains for a tree of files, {name: text}; each as its headers in order."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        names = [f"src/{name}" for name in checked or files]
        written = subprocess.run(
            [sys.executable, SCRIPT, "--source", root, "--output", root / "out", *names],
            check=True, capture_output=True, text=True).stdout
        result = []
        for path in written.split(";"):
            lines = pathlib.Path(path).read_text().splitlines()
            assert lines[::2] == lines[1::2], lines  # twice each
            result.append([line.split('"')[1] for line in lines[::2]])
        return result


def including(*names):
    return "#pragma once\n" + "".join(f'#include "{name}"\n' for name in names)


class HeaderChains(unittest.TestCase):
    def test_a_header_comes_after_those_that_it_includes(self):
        files = {"a.hpp": including(), "b/b.hpp": including("a.hpp"), "c.hpp": including("b/b.hpp")}
        self.assertEqual(chains_of(files), [["a.hpp", "b/b.hpp", "c.hpp"]])

    def test_a_header_that_forgets_an_include_is_not_after_it(self):
        files = {"a.hpp": including(), "forgets_a.hpp": including()}
        self.assertEqual(chains_of(files), [["a.hpp"], ["forgets_a.hpp"]])

    def test_what_the_first_includes_counts(self):
        files = {"low.hpp": including(), "a.hpp": including("low.hpp"), "b.hpp": including("a.hpp"),
                 "other.hpp": including("low.hpp")}
        for chain in chains_of(files, checked=["a.hpp", "other.hpp"]):
            self.assertEqual(len(chain), 1)  # a.hpp would hide that other.hpp needs it

    def test_an_include_that_depends_on_a_macro_is_not_relied_on(self):
        inside = "#pragma once\n#ifdef HAS_A\n#include \"a.hpp\"\n#endif\n"
        self.assertEqual(len(chains_of({"a.hpp": including(), "b.hpp": inside})), 2)
        # Nor may it bring what the next one forgets.
        files = {"a.hpp": including(), "b.hpp": inside, "c.hpp": including("b.hpp")}
        self.assertEqual(sorted(chains_of(files, checked=["b.hpp", "c.hpp"])),
                         [["b.hpp"], ["c.hpp"]])

    def test_random_trees(self):
        numbers = random.Random(7)
        for _ in range(20):
            names = [f"h{i}.hpp" for i in range(numbers.randint(1, 30))]
            direct = {name: numbers.sample(names[:i], min(i, numbers.randint(0, 3)))
                      for i, name in enumerate(names)}
            below = {}
            for name in names:
                below[name] = set(direct[name]).union(*(below[each] for each in direct[name]))
            chains = chains_of({name: including(*direct[name]) for name in names})
            self.assertEqual(sorted(sum(chains, [])), sorted(names))
            for chain in chains:
                for i, name in enumerate(chain):
                    before = set(chain[:i]).union(*(below[each] for each in chain[:i]))
                    self.assertLessEqual(before, below[name])


if __name__ == "__main__":
    unittest.main()

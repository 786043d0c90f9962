#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The transcript runner itself: what matches, and that a difference is seen."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import transcript


def run(text, obstacles=()):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "case.txt"
        path.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            wrong = transcript.check(path, dict(os.environ), obstacles)
        return wrong, said.getvalue()


class Matching(unittest.TestCase):
    def test_wildcards(self):
        self.assertTrue(transcript.matches(["a [..] c"], ["a b c"]))
        self.assertFalse(transcript.matches(["a [..] c"], ["a b d"]))
        self.assertFalse(transcript.matches(["a.c"], ["abc"]))
        self.assertTrue(transcript.matches(["a", "...", "z"], ["a", "b", "c", "z"]))
        self.assertTrue(transcript.matches(["a", "...", "z"], ["a", "z"]))
        self.assertFalse(transcript.matches(["a", "..."], ["b"]))
        self.assertFalse(transcript.matches([], ["a"]))

    def test_right_output_and_status(self):
        self.assertEqual(run("$ echo hello; exit 3\n> hello\n? 3\n")[0], 0)

    def test_stderr_counts(self):
        self.assertEqual(run("$ echo oops >&2\n")[0], 1)

    def test_wrong_output_is_shown(self):
        wrong, said = run("$ echo hello\n> good bye\n")
        self.assertEqual(wrong, 1)
        self.assertIn("-good bye", said)
        self.assertIn("+hello", said)

    def test_wrong_status_is_shown(self):
        wrong, said = run("$ exit 4\n")
        self.assertEqual(wrong, 1)
        self.assertIn("exit status 4, expected 0", said)

    def test_steps_share_a_directory(self):
        self.assertEqual(run("$ echo x > file\n$ cat file\n> x\n")[0], 0)

    def test_an_obstacle_skips_unless_it_stands_behind_a_mistake(self):
        named = "$ echo needs a frobnicator\n"
        with self.assertRaises(transcript.Skipped):
            run(named, ["frobnicator"])
        self.assertEqual(run("$ echo hello\n> good bye\n" + named, ["frobnicator"])[0], 2)

    def test_nonsense_is_refused(self):
        with self.assertRaises(SystemExit):
            run("hello\n")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test_summary.py counts GoogleTest cases, other tests, crashes and sanitizer reports."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape

TRANSCRIPT = Path(__file__).resolve().parents[1] / "cli" / "transcript.py"
SUMMARY = Path(__file__).resolve().parents[2] / "scripts" / "test_summary.py"

PASSING = "[==========] 5 tests from 1 test suite ran.\n[  PASSED  ] 5 tests.\n"
SKIPPING = ("a_test.cpp:9: Skipped\nneeds two cores\n[  SKIPPED ] A.B (0 ms)\n"
            "[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n")
FAILING = ("[  FAILED  ] A.C (1 ms)\n[  PASSED  ] 3 tests.\n"
           "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.C\n")


def summary(*cases, options=()):
    """Runs the summary over one ctest file of (name, status, output)."""
    rows = "".join(
        f'<testcase name="{name}" status="{status}">'
        f"<system-out>{escape(output)}</system-out>"
        + ('<skipped message="SKIP_RETURN_CODE=77"/>' if status == "notrun" else "") + "</testcase>"
        for name, status, output in cases)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.xml")
        path.write_text(f"<testsuite>{rows}</testsuite>")
        run = subprocess.run([sys.executable, SUMMARY, *options, f"release={path}"],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout.splitlines()


class Summary(unittest.TestCase):
    def test_all_pass(self):
        status, lines = summary(("unit_x", "run", PASSING), ("house_y", "run", "fine"))
        self.assertEqual((status, lines[-1]), (0, "6 passed, 0 failed"))
        self.assertFalse([line for line in lines if line.startswith("skipped")])

    def test_a_case_fails(self):
        status, lines = summary(("unit_x", "fail", FAILING))
        self.assertEqual((status, lines[-1]), (1, "3 passed, 1 failed"))
        self.assertIn("FAILED   release: unit_x: A.C", lines)

    def test_a_crash_counts_once(self):
        status, lines = summary(("unit_x", "fail", "[ RUN      ] A.B\n"))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))
        self.assertIn("FAILED   release: unit_x: in A.B", lines)

    def test_a_crash_between_cases_is_of_none(self):
        _, lines = summary(("unit_x", "fail", "[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n"))
        self.assertIn("FAILED   release: unit_x", lines)

    def test_a_sanitizer_report_after_passing_cases_fails(self):
        status, lines = summary(("unit_x", "fail", PASSING + "ERROR: LeakSanitizer\n"))
        self.assertEqual((status, lines[-1]), (1, "5 passed, 1 failed"))

    def test_skips_are_told_with_their_reason(self):
        status, lines = summary(("unit_x", "run", SKIPPING))
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
        self.assertIn("skipped  release: unit_x: needs two cores", lines)
        self.assertIn("release  2 passed, 0 failed, 1 skipped", lines)

    def test_where_tests_have_to_run_a_skip_fails(self):
        must_run = ("--must-run", "(^|_)nic(_|$)")
        status, lines = summary(("nic_job", "run", SKIPPING), options=must_run)
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed"))
        self.assertIn("FAILED   release: nic_job: skipped, and has to run here: needs two cores",
                      lines)
        status, lines = summary(("net_nic_commands", "notrun", "skipped: needs root\n"),
                                ("unit_x", "run", PASSING), options=must_run)
        self.assertEqual((status, lines[-1]), (1, "5 passed, 1 failed"))
        reason = "skipped, and has to run here: needs root"
        self.assertIn(f"FAILED   release: net_nic_commands: {reason}", lines)
        status, lines = summary(("unit_x", "run", SKIPPING), options=must_run)
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))

    def test_a_program_that_skips_some_and_fails_in_others_fails(self):
        status, lines = summary(("nic_job", "fail", SKIPPING.replace("[  PASSED  ]", FAILING, 1)))
        self.assertEqual(status, 1)
        self.assertIn("FAILED   release: nic_job: A.C", lines)

    def test_the_reason_of_a_skipped_program_is_told(self):
        status, lines = summary(("net_hosts_command", "notrun", "skipped: needs root\n"),
                                ("unit_x", "run", PASSING))
        self.assertEqual((status, lines[-1]), (0, "5 passed, 0 failed"))
        self.assertIn("skipped  release: net_hosts_command: needs root", lines)

    def test_no_word_in_the_output_decides_that_a_test_was_skipped(self):
        root = SUMMARY.parents[1]
        lists = [root / "CMakeLists.txt", *root.glob("test/**/CMakeLists.txt")]
        for path in [*lists, *root.glob("cmake/*")]:
            self.assertNotIn("SKIP_REGULAR_EXPRESSION", path.read_text(), path)

    def test_a_transcript_that_meets_an_obstacle_is_skipped_unless_something_is_wrong(self):
        for first, status in [("echo right", 77), ("echo wrong", 1)]:
            with tempfile.TemporaryDirectory() as folder:
                steps = Path(folder, "steps.txt")
                steps.write_text(f"$ {first}\n> right\n$ echo no namespaces here; false\n> ok\n")
                run = subprocess.run(
                    [sys.executable, TRANSCRIPT, "--bin", folder, "--obstacle", "no namespaces",
                     steps], capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, status, run.stdout)

    def test_nothing_ran(self):
        self.assertEqual(summary()[0], 1)


if __name__ == "__main__":
    unittest.main()

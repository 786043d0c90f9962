#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up the results of several ctest runs.

    scripts/test_summary.py NAME=JUNIT.xml [NAME=JUNIT.xml ...]

Counts the cases inside GoogleTest programs, which ctest sees as one test each; any other test
counts as one. Prints what was skipped and why, what failed, and at the end `N passed, N failed`.
Exit status 1 if a test failed or none ran. The output files are those of ctest --output-junit.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field


@dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)
    skips: list = field(default_factory=list)


def last_count(output, what):
    """The number of GoogleTest's closing line `[  PASSED  ] 12 tests`; None without such a line."""
    counts = re.findall(rf"^\[ +{what} +\] (\d+) tests?\b", output, re.M)
    return int(counts[-1]) if counts else None


def add_program(totals, name, output, ok):
    passed = last_count(output, "PASSED")
    failed = last_count(output, "FAILED") or 0
    skipped = last_count(output, "SKIPPED") or 0
    totals.passed += passed
    totals.skipped += skipped
    # A program whose cases pass may still fail, by a leak or a race that a sanitizer reports.
    totals.failed += failed if ok or failed else 1
    if not ok or failed:
        cases = re.findall(r"^\[  FAILED  \] (\S+\.\S+?)(?:,|$| \()", output, re.M)
        totals.failures.append(f"{name}: {', '.join(dict.fromkeys(cases)) or 'see its output'}")
    reasons = dict.fromkeys(re.findall(r"^\S+:\d+: Skipped\n(.+)$", output, re.M))
    totals.skips += [f"{name}: {reason}" for reason in reasons]


def add_run(totals, path):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        if status == "disabled" or case.find("skipped") is not None:
            totals.skipped += 1
            totals.skips.append(f"{name}: {case.find('skipped').get('message') or 'skipped'}")
        elif last_count(output, "PASSED") is not None:
            add_program(totals, name, output, ok=status == "run")
        elif status == "run":
            totals.passed += 1
        else:
            totals.failed += 1
            totals.failures.append(name)


def main(arguments):
    everything = Totals()
    for argument in arguments:
        name, _, path = argument.partition("=")
        run = Totals()
        add_run(run, path)
        print(f"{name:<8} {run.passed} passed, {run.failed} failed, {run.skipped} skipped")
        everything.passed += run.passed
        everything.failed += run.failed
        everything.skipped += run.skipped
        everything.skips += [f"{name}: {s}" for s in run.skips]
        everything.failures += [f"{name}: {f}" for f in run.failures]
    for skip in everything.skips:
        print(f"skipped  {skip}")
    for failure in everything.failures:
        print(f"FAILED   {failure}")
    print(f"{everything.passed} passed, {everything.failed} failed")
    return 1 if everything.failed or not everything.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

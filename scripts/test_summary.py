#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up the results of several ctest runs.

    scripts/test_summary.py [--must-run NAMES] NAME=JUNIT.xml [NAME=JUNIT.xml ...]

Counts the cases inside GoogleTest programs, which ctest sees as one test each; any other test
counts as one. Prints what was skipped and why, what failed, and at the end `N passed, N failed`.
Exit status 1 if a test failed or none ran. With --must-run, a skip of a test whose name
matches counts as failed: where the machine has all that it needs, a skip hides something. The
output files are those of ctest --output-junit.
"""

import argparse
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


def add_skips(totals, name, count, reasons, must_run):
    if must_run and count:
        totals.failed += count
        totals.failures += [f"{name}: skipped, and has to run here: {reason}" for reason in reasons]
        return
    totals.skipped += count
    totals.skips += [f"{name}: {reason}" for reason in reasons]


def add_program(totals, name, output, ok, must_run):
    passed = last_count(output, "PASSED")
    failed = last_count(output, "FAILED") or 0
    skipped = last_count(output, "SKIPPED") or 0
    totals.passed += passed
    # A program whose cases pass may still fail, by a leak or a race that a sanitizer reports.
    totals.failed += failed if ok or failed else 1
    if not ok or failed:
        cases = re.findall(r"^\[  FAILED  \] (\S+\.\S+?)(?:,|$| \()", output, re.M)
        totals.failures.append(f"{name}: {', '.join(dict.fromkeys(cases)) or 'see its output'}")
    reasons = dict.fromkeys(re.findall(r"^\S+:\d+: Skipped\n(.+)$", output, re.M))
    if skipped:
        add_skips(totals, name, skipped, list(reasons) or ["no reason is given"], must_run)


def unfinished(output):
    """The case in which a program of GoogleTest ended, if that was before its last line."""
    begun = re.findall(r"^\[ RUN      \] (\S+)$", output, re.M)
    if not begun or re.search(rf"^\[ .* \] {re.escape(begun[-1])} \(", output, re.M):
        return ""
    return f": in {begun[-1]}"


def reason_of(case, output):
    said = re.findall(r"^skipped: (.+)$", output, re.M)
    skipped = case.find("skipped")
    message = skipped.get("message") if skipped is not None else ""
    return said[-1] if said else message or "skipped"


def add_run(totals, path, names):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        output = case.findtext("system-out") or ""
        must_run = names is not None and re.search(names, name) is not None
        if status == "disabled" or case.find("skipped") is not None:
            add_skips(totals, name, 1, [reason_of(case, output)], must_run)
        elif last_count(output, "PASSED") is not None:
            add_program(totals, name, output, status == "run", must_run)
        elif status == "run":
            totals.passed += 1
        else:
            totals.failed += 1
            totals.failures.append(name + unfinished(output))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--must-run", metavar="NAMES", help="a regular expression")
    parser.add_argument("results", metavar="NAME=JUNIT.xml", nargs="+")
    options = parser.parse_args(arguments)
    everything = Totals()
    for argument in options.results:
        name, _, path = argument.partition("=")
        run = Totals()
        add_run(run, path, options.must_run)
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

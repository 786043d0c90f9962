#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs transcripts: what a person types, and what they see.

    $ unisono show allreduce/ring -n 2     a command, run by bash
    > schedule allreduce [..]              a line of its output; [..] stands for any text
    > ...                                  any number of lines, also none
    ? 2                                    its exit status, 0 if not said
    # a comment

Output is stdout and stderr together. All commands of one transcript share an empty directory, which
they may write to. UNISONO_* variables of the caller are taken away.

usage: transcript.py --bin DIRECTORY [--needs-root] [--obstacle TEXT]... FILE...
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

# The SKIP_RETURN_CODE for ctest: nothing went wrong, but not everything could be run.
SKIPPED = 77


@dataclass
class Step:
    line: int
    command: str
    output: list = field(default_factory=list)
    status: int = 0


def parse(path):
    steps = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("$ "):
            steps.append(Step(number, line[2:]))
        elif not steps:
            sys.exit(f"{path}:{number}: expected a line '$ command' first")
        elif line.startswith("? "):
            steps[-1].status = int(line[2:])
        elif line == ">" or line.startswith("> "):
            steps[-1].output.append(line[2:])
        else:
            sys.exit(f"{path}:{number}: expected '$ ', '> ', '? ' or '#': {line}")
    if not steps:
        sys.exit(f"{path}: holds no command")
    return steps


def line_pattern(expected):
    return ".*".join(re.escape(part) for part in expected.split("[..]"))


def matches(expected, actual):
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else line_pattern(line) + r"\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def run(step, directory, environment):
    done = subprocess.run(
        ["bash", "-c", step.command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout.splitlines()


class Skipped(Exception):
    """The machine does not let it run."""


def check(path, environment, obstacles):
    """The number of steps of a transcript that went wrong. An obstacle that the first of them
    names ends it; behind other mistakes it is a mistake."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="unisono-transcript-") as directory:
        # Not the machine file of the user who runs the test.
        environment = {**environment, "XDG_CACHE_HOME": f"{directory}/cache"}
        for step in parse(path):
            status, output = run(step, directory, environment)
            if status == step.status and matches(step.output, output):
                continue
            for line in output:
                if not wrong and any(obstacle in line for obstacle in obstacles):
                    raise Skipped(line)
            wrong += 1
            print(f"{path}:{step.line}: $ {step.command}")
            if status != step.status:
                print(f"  exit status {status}, expected {step.status}")
            for line in difflib.unified_diff(
                step.output, output, "expected", "actual", lineterm=""
            ):
                print(f"  {line}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where the commands are")
    parser.add_argument("--needs-root", action="store_true", help="run nothing as another user")
    parser.add_argument("--obstacle", action="append", default=[], metavar="TEXT",
                        help="a step that says so cannot run on this machine")
    parser.add_argument("file", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.needs_root and os.geteuid() != 0:
        print("skipped: needs root")
        return SKIPPED
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UNISONO_")}
    environment["PATH"] = f"{arguments.bin.resolve()}:{environment['PATH']}"
    wrong = 0
    for path in arguments.file:
        try:
            wrong += check(path, environment, arguments.obstacle)
        except Skipped as why:
            print(f"skipped: {why}")
            if not wrong:
                return SKIPPED
    if wrong:
        print(f"{wrong} steps differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

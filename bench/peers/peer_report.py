# SPDX-License-Identifier: BSD-3-Clause
"""The common part of the comparisons with other libraries: reading and printing figures."""

import json
import math
import os
import pathlib
import platform
import sys


class Unusable(RuntimeError):
    """A report that cannot be used; the message says why."""


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def read_report(text):
    """The JSON document of `unisono bench` or of a twin, all of whose results have to be right.

    Launchers put their own lines before it."""
    try:
        report = json.loads(text[max(text.find("{"), 0) :])
    except json.JSONDecodeError as error:
        raise Unusable(f"no JSON ({error})") from None
    wrong = sum(cell["wrong"] for cell in report["results"])
    if wrong:
        raise Unusable(f"{wrong} wrong elements in the results")
    return report


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def number(value, width, unit="", digits=2):
    return f"{'-' if value is None else f'{value:.{digits}f}{unit}':>{width}}"


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"processor": names[0] if names else platform.machine(), "cores": os.cpu_count(),
            "usable_cores": len(os.sched_getaffinity(0)),
            "kernel": f"{platform.system()} {platform.release()}"}

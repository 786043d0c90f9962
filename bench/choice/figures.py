# SPDX-License-Identifier: BSD-3-Clause
"""What choice.py has measured: a file that later runs go on with, and what its figures say.

A *job* is one start of the benchmark, which measures all candidates of a collective's cells, one
after another. Its key says which. The times of a cell's candidates are {repetition: us}.
"""

import itertools
import json
import math
import os
import statistics
import time

NEAR = 1.1


class JobFile:
    """The jobs that ended. With a path, they are on disk after each job.

    `within_s` is the time of one run: no job begins that would probably end later."""

    def __init__(self, path, within_s):
        self.path = path
        self.begin_s = time.monotonic()
        self.within_s = within_s
        self.longest_s = 0
        self.is_out_of_time = False
        self.jobs = {}
        self.machine = None
        if path and path.exists():
            kept = json.loads(path.read_text())
            self.jobs, self.machine = kept["jobs"], kept["machine"]

    def times_of(self, key, measure):
        """The job's [[cell, candidate, method, us]], measured now unless it has ended before; None
        if there is no time for it."""
        if key in self.jobs:
            return self.jobs[key]
        start_s = time.monotonic()
        if self.within_s and start_s - self.begin_s + self.longest_s > self.within_s:
            self.is_out_of_time = True
            return None
        times, self.machine = measure()
        self.longest_s = max(self.longest_s, time.monotonic() - start_s)
        self.jobs[key] = times
        self.write()
        return times

    def write(self):
        if not self.path:
            return
        temporary = self.path.with_suffix(".part")
        temporary.write_text(json.dumps({"machine": self.machine, "jobs": self.jobs}) + "\n")
        os.replace(temporary, self.path)


def halves(repetitions):
    """The ways to split the repetitions in two; of an odd number, the second half has one more."""
    for first in itertools.combinations(repetitions, len(repetitions) // 2):
        yield first, [number for number in repetitions if number not in first]


def relative(times):
    """The logarithms of the times over the median candidate's of the same repetition.

    What a machine does for a second meets all candidates of a repetition alike. `times` are
    {name: {repetition: us}}. Returns {name: {repetition: logarithm}} of those that all have."""
    common = sorted(set.intersection(*(set(each) for each in times.values())))
    middle = {number: statistics.median(math.log(each[number]) for each in times.values())
              for number in common}
    return {name: {number: math.log(each[number]) - middle[number] for number in common}
            for name, each in times.items()}


def level(logarithms, numbers):
    return statistics.median(logarithms[number] for number in numbers)


def regret_of(times, chosen):
    """The time of a choice over that of the best candidate.

    Of many candidates that take the same time, one has the least figure by luck, and the regret of
    each other one would be noise. So one half of the repetitions says which candidate is the best,
    and the other half how long it takes. The regret is the geometric mean over all ways to halve
    them. It may be less than 1."""
    logarithms = relative(times)
    numbers = list(logarithms[chosen])
    if len(numbers) < 2:
        return regret_over_luckiest(times, chosen)
    regrets = []
    for pick, check in halves(numbers):
        best = min(logarithms, key=lambda name: level(logarithms[name], pick))
        regrets.append(level(logarithms[chosen], check) - level(logarithms[best], check))
    return math.exp(sum(regrets) / len(regrets))


def regret_over_luckiest(times, chosen):
    """The time of a choice over the least of all: the median of the repetitions."""
    logarithms = relative(times)
    numbers = list(logarithms[chosen])
    least = min(level(each, numbers) for each in logarithms.values())
    return math.exp(level(logarithms[chosen], numbers) - least)


def best_of(times):
    logarithms = relative(times)
    return sorted(times, key=lambda name: level(logarithms[name], list(logarithms[name])))

# SPDX-License-Identifier: BSD-3-Clause
"""Runs methods of PyTorch's own class of tests for back ends, and writes what became of each.

usage: own_classes_run.py BACKEND RANKS RESULTS [METHOD ...]

RESULTS gets a line for each method: its name, passed, skipped or failed, and the last line of why.
The traces of failures go to standard output.
"""

import os
import sys
import tempfile
import unittest

# Decorators of the class leave methods out for back ends that PyTorch does not know. They see gloo;
# the ranks see the back end.
BACKEND, RANKS, RESULTS, *METHODS = sys.argv[1:]
os.environ["BACKEND"] = "gloo"
os.environ["WORLD_SIZE"] = RANKS
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", "120")  # seconds; a hang ends there

import torch  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

torch.set_num_threads(1)  # before a fork there must be no other threads


class LikeGloo(str):
    """A name of a back end of which the methods think that it may be gloo. Some have a branch for
    each back end that they know."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return other == "gloo" or super().__eq__(other)

    def __ne__(self, other):
        return not self == other


class OwnClasses(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # Forked ranks have torch imported already.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Results(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def note(self, test, outcome, why=""):
        last = why.strip().splitlines()[-1] if why.strip() else ""
        print(test.id().rpartition(".")[2], outcome, last, file=self.file, flush=True)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addFailure(self, test, error):
        text = self._exc_info_to_string(error, test)
        print(f"== {test.id()}\n{text}", flush=True)
        self.note(test, "failed", text)

    addError = addFailure


def main():
    distributed_test.BACKEND = LikeGloo(BACKEND)
    for features in distributed_test.DistTestCases.backend_feature.values():
        features.add(BACKEND)
    with tempfile.TemporaryDirectory() as folder, open(RESULTS, "w") as file:
        os.environ["TEMP_DIR"] = folder
        OwnClasses.setUpClass()
        results = Results(file)
        for name in METHODS or unittest.TestLoader().getTestCaseNames(OwnClasses):
            OwnClasses(name).run(results)
        OwnClasses.tearDownClass()


if __name__ == "__main__":
    main()

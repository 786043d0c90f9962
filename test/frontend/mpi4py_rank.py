#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One rank of mpi4py's own tests: writes the outcome of each method to a file.

usage: mpi4py_rank.py TESTS RESULTS MODULE ...

MPI_MODULE in the environment names the module that the tests use, if it is not mpi4py's.
"""

import importlib
import os
import pathlib
import sys
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self, path):
        super().__init__()
        self.file = path.open("w", buffering=1)
        self.outcome = ""

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "passed"

    def stopTest(self, test):
        super().stopTest(test)
        self.file.write(f"{test.id()} {self.outcome}\n")

    def fail(self, test, error):
        self.outcome = "failed"
        sys.stderr.write(f"{test.id()}: {self._exc_info_to_string(error, test)}\n")

    def addError(self, test, err):
        self.fail(test, err)

    def addFailure(self, test, err):
        self.fail(test, err)

    def addSkip(self, test, reason):
        self.outcome = "skipped"

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.fail(test, err)


def main():
    tests, results, *modules = sys.argv[1:]
    sys.path.insert(0, tests)
    MPI = importlib.import_module(os.environ.get("MPI_MODULE", "mpi4py.MPI"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    suite.run(Outcomes(pathlib.Path(results) / str(MPI.COMM_WORLD.Get_rank())))


if __name__ == "__main__":
    main()

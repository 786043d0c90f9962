# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end without destroy_process_group(): no abort, no hang, no lost message, and errors
that name the rank which has left."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NAMED = "1: error that names rank 0: True"
RECEIVED = ["1: received 10", "1: received 1000000"]
NO_TIME, ENOUGH_TIME = "0", "3600"  # seconds; the latter are more than the limit of an operation
# Case: the statuses, the lines that ranks print, whether rank 0 reports a cancelled operation, and
# the time that operations have at the end. None: the operation may have begun or not.
CASES = {
    "completes": ([0, 0], [], False, ENOUGH_TIME),
    "stays": ([0, 0], [NAMED], True, NO_TIME),
    "fails": ([1, 0], [NAMED], True, ENOUGH_TIME),  # which it does not get
    "calls_back": ([0, 0], [NAMED], True, NO_TIME),
    "is_in_a_thread": ([0, 0], [NAMED], None, NO_TIME),
    "waits_in_a_thread": ([0, 0], [NAMED], None, NO_TIME),
    "sends": ([0, 0], RECEIVED, False, ENOUGH_TIME),
    "has_a_pool": ([0, 0], RECEIVED, False, ENOUGH_TIME),
    "receives": ([0, 0], [], False, NO_TIME),
    # The other rank leaves, which ends the operations.
    "has_groups": ([0, 0], [], False, ENOUGH_TIME),
}
IN_PYTHON = ["stays", "is_in_a_thread", "waits_in_a_thread", "sends", "has_a_pool"]
IN_CHILDREN = ["fails", "is_in_a_thread", "waits_in_a_thread", "has_a_pool"]


def run(tmp_path, case, kind, *method):
    """The lines that ranks have printed. On standard error is the expected message, or nothing."""
    _, _, is_cancelled, grace = CASES[case]
    ended = subprocess.run([sys.executable, HERE / "leaving.py", case, tmp_path / "store", grace,
                            *method], text=True, capture_output=True, check=False,
                           env=os.environ | {"TORCH_UNISONO": kind, "OMP_NUM_THREADS": "1"})
    says_so = "rank 0 of 2 ends without destroy_process_group() while" in ended.stderr
    assert is_cancelled in (None, says_so), ended.stderr
    if case != "fails":  # which has the trace of the program's exception
        assert len(ended.stderr.splitlines()) == int(says_so), ended.stderr
    return ended.stdout.splitlines(), ended.stderr


@pytest.mark.parametrize("case, kind", [*((case, "compiled") for case in CASES),
                                        *((case, "python") for case in IN_PYTHON)])
def test_a_rank_leaves(tmp_path, case, kind):
    printed, errors = run(tmp_path, case, kind)
    statuses, lines = CASES[case][:2]
    assert printed[-1:] == [f"statuses {statuses}"], errors
    assert sorted(printed[:-1]) == sorted(lines), errors


@pytest.mark.parametrize(("method", "case", "kind"),
                         list(itertools.product(["fork", "spawn"], IN_CHILDREN,
                                                ["compiled", "python"])))
def test_a_child_of_multiprocessing_leaves(tmp_path, case, kind, method):
    """A forked one runs no functions of atexit, and a spawned one does."""
    printed, errors = run(tmp_path, case, kind, method)
    statuses, lines = CASES[case][:2]
    ends = [f"child: {status}" for status in statuses]
    assert printed[-1:] == ["statuses [0, 0]"], errors
    assert sorted(printed[:-1]) == sorted([*lines, *ends]), errors

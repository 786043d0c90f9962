# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end without destroy_process_group(): no abort, no hang, no lost message, and errors
that name the rank which has left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
NAMED = "1: error that names rank 0: True"
# Case: the statuses, what ranks print, and whether rank 0 says that it cancels an operation; None:
# it may have begun or not.
CASES = {
    "completes": ([0, 0], [], False),
    "stays": ([0, 0], [NAMED], True),
    "fails": ([1, 0], [NAMED], True),
    "calls_back": ([0, 0], [NAMED], True),
    "is_in_a_thread": ([0, 0], [NAMED], None),
    "sends": ([0, 0], ["1: received 10", "1: received 1000000"], False),
    "receives": ([0, 0], [], False),
    "is_a_child": ([0, 0], ["1: received 10", "1: received 1000000", "child: 0", "child: 0"],
                   False),
    # The other rank leaves, which ends the operations.
    "has_groups": ([0, 0], [], False),
}


IN_PYTHON = ["stays", "is_in_a_thread", "sends", "is_a_child"]


@pytest.mark.parametrize("case, kind", [*((case, "compiled") for case in CASES),
                                        *((case, "python") for case in IN_PYTHON)])
def test_a_rank_leaves(tmp_path, case, kind):
    ended = subprocess.run([sys.executable, HERE / "leaving.py", case, tmp_path / "store"],
                           text=True, capture_output=True, check=False,
                           env=os.environ | {"TORCH_UNISONO": kind, "OMP_NUM_THREADS": "1"})
    statuses, lines, is_cancelled = CASES[case]
    printed = ended.stdout.splitlines()
    assert printed[-1:] == [f"statuses {statuses}"], ended.stderr
    assert sorted(printed[:-1]) == sorted(lines), ended.stderr
    says_so = "rank 0 of 2 ends without destroy_process_group() while" in ended.stderr
    assert is_cancelled in (None, says_so), ended.stderr
    if case != "fails":  # which has the trace of the program's exception
        assert len(ended.stderr.splitlines()) == int(says_so), ended.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""Programs for libraries that are built on torch.distributed print what they print with Gloo."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def run(program, backend, *args):
    """The back end and the number of ranks that rank 0 has seen, and the losses of all ranks."""
    ended = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                            "--nproc-per-node", "2", HERE / program, backend, *args],
                           text=True, capture_output=True, check=False,
                           env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    name, ranks, *losses = ended.stdout.split()
    return name, int(ranks), [float(loss) for loss in losses]


@pytest.mark.parametrize("command", [
    ["accelerated.py"], ["lightning_training.py"], ["fabric_training.py"],
    ["deepspeed_training.py", "1"], ["deepspeed_training.py", "2"],
    ["deepspeed_training.py", "3"]], ids=" ".join)
def test_losses_are_those_of_gloo(command):
    program, *args = command
    name, ranks, ours = run(program, "unisono", *args)
    assert (name, ranks) == ("unisono", 2)
    assert len(ours) >= 20
    assert sum(ours[-8:]) < sum(ours[:8])
    assert ours == pytest.approx(run(program, "gloo", *args)[2], rel=1e-4)

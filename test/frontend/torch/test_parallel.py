# SPDX-License-Identifier: BSD-3-Clause
"""Programs of users of torch.distributed give the same numbers as with Gloo."""

import library_programs
import model_programs
import programs
import pytest
import torch
import tutorial_programs
from jobs import run


# Gradients that are rounded after each addition depend on the order of additions.
TOLERANCE = {"compressed_gradients": 1e-2, "halves_as_gradients": 1e-2}


def compare(ours, theirs, tolerance=1e-4):
    for got, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(torch.tensor(got, dtype=torch.float64),
                                   torch.tensor(expected, dtype=torch.float64),
                                   rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("program", [*programs.ALL, *library_programs.ALL,
                                     *tutorial_programs.ALL, *model_programs.ALL],
                         ids=lambda program: program.__name__)
def test_numbers_are_those_of_gloo(tmp_path, program):
    ours = run(program, tmp_path, 4)
    theirs = run(program, tmp_path, 4, backend="gloo")
    compare(ours, theirs, TOLERANCE.get(program.__name__, 1e-4))


def test_eight_ranks(tmp_path):
    ours = run(programs.two_dimensions, tmp_path, 8)
    theirs = run(programs.two_dimensions, tmp_path, 8, backend="gloo")
    compare(ours, theirs)

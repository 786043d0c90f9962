# SPDX-License-Identifier: BSD-3-Clause
"""The pages about Python tell the truth: their programs run on two ranks, and their transcripts
print what they say. test/house/readme_test.py reads the blocks and says what they may be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path += [str(TOP / "test" / "house"), str(TOP / "test" / "cli")]
from readme_test import PAGES_OF_PYTHON, blocks, commands  # noqa: E402
from transcript import matches  # noqa: E402

PROGRAMS = ["README.md", "frontend/python/README.md", "docs/howto/use-from-python.md",
            *PAGES_OF_PYTHON]
RANKS = 2


def found_in(pages, language):
    found = [pytest.param(body, id=f"{page}:{line}") for page in pages
             for line, _, body in blocks((TOP / page).read_text(), language)
             if "import torch" not in body]  # those are run by test/frontend/torch
    assert found
    return found


def run(*command):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(command, cwd=TOP, text=True, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, env=os.environ | {"PATH": path})


@pytest.mark.parametrize("program", found_in(PROGRAMS, "python"))
def test_programs_run(program, tmp_path):
    source = tmp_path / "program.py"
    source.write_text(program)
    under_tool = ["-m", "unisono", "run", "-n", str(RANKS), sys.executable]
    ended = run(sys.executable, *([] if "spawn(" in program else under_tool), source)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("transcript", found_in(PAGES_OF_PYTHON, "console"))
def test_transcripts(transcript):
    for command, expected in commands(transcript):
        ended = run("sh", "-c", command)
        assert ended.returncode == 0, ended.stdout
        assert matches(expected, ended.stdout.splitlines()), ended.stdout

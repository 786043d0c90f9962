# SPDX-License-Identifier: BSD-3-Clause
"""The pages about PyTorch tell the truth: their programs run under torchrun on two ranks, and their
transcripts print what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path += [str(TOP / "test" / "house"), str(TOP / "test" / "cli")]
from readme_test import PAGES_OF_TORCH, blocks, commands  # noqa: E402
from transcript import matches  # noqa: E402

PAGES = [*PAGES_OF_TORCH, "frontend/torch/README.md", "README.md"]


def found_in(language):
    found = [pytest.param(body, id=f"{page}:{line}") for page in PAGES
             for line, _, body in blocks((TOP / page).read_text(), language)
             if "torch" in body]
    assert found
    return found


def run(*command):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(command, cwd=TOP, text=True, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT,
                          env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"})


@pytest.mark.parametrize("program", found_in("python"))
def test_programs_run(program, tmp_path):
    source = tmp_path / "program.py"
    source.write_text(program)
    ended = run("torchrun", "--standalone", "--nproc-per-node", "2", str(source))
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("transcript", found_in("console"))
def test_transcripts(transcript):
    printed = []
    for command, expected in commands(transcript):
        ended = run("sh", "-c", command)
        assert ended.returncode == 0, ended.stdout
        # Gloo of an older torch tells of its connections, all ranks at once.
        lines = [line for line in ended.stdout.splitlines()
                 if "[Gloo]" not in line and "peer ranks" not in line]
        assert matches(expected, lines), ended.stdout
        printed.append("\n".join(lines))
    assert len(set(printed)) == 1  # the back end changes nothing

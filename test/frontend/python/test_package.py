# SPDX-License-Identifier: BSD-3-Clause
"""The package as it is installed: its types, its tool, and what an import brings in."""

import importlib.metadata
import subprocess
import sys

import unisono


def ask(program):
    return subprocess.run([sys.executable, "-c", program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def test_types_are_complete():
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null",
                              "-p", "unisono"], text=True, check=False, stdout=subprocess.PIPE)
    assert checked.returncode == 0, checked.stdout


def test_every_name_is_there():
    assert all(getattr(unisono, name) is not None for name in unisono.__all__)


def test_versions_agree():
    assert unisono.__version__ == importlib.metadata.version("unisono")
    tool = subprocess.run([sys.executable, "-m", "unisono", "--version"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    assert unisono.__version__ in tool


def test_an_import_is_small():
    heavy = "{'asyncio', 'multiprocessing', 'numpy', 'torch'}"
    assert ask(f"import sys, unisono; print({heavy} & set(sys.modules))") == "set()"
    assert ask("import unisono; print(unisono.spawn.__module__)") == "unisono._spawn"

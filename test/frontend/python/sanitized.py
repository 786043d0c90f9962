#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of the Python front ends under the address or the thread sanitizer.

usage: sanitized.py --environment DIRECTORY --prefix BUILD --compiler CLANG --sanitizer NAMES
                    --folder DIRECTORY [--torch] TEST ...

BUILD is a build tree with that sanitizer. Compiles frontend/python into `folder`, beside the
package of the environment that scripts/python_environment.py has made. The interpreter has no
sanitizer, so the sanitizer's runtime is preloaded. A report ends the process that it is about, and
so fails the test; leaks are not reported. The thread sanitizer sees the locks of Python, and its
memory only in functions that it intercepts, so nothing of Python's has to be suppressed. With
--torch also compiles frontend/torch; torch itself has no sanitizer, as the interpreter. Ends with
77 (skipped) and the reason without the environment. Standard library only.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
SKIPPED = 77
OPTIONS = {
    # Python never frees some of its memory. NumPy may ask for more than there is, and then takes
    # null as of malloc.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # In a child of a process with threads it sees nothing; the child's first thread ends it.
    "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=1",
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout.strip()


def build(source, build_folder, python, options, environment, *definitions):
    flags = f"-fsanitize={options.sanitizer} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"
    run("cmake", "-S", source, "-B", build_folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_C_COMPILER={options.compiler.replace('clang++', 'clang')}",
        f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DCMAKE_MODULE_LINKER_FLAGS=-fsanitize={options.sanitizer} -shared-libsan",
        f"-DCMAKE_CXX_COMPILER_LAUNCHER={options.launcher}",
        f"-DPython_EXECUTABLE={python}", *definitions, env=environment)
    run("cmake", "--build", build_folder, env=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environment", type=Path, required=True)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--launcher", default="", help="of the compiler, for instance ccache")
    parser.add_argument("--sanitizer", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--torch", action="store_true", help="also frontend/torch")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    if not (options.environment / "wheel.stamp").is_file():
        print(f"skipped: {options.environment} is not complete; scripts/python_environment.py "
              "makes it, and needs a package index (pip)")
        return SKIPPED
    python = options.environment.absolute() / "bin" / "python"
    folder = options.folder.resolve()
    package = folder / "site" / "unisono"
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UNISONO_", "OMPI_", "PMI", "SLURM_", "PYTHON"))}
    installed = Path(run(python, "-c", "import unisono; print(unisono.__path__[0])"))
    shutil.rmtree(folder / "site", ignore_errors=True)
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("_native.*so", "_c10d.*so"))
    # The tool stays the installed one: it holds a library of its own.
    shutil.copy(options.prefix / "lib" / "libunisono.so.0", package / "lib")
    # Under a sanitizer the build has no tool.
    prefix = folder / "prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.mkdir(parents=True)
    for name, target in (("bin", package / "bin"), ("lib", package / "lib"),
                         ("include", options.prefix.resolve() / "include")):
        (prefix / name).symlink_to(target)
    nanobind = run(python, "-m", "nanobind", "--cmake_dir")
    build(TOP / "frontend" / "python", folder / "python", python, options, environment,
          f"-DUNISONO_PREFIX={prefix}", f"-Dnanobind_DIR={nanobind}")
    environment["PYTHONPATH"] = str(folder / "site")  # where frontend/torch finds the library, too
    modules = [("python", "_native")]
    if options.torch:
        build(TOP / "frontend" / "torch", folder / "torch", python, options, environment)
        modules.append(("torch", "torch/_c10d"))
    for front_end, module in modules:
        run("cmake", "--install", folder / front_end, "--component", "python", "--prefix",
            folder / "built")
        found = list((folder / "built" / "unisono").glob(f"{module}.*so"))
        assert len(found) == 1, found
        shutil.copy(found[0], package / Path(module).parent)
    runtime = "tsan" if options.sanitizer == "thread" else "asan"
    preloaded = run(options.compiler, f"-print-file-name=libclang_rt.{runtime}-x86_64.so")
    for name, value in OPTIONS.items():
        symbolizer = [f"external_symbolizer_path={path}"
                      for path in [shutil.which("llvm-symbolizer-19")] if path]
        environment[name] = ":".join([value, *symbolizer])
    where = run(python, "-c", "import unisono._native; print(unisono._native.__file__)",
                env=environment | {"LD_PRELOAD": preloaded})
    assert Path(where).parent == package, where
    return subprocess.run([python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                           *options.tests], check=False,
                          env=environment | {"LD_PRELOAD": preloaded, "OMP_NUM_THREADS": "1",
                                             "PYTHONDONTWRITEBYTECODE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""Prints the preprocessor's definitions for a module that this Python's torch loads, as a list of
CMake: its version, and how torch itself was compiled. pybind11 knows torch's types in the module,
and the linker its functions, only if these agree. Newer
ones do not ask."""

from importlib.metadata import version

import torch

definitions = {"UNISONO_TORCH_VERSION": f'"{version("torch")}"',
               "_GLIBCXX_USE_CXX11_ABI": int(torch._C._GLIBCXX_USE_CXX11_ABI)}
for name in ("PYBIND11_COMPILER_TYPE", "PYBIND11_STDLIB", "PYBIND11_BUILD_ABI"):
    if value := getattr(torch._C, f"_{name}", None):
        definitions[name] = f'"{value}"'
print(*(f"{name}={value}" for name, value in definitions.items()), sep=";")

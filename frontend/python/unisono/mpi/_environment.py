# SPDX-License-Identifier: BSD-3-Clause
"""Where a rank runs, what the module says of itself, and factors for grids of ranks."""

import hashlib
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Union

import numpy

from ._errors import ERR_ARG, Exception

_PAGE = "docs/howto/use-from-python.md#programs-written-for-mpi4py"


def missing(name: str) -> str:
    """The message about a name that mpi4py may have."""
    return (f"{name} is no part of unisono.mpi, which has collectives only: no messages between "
            f"two ranks, topologies, windows and files; see {_PAGE}")


def reduced(one: Any, module: dict[str, Any], *names: str) -> Union[str, tuple[Any, ...]]:
    """How a predefined object of a module is pickled: by its name. Copies name their original."""
    for name in names:
        if module[name] is one:
            return name
    for name in names:
        if module[name] == one:
            return type(one), (module[name],)
    raise ValueError(f"only predefined objects can be pickled; this is another "
                     f"{type(one).__name__}")


def own_host() -> Any:
    """Bytes that the ranks of one host have alike: of its kernel and its network namespace. Hosts
    may share a name."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    network = os.stat("/proc/thread-self/ns/net")
    fact = f"{boot} {network.st_dev} {network.st_ino}".encode()
    return numpy.frombuffer(hashlib.sha256(fact).digest(), numpy.uint8)


def _prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors + [number] * (number > 1)


def Compute_dims(nnodes: int, dims: Union[int, Sequence[int]]) -> list[int]:
    """Extents of a grid of nnodes ranks, as equal as factors allow, those at entries of 0 falling.

    Other entries of dims are kept.
    """
    found = [0] * dims if isinstance(dims, int) else list(dims)
    fixed = 1
    for extent in found:
        fixed *= extent or 1
    if nnodes < 1 or fixed < 1 or nnodes % fixed:
        raise Exception(ERR_ARG, f"{nnodes} ranks are no multiple of the extents {found}")
    free = [1] * found.count(0)
    rest = nnodes // fixed
    if not free:
        if rest != 1:
            raise Exception(ERR_ARG, f"{nnodes} ranks do not fill the extents {found}")
        return found
    for factor in reversed(_prime_factors(rest)):
        free[free.index(min(free))] *= factor
    falling = iter(sorted(free, reverse=True))
    return [extent or next(falling) for extent in found]

# SPDX-License-Identifier: BSD-3-Clause
"""Collective communication between processes, on arrays of NumPy, PyTorch and others.

    import numpy, unisono
    with unisono.init() as comm:
        total = comm.allreduce(numpy.arange(4.0))

Start programs with `python -m unisono run -n 4 python program.py`, mpirun, srun or torchrun, or
call `unisono.spawn(function, ranks=4)`. Every collective has three forms: `allreduce(...)` waits,
`allreduce_start(...)` returns a Request, and `allreduce_plan(...)` returns a Plan.
"""

import atexit
from typing import TYPE_CHECKING, Any, Final

from . import _native
from ._errors import (ArgumentError, CancelledError, DatatypeError, Error, MismatchError,
                      PeerArgumentError, RankLostError, ResourcesError, StateError, SystemFailure,
                      TimeoutError, UnsupportedError)
from ._native import Communicator, Plan, RankState, Request, init, init_with
from ._operators import Op

if TYPE_CHECKING:
    from ._spawn import SpawnError, spawn

__version__: Final = _native.version()


class _InPlace:
    """Stands for `send`: the input then lies in `recv`. At a scatter's root: for `recv`."""

    def __repr__(self) -> str:
        return "unisono.IN_PLACE"

    def __reduce__(self) -> str:
        """Copies are the same object, also in another process."""
        return "IN_PLACE"


IN_PLACE: Final = _InPlace()
_native.set_in_place(IN_PLACE)
# Other ranks learn at once that this one has ended, and no operation writes to memory that is gone.
atexit.register(_native.end_of_interpreter)


def __getattr__(name: str) -> Any:
    """spawn() needs modules that take longer to import than all else here, so they come with it."""
    if name in ("SpawnError", "spawn"):
        from . import _spawn
        return getattr(_spawn, name)
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")


__all__ = [
    "IN_PLACE", "ArgumentError", "CancelledError", "Communicator", "DatatypeError", "Error",
    "MismatchError", "Op", "PeerArgumentError", "Plan", "RankLostError", "RankState",
    "Request", "ResourcesError", "SpawnError", "StateError", "SystemFailure", "TimeoutError",
    "UnsupportedError", "init", "init_with", "spawn",
]

# SPDX-License-Identifier: BSD-3-Clause
"""The collectives of mpi4py, by Unisono: `from unisono import mpi as MPI`.

    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)
    names = comm.allgather(name)

The import joins the job, as that of mpi4py.MPI does; without a launcher it has one rank. Methods of
upper case take mpi4py's buffer specifications, those of lower case Python objects. Messages between
two ranks, topologies, windows and files are not part of it.
"""

import socket
import threading
import time
from typing import TYPE_CHECKING, Final

from .. import _native
from . import _datatypes, _errors
from ._calls import IN_PLACE
from ._attributes import KEYVAL_INVALID, TAG_UB, WTIME_IS_GLOBAL
from ._communicators import COMM_NULL, COMM_SELF, COMM_TYPE_SHARED, COMM_WORLD, Comm, Intracomm
from ._datatypes import *  # noqa: F403 (the names of datatypes)
from ._datatypes import _typedict  # noqa: F401 (as in mpi4py)
from ._environment import Compute_dims, missing
from ._errors import *  # noqa: F403 (the names of error classes)
from ._groups import (CONGRUENT, GROUP_EMPTY, GROUP_NULL, IDENT, PROC_NULL, SIMILAR, UNDEFINED,
                      UNEQUAL, Group)
from ._infos import INFO_ENV, INFO_NULL, MAX_INFO_KEY, MAX_INFO_VAL, Info
from ._messages import BOTTOM, Get_address
from ._objects import Pickle
from ._objects import of_job as pickle
from ._operators import (BAND, BOR, BXOR, LAND, LOR, LXOR, MAX, MAXLOC, MIN, MINLOC, NO_OP, OP_NULL,
                         PROD, REPLACE, SUM, Op)
from ._requests import REQUEST_NULL, Prequest, Request, Status

# The version of MPI's standard in which the collectives have these names.
VERSION: Final = 4
SUBVERSION: Final = 0
MAX_PROCESSOR_NAME: Final = 256
MAX_ERROR_STRING: Final = 512
MAX_OBJECT_NAME: Final = 128
THREAD_SINGLE: Final = 0
THREAD_FUNNELED: Final = 1
THREAD_SERIALIZED: Final = 2
THREAD_MULTIPLE: Final = 3

ROOT: Final = -3
ANY_SOURCE: Final = -1
ANY_TAG: Final = -1
APPNUM: Final = KEYVAL_INVALID


def Init() -> None:
    """The import has done it."""


def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """The import has done it."""
    return THREAD_MULTIPLE


def Is_initialized() -> bool:
    return True


def Is_thread_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def Is_finalized() -> bool:
    return not COMM_WORLD.unisono.is_open


def Finalize() -> None:
    """Ends this rank's part in the job. The end of the interpreter does it as well."""
    COMM_WORLD.unisono.close()
    _native.close_all()


def Query_thread() -> int:
    """Threads may use different communicators at once, and one at a time each of them."""
    return THREAD_MULTIPLE


def Get_version() -> tuple[int, int]:
    """The version of MPI's standard in which the collectives have these names."""
    return VERSION, SUBVERSION


def Get_library_version() -> str:
    return f"Unisono {_native.version()}"


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    major, minor, patch = (int(number) for number in _native.version().split("."))
    return "Unisono", (major, minor, patch)


def Get_processor_name() -> str:
    return socket.gethostname()


def Wtime() -> float:
    """Seconds since some time in the past, on this host."""
    return time.monotonic()


def Wtick() -> float:
    return time.get_clock_info("monotonic").resolution


if not TYPE_CHECKING:
    def __getattr__(name):
        raise AttributeError(missing(f"unisono.mpi.{name}"))


__all__ = [
    "GROUP_EMPTY", "GROUP_NULL", "Group", "MAX_INFO_KEY", "MAX_INFO_VAL",
    "COMM_TYPE_SHARED", "CONGRUENT", "Compute_dims", "IDENT", "INFO_ENV", "INFO_NULL", "Info",
    "MAX_ERROR_STRING", "MAX_OBJECT_NAME", "MAX_PROCESSOR_NAME", "Pickle", "SIMILAR", "SUBVERSION",
    "TAG_UB", "UNEQUAL", "VERSION", "WTIME_IS_GLOBAL", "pickle",
    "ANY_SOURCE", "ANY_TAG", "APPNUM", "BAND", "BOR", "BOTTOM", "BXOR", "COMM_NULL",
    "COMM_SELF", "COMM_WORLD", "Comm", "Finalize", "Get_address", "Get_library_version",
    "Get_processor_name", "Get_version", "IN_PLACE", "Init", "Init_thread", "Intracomm",
    "Is_finalized", "KEYVAL_INVALID", "Is_initialized", "Is_thread_main", "LAND", "LOR", "LXOR",
    "MAX", "MAXLOC", "MIN", "MINLOC", "NO_OP", "OP_NULL", "Op", "PROC_NULL", "PROD", "Prequest",
    "Query_thread", "REPLACE", "REQUEST_NULL", "ROOT", "Request", "SUM", "Status",
    "THREAD_FUNNELED", "THREAD_MULTIPLE", "THREAD_SERIALIZED", "THREAD_SINGLE", "UNDEFINED",
    "Wtick", "Wtime", "get_vendor",
]
__all__ += _datatypes.__all__
__all__ += _errors.__all__

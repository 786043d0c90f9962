# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions, one for each error code of the library."""

import builtins
from typing import Optional


class Error(Exception):
    """An error of Unisono. After an error of a collective its communicator has failed.

    `code` is the library's number. `rank` is the rank that is named as the cause, of the
    communicator on which the call failed, or None.
    """

    code: int = 0

    def __init__(self, message: str, rank: Optional[int] = None) -> None:
        super().__init__(message)
        self.rank = rank


class ArgumentError(Error, ValueError):
    """An argument of this rank is invalid."""

    code = 1


class DatatypeError(Error, TypeError):
    """A datatype or an operator is unknown, or they do not fit."""

    code = 2


class StateError(Error):
    """A communicator, request or plan has ended, is in use, or belongs to another process."""

    code = 3


class MismatchError(Error):
    """The ranks called different things."""

    code = 4


class RankLostError(Error):
    """A rank has died, is stopped or silent, or has left."""

    code = 5


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 (the name is that of the code)
    """A deadline has passed."""

    code = 6


class ResourcesError(Error):
    """There is no more memory, or a limit is reached."""

    code = 7


class SystemFailure(Error, OSError):
    """A system call has failed."""

    code = 8


class UnsupportedError(Error, NotImplementedError):
    """A valid request that is not available here."""

    code = 9


class PeerArgumentError(Error):
    """Another rank has passed an invalid argument."""

    code = 10


class CancelledError(Error):
    """A rank has cancelled the operation."""

    code = 11


_CLASSES: list[type[Error]] = [ArgumentError, DatatypeError, StateError, MismatchError,
                               RankLostError, TimeoutError, ResourcesError, SystemFailure,
                               UnsupportedError, PeerArgumentError, CancelledError]
_BY_CODE = {kind.code: kind for kind in _CLASSES}


def make(code: int, message: str, rank: int) -> Error:
    """The exception of a code, for the extension module. A rank below 0: none is known."""
    return _BY_CODE.get(code, Error)(message, rank if rank >= 0 else None)

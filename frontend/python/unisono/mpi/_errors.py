# SPDX-License-Identifier: BSD-3-Clause
"""MPI's error classes, and the exception that carries one."""

from typing import Final

from .. import _errors as native

SUCCESS: Final = 0
ERR_BUFFER: Final = 1
ERR_COUNT: Final = 2
ERR_TYPE: Final = 3
ERR_COMM: Final = 5
ERR_RANK: Final = 6
ERR_ROOT: Final = 7
ERR_GROUP: Final = 8
ERR_OP: Final = 9
ERR_ARG: Final = 12
ERR_UNKNOWN: Final = 13
ERR_TRUNCATE: Final = 14
ERR_OTHER: Final = 15
ERR_INTERN: Final = 16
ERR_PENDING: Final = 18
ERR_REQUEST: Final = 19
ERR_INFO: Final = 28
ERR_INFO_KEY: Final = 29
ERR_INFO_VALUE: Final = 30
ERR_INFO_NOKEY: Final = 31
ERR_KEYVAL: Final = 48
ERR_NO_MEM: Final = 34
ERR_UNSUPPORTED_OPERATION: Final = 44
ERR_PROC_FAILED: Final = 54
ERR_REVOKED: Final = 56

_TEXTS: Final = {
    SUCCESS: "no error", ERR_BUFFER: "invalid buffer", ERR_COUNT: "invalid count",
    ERR_TYPE: "invalid datatype", ERR_COMM: "invalid communicator", ERR_RANK: "invalid rank",
    ERR_ROOT: "invalid root", ERR_GROUP: "invalid group", ERR_OP: "invalid operator",
    ERR_ARG: "invalid argument", ERR_UNKNOWN: "unknown error", ERR_TRUNCATE: "message truncated",
    ERR_OTHER: "another error", ERR_INTERN: "internal error", ERR_PENDING: "pending request",
    ERR_REQUEST: "invalid request", ERR_INFO: "invalid info", ERR_INFO_KEY: "invalid info key",
    ERR_INFO_VALUE: "invalid info value", ERR_INFO_NOKEY: "no such info key",
    ERR_KEYVAL: "invalid keyval", ERR_NO_MEM: "out of resources",
    ERR_UNSUPPORTED_OPERATION: "unsupported operation", ERR_PROC_FAILED: "a rank is lost",
    ERR_REVOKED: "the communicator has been cancelled",
}

_CLASSES: Final[dict[type[native.Error], int]] = {
    native.ArgumentError: ERR_ARG, native.DatatypeError: ERR_TYPE, native.StateError: ERR_COMM,
    native.MismatchError: ERR_TRUNCATE, native.RankLostError: ERR_PROC_FAILED,
    native.TimeoutError: ERR_PENDING, native.ResourcesError: ERR_NO_MEM,
    native.SystemFailure: ERR_OTHER, native.UnsupportedError: ERR_UNSUPPORTED_OPERATION,
    native.PeerArgumentError: ERR_OTHER, native.CancelledError: ERR_REVOKED,
}


def Get_error_string(code: int) -> str:
    return _TEXTS.get(code, _TEXTS[ERR_UNKNOWN])


def Get_error_class(code: int) -> int:
    return code if code in _TEXTS else ERR_UNKNOWN


class Exception(RuntimeError):  # noqa: A001 (the name is mpi4py's)
    """An error of a call, with MPI's class of it.

    `rank` is the rank that is the cause, as far as it is known. The cause (`__cause__`) is the
    exception of the package unisono, if there is one.
    """

    def __init__(self, ierr: int = SUCCESS, text: str = "", rank: "int | None" = None) -> None:
        super().__init__(ierr, text)
        self.ierr = ierr
        self.rank = rank
        self._text = text

    def Get_error_code(self) -> int:
        return self.ierr

    def Get_error_class(self) -> int:
        return Get_error_class(self.ierr)

    def Get_error_string(self) -> str:
        return self._text or Get_error_string(self.ierr)

    @property
    def error_code(self) -> int:
        return self.ierr

    @property
    def error_class(self) -> int:
        return self.Get_error_class()

    @property
    def error_string(self) -> str:
        return self.Get_error_string()

    def __int__(self) -> int:
        return self.ierr

    def __bool__(self) -> bool:
        return self.ierr != SUCCESS

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Exception):
            return self.ierr == other.ierr
        return self.ierr == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.ierr)

    def __str__(self) -> str:
        return self.Get_error_string()


class Errhandler:
    """The way in which a program wants its errors. Here each error is an exception."""

    def __init__(self, name: str = "ERRHANDLER_NULL") -> None:
        self._name = name

    def Free(self) -> None:
        """Frees nothing."""

    def free(self) -> None:
        """Frees nothing."""

    def __bool__(self) -> bool:
        return self._name != "ERRHANDLER_NULL"

    def __repr__(self) -> str:
        return f"unisono.mpi.{self._name}"


ERRHANDLER_NULL: Final = Errhandler()
ERRORS_RETURN: Final = Errhandler("ERRORS_RETURN")
ERRORS_ABORT: Final = Errhandler("ERRORS_ABORT")
ERRORS_ARE_FATAL: Final = Errhandler("ERRORS_ARE_FATAL")


def of_native(error: native.Error) -> Exception:
    return Exception(_CLASSES.get(type(error), ERR_UNKNOWN), str(error), error.rank)


__all__ = [
    "SUCCESS", "ERR_BUFFER", "ERR_COUNT", "ERR_TYPE", "ERR_COMM", "ERR_RANK", "ERR_ROOT",
    "ERR_GROUP", "ERR_OP", "ERR_ARG", "ERR_UNKNOWN", "ERR_TRUNCATE", "ERR_OTHER", "ERR_INTERN",
    "ERR_PENDING", "ERR_REQUEST", "ERR_INFO", "ERR_INFO_KEY", "ERR_INFO_NOKEY",
    "ERR_INFO_VALUE", "ERR_KEYVAL", "ERR_NO_MEM", "ERR_UNSUPPORTED_OPERATION", "ERR_PROC_FAILED",
    "ERR_REVOKED", "ERRHANDLER_NULL", "ERRORS_ABORT", "ERRORS_ARE_FATAL", "ERRORS_RETURN",
    "Errhandler", "Exception", "Get_error_class", "Get_error_string",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Attributes: values that a program keeps with a communicator, under keys of its own."""

import itertools
from typing import Any, Callable, Final, Optional, Union

from ._errors import ERR_KEYVAL, Exception

KEYVAL_INVALID: Final = -1
TAG_UB: Final = 1
WTIME_IS_GLOBAL: Final = 2
_PREDEFINED: Final = {TAG_UB: 2**31 - 1, WTIME_IS_GLOBAL: False}
_FIRST_OWN: Final = 100

CopyFunction = Union[None, bool, Callable[[Any, int, Any], Any]]
DeleteFunction = Optional[Callable[[Any, int, Any], None]]

_numbers = itertools.count(_FIRST_OWN)
_functions: dict[int, tuple[CopyFunction, DeleteFunction]] = {}  # by key


def create_key(copy_fn: CopyFunction, delete_fn: DeleteFunction) -> int:
    key = next(_numbers)
    _functions[key] = copy_fn, delete_fn
    return key


def free_key(key: int) -> int:
    """Attributes that exist stay, with their functions, as in MPI."""
    _require(key)
    return KEYVAL_INVALID


def _require(key: int) -> None:
    if key not in _functions:
        raise Exception(ERR_KEYVAL, f"{key} is no key of Create_keyval")


class Attributes:
    """Those of one communicator."""

    def __init__(self) -> None:
        self._values: dict[int, Any] = {}

    def get(self, key: int) -> Any:
        return _PREDEFINED[key] if key in _PREDEFINED else self._values.get(key)

    def set(self, comm: Any, key: int, value: Any) -> None:
        _require(key)
        if key in self._values:
            self.delete(comm, key)
        self._values[key] = value

    def delete(self, comm: Any, key: int) -> None:
        _require(key)
        if key not in self._values:
            raise Exception(ERR_KEYVAL, f"the communicator has no attribute {key}")
        if (delete_fn := _functions[key][1]) is not None:
            delete_fn(comm, key, self._values[key])
        del self._values[key]

    def delete_all(self, comm: Any) -> None:
        for key in reversed(list(self._values)):
            self.delete(comm, key)

    def copied_to(self, comm: Any, made: "Attributes") -> None:
        """For Dup: what the copy function of each key returns, unless that is NotImplemented. If it
        is True, the value itself."""
        for key, value in self._values.items():
            copy_fn = _functions[key][0]
            if not copy_fn:
                continue
            copied = value if copy_fn is True else copy_fn(comm, key, value)
            if copied is not NotImplemented:
                made._values[key] = copied

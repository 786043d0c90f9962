# SPDX-License-Identifier: BSD-3-Clause
"""Info: hints that a program gives. They are kept, and nothing reads them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Optional, TypeVar, Union

from ._environment import reduced
from ._errors import ERR_ARG, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE, Exception

MAX_INFO_KEY: Final = 255
MAX_INFO_VAL: Final = 1024

Own = TypeVar("Own", bound="Info")
Items = Union["Info", Mapping[str, str], Iterable[tuple[str, str]]]


class Info:
    """Keys and values, both text. A copy, as Info(info), is the same one.

    Methods of lower case are those of a dict. They take INFO_NULL as one without keys, to which
    none can be added.
    """

    _items: Optional[dict[str, str]]

    def __new__(cls: type[Own], info: "Optional[Info]" = None) -> Own:
        made = object.__new__(cls)
        made._items = None if info is None else info._items
        return made

    @classmethod
    def Create(cls: type[Own], items: Optional[Items] = None) -> Own:
        made = cls()
        made._items = {}
        if items is not None:
            made.update(items)
        return made

    @classmethod
    def Create_env(cls: type[Own], args: Optional[Sequence[str]] = None) -> Own:
        """With the command and its arguments."""
        command, *rest = list(sys.argv if args is None else args) or [""]
        return cls.Create({"command": command, "argv": " ".join(rest)})

    def _open(self) -> dict[str, str]:
        if self._items is None:
            raise Exception(ERR_ARG, "the info is INFO_NULL, or has been freed")
        return self._items

    def Dup(self: Own) -> Own:
        return self.Create(self._open())

    def Free(self) -> None:
        self._open()
        self._items = None

    def free(self) -> None:
        """As Free; it may be INFO_NULL."""
        self._items = None

    def Set(self, key: str, value: str) -> None:
        items = self._open()
        if not 0 < len(key.encode()) <= MAX_INFO_KEY:
            raise Exception(ERR_INFO_KEY, f"a key has {len(key.encode())} bytes; 1 to "
                            f"{MAX_INFO_KEY} are possible")
        if len(value.encode()) > MAX_INFO_VAL:
            raise Exception(ERR_INFO_VALUE, f"a value has {len(value.encode())} bytes; at most "
                            f"{MAX_INFO_VAL} are possible")
        items[key] = value

    def Get(self, key: str) -> Optional[str]:
        return self._open().get(key)

    def Delete(self, key: str) -> None:
        if self._open().pop(key, None) is None:
            raise Exception(ERR_INFO_NOKEY, f"the info has no key {key!r}")

    def Get_nkeys(self) -> int:
        return len(self._open())

    def Get_nthkey(self, n: int) -> str:
        keys = list(self._open())
        if not 0 <= n < len(keys):
            raise Exception(ERR_ARG, f"there is no key {n}; the info has {len(keys)}")
        return keys[n]

    # As a dict has them.

    def _for_keys(self, key: object) -> dict[str, str]:
        if self._items is None:
            raise KeyError(key)
        return self._items

    def __bool__(self) -> bool:
        return self._items is not None

    def __len__(self) -> int:
        return len(self._items or {})

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in (self._items or {})

    def __getitem__(self, key: str) -> str:
        return self._for_keys(key)[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._for_keys(key)
        self.Set(key, value)

    def __delitem__(self, key: str) -> None:
        del self._for_keys(key)[key]

    def __eq__(self, other: object) -> bool:
        return self._items is other._items if isinstance(other, Info) else NotImplemented

    def __hash__(self) -> int:
        return id(self._items)

    def get(self, key: str, default: Optional[str] = None) -> Optional[str]:
        return (self._items or {}).get(key, default)

    def keys(self) -> list[str]:
        return list(self._items or {})

    def values(self) -> list[str]:
        return list((self._items or {}).values())

    def items(self) -> list[tuple[str, str]]:
        return list((self._items or {}).items())

    def update(self, items: Items = (), **kwds: str) -> None:
        self._for_keys(None)
        given: Any = items
        for key, value in {**dict(given), **kwds}.items():
            self.Set(key, value)

    def pop(self, key: str, *default: str) -> str:
        return (self._items if self._items is not None else {}).pop(key, *default)

    def popitem(self) -> tuple[str, str]:
        return self._for_keys(None).popitem()

    def copy(self: Own) -> Own:
        return self.Dup() if self else type(self)()

    def clear(self) -> None:
        if self._items is not None:
            self._items.clear()

    def __reduce__(self) -> Any:
        if self in (INFO_NULL, INFO_ENV):
            return reduced(self, globals(), "INFO_NULL", "INFO_ENV")
        return type(self).Create, (self.items(),)


INFO_NULL: Final = Info()
INFO_ENV: Final = Info.Create_env()

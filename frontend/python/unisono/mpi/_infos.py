# SPDX-License-Identifier: BSD-3-Clause
"""Info: hints that a program gives. They are kept, and nothing reads them."""

from typing import Final, Optional

from ._errors import ERR_ARG, Exception


class Info:
    """Keys and values, both text."""

    def __init__(self, info: "Optional[Info]" = None) -> None:
        self._items: Optional[dict[str, str]] = None if info is None else info._items

    @classmethod
    def Create(cls, items: Optional[dict[str, str]] = None) -> "Info":
        made = cls()
        made._items = dict(items or {})
        return made

    def _open(self) -> dict[str, str]:
        if self._items is None:
            raise Exception(ERR_ARG, "the info is INFO_NULL, or has been freed")
        return self._items

    def Dup(self) -> "Info":
        return self.Create(self._open())

    def Free(self) -> None:
        self._items = None

    def Set(self, key: str, value: str) -> None:
        self._open()[key] = value

    def Get(self, key: str) -> Optional[str]:
        return self._open().get(key)

    def Delete(self, key: str) -> None:
        if self._open().pop(key, None) is None:
            raise Exception(ERR_ARG, f"the info has no key {key!r}")

    def Get_nkeys(self) -> int:
        return len(self._open())

    def Get_nthkey(self, n: int) -> str:
        return list(self._open())[n]

    def __bool__(self) -> bool:
        return self._items is not None

    def __len__(self) -> int:
        return len(self._items or {})

    def __contains__(self, key: str) -> bool:
        return key in (self._items or {})

    def __getitem__(self, key: str) -> str:
        return self._open()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self.Set(key, value)

    def __eq__(self, other: object) -> bool:
        return self._items is other._items if isinstance(other, Info) else NotImplemented

    def __hash__(self) -> int:
        return id(self._items)

    def items(self) -> list[tuple[str, str]]:
        return list(self._open().items())


INFO_NULL: Final = Info()
INFO_ENV: Final = Info.Create()

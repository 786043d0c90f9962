# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that are whole numbers: ints, bools, integers of NumPy, members of an IntEnum."""

import operator
from typing import Any


def whole(value: Any, name: str) -> int:
    """The number that the caller passes as `name`. Raises TypeError for other objects."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r:.60}, of type {type(value).__name__}; it has to be a "
                        "whole number") from None

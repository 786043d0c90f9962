# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are Python functions."""

from typing import Any, Callable


class Op:
    """An operator from a function of two NumPy arrays that returns one, element by element.

    The function is associative, and may keep and change its arrays. Without `commutative` the order
    of ranks is kept. The first use makes an operator of the library, which lives until the process
    ends. So make each Op once, and let all ranks use their first ones in the same order.
    """

    _unisono_op = True

    def __init__(self, function: Callable[[Any, Any], Any], commutative: bool = True) -> None:
        self.function = function
        self.commutative = commutative

    def __repr__(self) -> str:
        return f"unisono.Op({self.function!r}, commutative={self.commutative})"

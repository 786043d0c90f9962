# SPDX-License-Identifier: BSD-3-Clause
"""Awaiting a request or a plan in asyncio."""

import asyncio
from collections.abc import Generator
from typing import Any, Union

from ._native import Plan, Request

# A short operation ends within some turns of the event loop. After them the loop sleeps in between.
_TURNS = 100
_FIRST_PAUSE = 0.00005
_LONGEST_PAUSE = 0.002


def of_request(request: Union[Request, Plan]) -> Generator[Any, None, Any]:
    for _ in range(_TURNS):
        if request.done():
            return request.wait()
        yield from asyncio.sleep(0).__await__()
    pause = _FIRST_PAUSE
    while not request.done():
        yield from asyncio.sleep(pause).__await__()
        pause = min(2 * pause, _LONGEST_PAUSE)
    return request.wait()

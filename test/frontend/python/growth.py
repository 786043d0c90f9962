# SPDX-License-Identifier: BSD-3-Clause
"""What a repeated call leaves behind: objects, memory, descriptors and threads of this process.

    left = growth(call, turns, watched)

`left` says by how much each count grows with `turns` calls: the least of some rounds. A leak grows
in each of them, and a cache does not. The collector runs before each count."""

import ctypes
import gc
import os
import sys


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
                 "fordblks", "keepcost")]


_LIBC = ctypes.CDLL(None)
if hasattr(_LIBC, "mallinfo2"):  # of the GNU library, from 2.33
    _LIBC.mallinfo2.restype = _MallInfo


def _heap_bytes():
    """In use, of all threads, without Python's own small blocks."""
    if not hasattr(_LIBC, "mallinfo2"):
        return 0
    info = _LIBC.mallinfo2()
    return info.uordblks + info.hblkhd


def _counts(watched):
    gc.collect()
    gc.collect()
    return {"heap bytes": _heap_bytes(), "blocks": sys.getallocatedblocks(),
            "collected objects": len(gc.get_objects()),
            "references": sum(sys.getrefcount(each) for each in watched),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
            "maps": sum(1 for _ in open("/proc/self/maps"))}


def growth(call, turns, watched=(), settle=lambda: None, rounds=6):
    """`settle` ends what the calls have left under way, for instance requests without a wait."""
    counts = []
    for number in range(rounds + 2):
        for _ in range(turns if number > 1 else max(20, turns // 4)):  # at first caches fill
            call()
        settle()
        counts.append(_counts(watched))
    return {name: min(after[name] - before[name]
                      for before, after in zip(counts[1:], counts[2:])) for name in counts[0]}


def leaks(left, turns):
    """The counts that have grown with the turns. The smallest leak is an object of 16 bytes in each
    turn."""
    allowed = {"heap bytes": 16 * turns, "blocks": turns // 4, "collected objects": turns // 4,
               "references": 0, "descriptors": 0, "threads": 0, "maps": turns // 4}
    return {name: count for name, count in left.items() if count > allowed[name]}

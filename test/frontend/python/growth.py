# SPDX-License-Identifier: BSD-3-Clause
"""The traces of a repeated call: objects, memory, descriptors and threads of this process.

    left = growth(call, turns, watched)

`left` says by how much each count grows with `turns` calls: the least of some rounds. A leak grows
in each of them, and a cache does not. The collector runs before each count. Programs run it in
in_new_process()."""

import array
import ctypes
import gc
import json
import os
import subprocess
import sys
from pathlib import Path

# malloc caches freed blocks for each thread, and counts them as in use. Messages of many lengths
# fill that cache over hundreds of calls, which looks like a leak. malloc reads this when a process
# starts.
_NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


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


NAMES = ("heap bytes", "blocks", "collected objects", "references", "descriptors", "threads",
         "maps")


def _counts(watched):
    gc.collect()
    gc.collect()
    return (_heap_bytes(), sys.getallocatedblocks(), len(gc.get_objects()),
            sum(sys.getrefcount(each) for each in watched),
            len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")),
            sum(1 for _ in open("/proc/self/maps")))


def in_new_process(file, function, *args):
    """The result of a function of a file, by its name. Arguments and result are values of JSON."""
    file = Path(file).resolve()
    program = (f"import json, sys\nsys.path.insert(0, {str(file.parent)!r})\nimport {file.stem}\n"
               f"result = {file.stem}.{function}(*json.loads(sys.argv[1]))\n"
               "print(json.dumps(result))")
    ended = subprocess.run([sys.executable, "-c", program, json.dumps(args)], text=True, check=True,
                           stdout=subprocess.PIPE, env=os.environ | _NO_CACHES)
    return json.loads(ended.stdout.splitlines()[-1])


def growth(call, turns, watched=(), settle=lambda: None, rounds=6):
    """`settle` ends what the calls have left under way, for instance requests without a wait."""
    # Made before: what the counts themselves take would else grow from round to round.
    counts = [array.array("q", bytes(8 * len(NAMES))) for _ in range(rounds + 2)]
    for number, count in enumerate(counts):
        for _ in range(turns if number > 1 else max(20, turns // 4)):  # at first caches fill
            call()
        settle()
        for column, value in enumerate(_counts(watched)):
            count[column] = value
    return {name: min(after[column] - before[column]
                      for before, after in zip(counts[1:], counts[2:]))
            for column, name in enumerate(NAMES)}


def leaks(left, turns):
    """The counts that have grown with the turns. The smallest leak is an object of 16 bytes in each
    turn."""
    allowed = {"heap bytes": 16 * turns, "blocks": turns // 4, "collected objects": turns // 4,
               "references": 0, "descriptors": 0, "threads": 0, "maps": turns // 4}
    return {name: count for name, count in left.items() if count > allowed[name]}

# SPDX-License-Identifier: BSD-3-Clause
"""Every rank gives a number, every rank gets the sum, rank 0 prints it.

See docs/tutorial/04-python.md.
"""

import unisono

with unisono.init() as comm:
    total = comm.allreduce(comm.rank + 1)
    if comm.rank == 0:
        print(f"{comm.size} ranks, the sum of 1 to {comm.size} is {total}")

# SPDX-License-Identifier: BSD-3-Clause
"""Each rank holds points of its own, and all ranks find the line through all points together.

They sum their gradients in each step, with a plan, because the arrays are the same each time. See
docs/tutorial/04-python.md.
"""

import numpy
import unisono

POINTS = 1000  # of each rank
RATE = 0.5


def main() -> None:
    with unisono.init() as comm:
        random = numpy.random.default_rng(seed=comm.rank)
        x = random.uniform(-1, 1, POINTS)
        y = 3 * x + 2
        slope, offset, steps = 0.0, 0.0, 0
        mine, total = numpy.empty(2), numpy.empty(2)
        with comm.allreduce_plan(mine, total) as sum_gradients:
            while True:
                error = slope * x + offset - y
                mine[:] = numpy.mean(error * x), numpy.mean(error)
                sum_gradients()
                slope -= RATE * total[0] / comm.size
                offset -= RATE * total[1] / comm.size
                steps += 1
                if numpy.abs(total).max() < 1e-6:  # the same bits at every rank, so all stop here
                    break
        lines = comm.gather(numpy.array([slope, offset]))
        if comm.rank == 0:
            assert (lines == lines[0]).all()
            print(f"{comm.size} ranks agree on y = {slope:.3f} x + {offset:.3f}")


main()

# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of calls leave no object, no memory, no descriptor and no thread behind."""

import asyncio
import ctypes

import numpy
import pytest
import unisono
from growth import growth, in_new_process, leaks

TURNS = 1000


class Job:
    """The objects that the cases use: a communicator, arrays that are watched, and ways to call."""

    def __init__(self):
        self.world = unisono.init()
        self.comm = self.world.dup()
        size = self.comm.size
        self.mine, self.total = numpy.ones(6), numpy.empty(6)
        self.all, self.counts = numpy.ones(6 * size), [6] * size
        self.operator = unisono.Op(numpy.add, commutative=True)
        self.loop = asyncio.new_event_loop()

    @property
    def watched(self):
        return self.mine, self.total, self.all, self.counts, self.operator, self.comm, None

    def every_collective(self, form):
        """(name, arguments) of each, with a result in `total` or `all`, or a new array."""
        comm, mine, every, counts = self.comm, self.mine, self.all, self.counts
        for name, *arguments in (
                ("barrier",), ("broadcast", self.total), ("reduce", mine),
                ("allreduce", mine, self.total), ("allreduce", mine), ("allreduce", 3),
                ("allreduce", mine, None, self.operator), ("allgather", mine), ("gather", mine),
                ("scatter", every, self.total), ("alltoall", every), ("reduce_scatter", every),
                ("scan", mine), ("exscan", mine, self.total),
                ("alltoallv", every, counts, every * 1, counts)):
            yield getattr(comm, name + form)(*arguments)
        yield getattr(comm, "allgatherv" + form)(mine, counts=counts)
        yield getattr(comm, "many_to_many" + form)(mine, counts=counts)
        yield getattr(comm, "gatherv" + form)(mine, None, counts)
        yield getattr(comm, "scatterv" + form)(every, self.total, counts)

    def settle(self):
        self.comm.barrier()
        self.comm.info()  # drops what nobody waits for
        self.world.barrier()


def blocking(job):
    for _ in job.every_collective(""):
        pass


def requests(job):
    for request in job.every_collective("_start"):
        request.wait()
        assert request.done()


def requests_without_a_wait(job):
    for _ in job.every_collective("_start"):
        pass
    job.comm.barrier()


def plans(job):
    for plan in job.every_collective("_plan"):
        with plan:
            plan()
            plan.start()
            plan.wait()


def plans_without_an_end(job):
    job.comm.allreduce_plan(job.mine, job.total)
    job.comm.allreduce_plan(job.mine)()
    job.comm.allreduce_plan(job.mine).start()
    job.comm.barrier()


def awaited(job):
    async def some():
        async def one(request):
            return await request
        await asyncio.gather(one(job.comm.allreduce_start(job.mine)),
                             one(job.comm.allgather_start(job.mine)))
        with job.comm.allreduce_plan(job.mine, job.total) as plan:
            plan.start()
            await plan
    job.loop.run_until_complete(some())


def shared_arrays(job):
    array = job.comm.empty(6)
    job.comm.allreduce(array, job.total)
    job.comm.allreduce_start(job.comm.empty(6)).wait()
    view = job.comm.empty((2, 3), "int32")[1:]
    view[:] = 1


def communicators(job):
    with job.comm.dup() as other, job.comm.split(0) as same:
        other.allreduce(job.mine, job.total)
        same.allreduce_start(job.mine)
    assert job.comm.split(-1) is None
    job.comm.dup().barrier()  # closed when it is forgotten


def refused(job):
    """Errors that leave the communicator."""
    with pytest.raises(unisono.ArgumentError):
        job.comm.empty(-1)
    with pytest.raises(unisono.DatatypeError):
        job.comm.empty(1, object)
    with pytest.raises(unisono.ArgumentError):
        job.comm.query("~", 1)
    with job.comm.allreduce_plan(job.mine, job.total) as plan:
        plan.start()
        with pytest.raises(unisono.StateError):
            plan.start()
    with pytest.raises(unisono.StateError):
        plan()


def wrong(left, right):
    raise ZeroDivisionError


WRONG = unisono.Op(wrong, commutative=True)


def failed(job):
    """Errors that end a communicator for all its ranks."""
    for call in (lambda comm: comm.allreduce(numpy.ones(3), op="none"),
                 lambda comm: comm.allreduce(numpy.ones((4, 4))[:, 1]),
                 lambda comm: comm.allreduce(object()),
                 lambda comm: comm.allreduce(),
                 lambda comm: comm.allreduce_start(numpy.ones(3 + comm.rank)).wait(),
                 lambda comm: comm.allreduce(job.mine, op=WRONG),
                 lambda comm: comm.refuse("test")):
        with job.comm.dup() as comm:
            with pytest.raises((unisono.Error, TypeError, ZeroDivisionError)):
                call(comm)
                comm.barrier()
                comm.barrier()


def as_mpi(world, mine, total):
    world.Allreduce([mine, "d"], total)
    world.Iallreduce(mine, total).Wait()
    assert world.allgather({"rank": world.rank})[0] == {"rank": 0}
    world.bcast([1, 2, 3])


# Cases whose turns are many calls, or several communicators, need fewer.
CASES = {blocking: 300, requests: 300, requests_without_a_wait: 200, plans: 300,
         plans_without_an_end: TURNS, awaited: 300, shared_arrays: TURNS, communicators: 200,
         refused: TURNS, failed: 100}


def counting(case, turns):
    job = Job()
    return growth(lambda: case(job), turns, job.watched, job.settle)


def of_ranks(name):
    case = globals()[name]
    return unisono.spawn(counting, (case, CASES[case]), ranks=2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_nothing_is_left(case):
    for left in in_new_process(__file__, "of_ranks", case.__name__):
        assert leaks(left, CASES[case]) == {}


def counting_mpi():
    from unisono import mpi
    mine, total = numpy.ones(6), numpy.empty(6)
    return growth(lambda: as_mpi(mpi.COMM_WORLD, mine, total), TURNS, (mine, total),
                  mpi.COMM_WORLD.Barrier)


def of_mpi():
    return unisono.spawn(counting_mpi, ranks=2)


def test_nothing_is_left_by_mpi_calls():
    for left in in_new_process(__file__, "of_mpi"):
        assert leaks(left, TURNS) == {}


def a_leak(kind):
    kept = []
    call = {"heap bytes": lambda: kept.append(numpy.ones(100)),
            "blocks": lambda: kept.append(object()),
            "descriptors": lambda: kept.append(open("/dev/null"))}[kind]
    return leaks(growth(call, 100), 100)


@pytest.mark.parametrize("kind", ["heap bytes", "blocks", "descriptors"])
def test_a_leak_is_found(kind):
    assert kind in a_leak(kind)


def failing_with_a_leak():
    """Each turn also keeps the smallest block of the heap."""
    job, libc, turns = Job(), ctypes.CDLL(None), 20
    libc.malloc.restype = ctypes.c_void_p

    def turn():
        failed(job)
        libc.malloc(ctypes.c_size_t(1))
    return leaks(growth(turn, turns, job.watched, job.settle), turns)


def of_a_leak():
    return unisono.spawn(failing_with_a_leak, ranks=2)


def test_the_smallest_leak_is_found_beside_failures():
    assert [list(found) for found in in_new_process(__file__, "of_a_leak")] == [["heap bytes"]] * 2

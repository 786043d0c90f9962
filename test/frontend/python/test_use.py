# SPDX-License-Identifier: BSD-3-Clause
"""How programs use it: event loops, threads, loops of many calls, ends without warning."""

import asyncio
import contextlib
import enum
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref

import numpy
import pytest
import unisono


def awaiting():
    with unisono.init() as comm:
        order = []

        async def other():
            for turn in range(3):
                order.append(turn)
                await asyncio.sleep(0)

        async def main():
            mine = numpy.full(10, comm.rank + 1.0)
            task = asyncio.create_task(other())
            total = await comm.allreduce_start(mine)
            parts = await asyncio.gather(*(as_task(comm.allgather_start(mine[:1] * i))
                                           for i in range(5)))
            with comm.allreduce_plan(mine) as plan:
                plan.start()
                planned = await plan
            await task
            return total[0], [part[-1][0] for part in parts], planned[0]

        async def as_task(request):
            return await request

        found = asyncio.run(main())
        assert order == [0, 1, 2]
        return found


def test_requests_and_plans_are_awaited():
    assert unisono.spawn(awaiting, ranks=3) == [(6.0, [0.0, 3.0, 6.0, 9.0, 12.0], 6.0)] * 3


def others_go_on(reader, writer):
    """Rank 1 starts only after another task of rank 0, which awaits the collective, has run."""
    with unisono.init() as comm:
        async def main():
            async def say():
                await asyncio.sleep(0)
                os.write(writer, b".")
            task = asyncio.create_task(say())
            total = await comm.allreduce_start(numpy.ones(1))
            await task
            return total[0]
        if comm.rank == 1:
            os.read(reader, 1)
            return comm.allreduce(numpy.ones(1))[0]
        return asyncio.run(main())


def test_an_await_lets_other_tasks_run():
    assert unisono.spawn(others_go_on, os.pipe(), ranks=2) == [2.0, 2.0]


def awaiting_a_failure():
    comm = unisono.init()
    if comm.rank == 1:
        with pytest.raises(unisono.ArgumentError):
            comm.allreduce(numpy.ones(2), op="none")
        return True

    async def main():
        with pytest.raises(unisono.PeerArgumentError):
            await comm.allreduce_start(numpy.ones(2))
            await comm.barrier_start()
    asyncio.run(main())
    return True


def test_an_await_raises_the_error():
    assert unisono.spawn(awaiting_a_failure, ranks=2) == [True, True]


def in_threads():
    with unisono.init() as world:
        comms = [world.dup() for _ in range(4)]
        sums = [0.0] * len(comms)

        def work(index):
            for turn in range(200):
                sums[index] += comms[index].allreduce(numpy.full(3, float(turn)))[0]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(comms))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sums


def test_each_thread_has_its_communicator():
    assert unisono.spawn(in_threads, ranks=2) == [[2.0 * sum(range(200))] * 4] * 2


class SlowImports:
    """As from a slow disk: an import lets other threads run."""

    def find_spec(self, *_):
        time.sleep(0.05)


def first_calls_at_once():
    sys.modules.pop("unisono._arrays", None)
    sys.meta_path.insert(0, SlowImports())
    with unisono.init() as world:
        comms = [world.dup() for _ in range(4)]
        sums = [0.0] * len(comms)

        def work(index):
            sums[index] = comms[index].allreduce(numpy.ones(3))[0]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(comms))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sums


def test_threads_make_their_first_calls_at_once():
    assert unisono.spawn(first_calls_at_once, ranks=1) == [[1.0] * 4]


def two_threads_in_one(reader, writer):
    with unisono.init() as comm:
        if comm.rank == 1:
            os.read(reader, 1)
            comm.barrier()
            return True
        thread = threading.Thread(target=comm.barrier)
        thread.start()
        refused = None
        while refused is None:  # until the thread is in its call
            try:
                comm.info()
            except unisono.StateError as error:
                refused = str(error)
        os.write(writer, b".")
        thread.join()
        return "another thread" in refused


def test_a_second_thread_is_refused():
    assert unisono.spawn(two_threads_in_one, os.pipe(), ranks=2) == [True, True]


def surviving():
    comm = unisono.init()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            comm.allreduce(numpy.ones(4))
    except unisono.RankLostError as error:
        lost = error.rank
    with comm.shrink() as rest:
        return lost, rest.size, rest.allgather(rest.rank).ravel().tolist()


def run_ranks(function, ranks, tmp_path):
    """As spawn, for ranks that may die: the results are written to files."""
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.environ.update(UNISONO_RANK=str(rank), UNISONO_SIZE=str(ranks),
                                  UNISONO_RENDEZVOUS=f"unix:@unisono-test-{os.getppid()}-survive")
                (tmp_path / str(rank)).write_text(repr(function()))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return [(tmp_path / str(rank)).read_text() if (tmp_path / str(rank)).exists() else None
            for rank in range(ranks)]


def test_those_that_live_go_on_after_a_killed_rank(tmp_path):
    survivor = repr((1, 2, [0, 1]))
    assert run_ranks(surviving, 3, tmp_path) == [survivor, None, survivor]


def forgotten(reader, writer):
    """Rank 0 forgets a communicator on which an operation needs rank 1, which comes later."""
    with unisono.init() as world:
        dups = [world.dup() for _ in range(3)]
        arrays = [numpy.full(50_000, world.rank + 1.0) for _ in range(3)]
        results = [numpy.zeros(50_000) for _ in range(3)]
        if world.rank == 1:
            os.read(reader, 1)
            totals = [each.allreduce(array)[-1] for each, array in zip(dups, arrays)]
            world.barrier()
            return totals
        watched = [weakref.ref(array) for array in arrays]
        dups[0].allreduce_start(arrays[0], results[0])
        dups[0].close()  # of an operation that nobody can wait for any more
        dups[1].allreduce_start(arrays[1], results[1])
        plan = dups[2].allreduce_plan(arrays[2], results[2])
        plan.start()
        del dups, arrays, results, plan
        gc.collect()
        assert all(each() is not None for each in watched)
        os.write(writer, b".")
        while any(each() is not None for each in watched):
            world.info()  # any call looks after them
        world.barrier()
        return True


def test_a_forgotten_communicator_keeps_the_arrays_of_its_operations():
    assert unisono.spawn(forgotten, os.pipe(), ranks=2) == [True, [3.0] * 3]


def closed_too_early():
    with unisono.init() as world:
        comm = world.dup()
        request = comm.allreduce_start(numpy.ones(3))
        if world.rank == 0:
            with pytest.raises(unisono.StateError, match="outstanding"):
                comm.close()
        assert comm.is_open
        total = request.wait()[0]
        comm.close()
        return total


def test_a_communicator_is_not_closed_while_a_request_is_held():
    assert unisono.spawn(closed_too_early, ranks=2) == [2.0, 2.0]


ENDS = """
import numpy, sys, unisono
comm = unisono.init()
request = comm.allreduce_start(numpy.ones(200_000))
plan = comm.allreduce_plan(numpy.ones(3))
plan.start()
print("ends", comm.rank, flush=True)
{last}
"""


@pytest.mark.parametrize("last", ["", "sys.exit(0)", "del comm, plan", "request.wait()"])
def test_the_interpreter_ends_with_operations_in_flight(last, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ENDS.format(last=last))
    ended = subprocess.run([sys.executable, "-m", "unisono", "run", "-n", "2", sys.executable,
                            program], check=False, text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    assert sorted(line for line in ended.stdout.splitlines() if "ends" in line) == ["ends 0",
                                                                                   "ends 1"]
    assert "Fatal" not in ended.stderr and "Traceback" not in ended.stderr


WAITING = """
import sys, threading, unisono
sys.setswitchinterval(100)  # the thread has the GIL until it waits
comm = unisono.init()
derived, begun = comm.dup(), threading.Event()
def wait():
    begun.set()
    derived.barrier()  # which the other rank does not call
if comm.rank == 0:
    threading.Thread(target=wait, daemon=True).start()
    begun.wait()
{last}
"""


@pytest.mark.parametrize("last", ["", "sys.exit(0)", "del comm"])
def test_the_interpreter_ends_while_a_daemon_thread_waits(last, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WAITING.format(last=last))
    ended = subprocess.run([sys.executable, "-m", "unisono", "run", "-n", "2", sys.executable,
                            program], check=False, text=True, capture_output=True)
    # The thread may still hear that the other rank has left.
    assert ended.returncode == 0, ended.stderr
    assert "Fatal" not in ended.stderr


def closed_beside_a_thread():
    """The world stays open while another thread is in a call on a communicator of its job."""
    sys.setswitchinterval(100)  # the thread has the GIL until it waits
    comm = unisono.init()
    derived, begun, ended = comm.dup(), threading.Event(), []

    def wait():
        begun.set()
        ended.append(derived.allreduce(comm.rank))

    if comm.rank == 0:
        thread = threading.Thread(target=wait)
        thread.start()
        begun.wait()
        with pytest.raises(unisono.StateError, match="another thread is in a call on a "):
            comm.close()
        comm.barrier()
        thread.join()
    else:
        comm.barrier()
        wait()
    comm.close()
    return ended


def test_a_job_is_not_closed_while_a_thread_is_in_a_call():
    assert unisono.spawn(closed_beside_a_thread, ranks=2) == [[1], [1]]


def test_an_exception_ends_the_other_ranks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import unisono\ncomm = unisono.init()\n"
                       "if comm.rank == 0: raise KeyError('of rank 0')\ncomm.barrier()\n")
    ended = subprocess.run([sys.executable, "-m", "unisono", "run", "-n", "2", sys.executable,
                            program], check=False, text=True, capture_output=True)
    assert ended.returncode != 0
    assert "of rank 0" in ended.stderr


class Rank(enum.IntEnum):
    first = 0
    second = 1


class Index:
    def __index__(self):
        return 1


def whole_numbers(number):
    """`number` is one that Python takes as the index 1."""
    with unisono.init() as comm:
        mine = numpy.full(2, comm.rank)
        counts = [number] * comm.size
        comm.publish(number)
        comm.barrier()
        assert comm.query("==", number)
        assert comm.broadcast(mine.copy(), root=number).tolist() == [1, 1]
        assert comm.broadcast_start(mine.copy(), number).wait().tolist() == [1, 1]
        with comm.broadcast_plan(mine.copy(), root=number) as plan:
            assert plan().tolist() == [1, 1]
        for name in ("reduce", "gather"):
            found = getattr(comm, name)(mine, root=number)
            assert (found is not None) == (comm.rank == 1)
        room = numpy.empty(1, int)
        assert comm.scatter(mine, room, root=number).tolist() == [1]
        comm.gatherv(mine[:1], None, counts, None, number)
        assert comm.scatterv(mine, room, counts, None, number).tolist() == [1]
        assert comm.allgatherv(mine[:1], counts=counts).tolist() == [0, 1]
        assert comm.reduce_scatter(mine, counts=counts).tolist() == [1]
        assert comm.alltoallv(mine, counts, None, counts).tolist() == [0, 1]
        with comm.split(number, key=number) as same, comm.subgroup([0, number]) as pair:
            return same.size, pair.size


@pytest.mark.parametrize("number", [True, numpy.int8(1), numpy.int64(1), numpy.uint64(1),
                                    numpy.array(1), Rank.second, Index()],
                         ids=lambda number: type(number).__name__)
def test_whole_numbers_of_any_kind(number):
    assert unisono.spawn(whole_numbers, (number,), ranks=numpy.int64(2)) == [(2, 2)] * 2


def kept_arrays(ends):
    """Whether the arrays live: after the start, after the end, and without the result."""
    with unisono.init() as comm:
        mine, total = numpy.ones(3), numpy.empty(3)
        arrays = [weakref.ref(mine), weakref.ref(total)]
        kept = comm.allreduce_start(mine, total)
        del mine, total
        gc.collect()
        lives = [[array() is not None for array in arrays]]
        found = ends(comm, kept)
        lives.append([array() is not None for array in arrays])
        assert found.tolist() == [comm.size] * 3 and kept.wait() is found and kept.done()
        del found, kept
        lives.append([array() is not None for array in arrays])
        return lives


def by_wait(comm, request):
    return request.wait()


def by_done(comm, request):
    while not request.done():
        pass
    return request.wait()


def by_block(comm, request):
    with request:
        pass
    return request.wait()


@pytest.mark.parametrize("ends", [by_wait, by_done, by_block])
def test_a_request_keeps_its_arrays_until_it_has_ended(ends):
    expected = [[True, True], [False, True], [False, False]]
    assert unisono.spawn(kept_arrays, (ends,), ranks=2) == [expected] * 2


def arrays_of_a_cancelled_request():
    world = unisono.init()
    comm = world.dup()
    lives = None
    if comm.rank == 0:
        mine = numpy.ones(3)
        array = weakref.ref(mine)
        request = comm.allreduce_start(mine)
        del mine
        request.cancel()
        lives = array() is not None
    world.barrier()
    return lives


def test_a_cancelled_request_gives_its_arrays_back():
    assert unisono.spawn(arrays_of_a_cancelled_request, ranks=2) == [False, None]


def waits_after_a_cancel():
    world = unisono.init()
    comm = world.dup()
    said = None
    if comm.rank == 0:
        request = comm.allreduce_start(numpy.ones(3))
        request.cancel()
        request.cancel()
        said = []
        for wait in (request.wait, lambda: asyncio.run(awaited(request))):
            with pytest.raises(unisono.CancelledError, match="rank 0 has cancelled") as caught:
                wait()
            said.append((request.done(), caught.value.rank))
    world.barrier()
    # One that is complete is not cancelled.
    request = world.allreduce_start(numpy.ones(3))
    while not request.done():
        pass
    request.cancel()
    assert request.wait().tolist() == [world.size] * 3
    return said


async def awaited(request):
    return await request


def test_a_cancelled_request_has_no_result():
    assert unisono.spawn(waits_after_a_cancel, ranks=2) == [[(True, 0)] * 2, None]


def killed():
    if unisono.init().rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def test_spawn_names_the_signal_that_has_killed_a_rank():
    message = "rank 1 failed: it was killed by signal 9"
    with pytest.raises(unisono.SpawnError, match=message) as caught:
        unisono.spawn(killed, ranks=2)
    assert caught.value.rank == 1


def arrays_of_a_plan():
    with unisono.init() as comm:
        mine = numpy.ones(3)
        array = weakref.ref(mine)
        plan = comm.allreduce_plan(mine)
        del mine
        plan()
        lives = [array() is not None]
        plan.close()
        plan.close()
        lives.append(array() is not None)
        with pytest.raises(unisono.StateError, match="closed"):
            plan.wait()
        return lives


def test_a_plan_keeps_its_arrays_until_it_is_closed():
    assert unisono.spawn(arrays_of_a_plan, ranks=2) == [[True, False]] * 2


class Held:
    pass


def failing_again(start):
    """A request that fails raises at each wait, and keeps nothing of its caller for ever. None: it
    has not failed on this rank."""
    world = unisono.init()
    comm = world.dup()
    held = Held()
    released = weakref.ref(held)

    def fail(held):
        mine = numpy.ones(3 + comm.rank)
        try:
            request = start(comm, mine)
        except (unisono.Error, ZeroDivisionError):  # the operator has run in the start
            return start is not with_other_lengths, weakref.ref(mine), None
        errors = []
        for _ in range(3):
            try:
                request.wait()
            except (unisono.Error, ZeroDivisionError) as error:
                frames = len(traceback.extract_tb(error.__traceback__))
                errors.append((type(error), str(error), frames))
        assert request.done() and len(errors) in (0, 3)
        assert len({error[:2] for error in errors}) < 2, errors
        # The first wait may show where the operator raised; no wait adds to another one's frames.
        assert len(set(errors[1:])) < 2 and errors == sorted(errors, key=lambda error: -error[2])
        return len(errors) == 3, weakref.ref(mine), request

    has_failed, array, request = fail(held)
    del held, request
    gc.collect()
    world.barrier()
    assert array() is None and released() is None
    return has_failed


def with_other_lengths(comm, mine):
    return comm.allreduce_start(mine)


def with_an_operator_that_raises(comm, mine):
    def divide(left, right):
        raise ZeroDivisionError("by the operator")
    return comm.allreduce_start(mine[:3], op=divide)


def with_an_operator_that_raises_and_done(comm, mine):
    request = with_an_operator_that_raises(comm, mine)
    with contextlib.suppress(unisono.Error, ZeroDivisionError):
        while not request.done():
            pass
    return request


@pytest.mark.parametrize("start", [with_other_lengths, with_an_operator_that_raises,
                                   with_an_operator_that_raises_and_done],
                         ids=lambda start: start.__name__)
def test_a_request_that_has_failed_raises_at_each_wait(start):
    have_failed = unisono.spawn(failing_again, (start,), ranks=2)
    # A rank that has not called the operator may be through before the other one fails.
    assert all(have_failed) if start is with_other_lengths else any(have_failed)


def two_with_one_function():
    """The function raises for the values of the second call. A rank that has waited for the
    first one may have heard of it already; the second must not seem to be right."""
    called = []

    def add(left, right):
        if left.max() > 10:
            called.append(True)
            raise ZeroDivisionError("by the operator")
        return left + right
    with unisono.init() as world:
        requests = [world.allreduce_start(numpy.full(3, value), op=add) for value in (1.0, 20.0)]
        errors = []
        for request in requests:
            try:
                request.wait()
                errors.append(None)
            except Exception as error:
                errors.append(error)
        assert not called or errors[1] is not None
        again = world.shrink()
        assert again.allreduce(1.0, op=add) == 2.0
        again.close()
        return bool(called)


def test_an_exception_of_a_function_that_two_requests_have():
    assert any(unisono.spawn(two_with_one_function, ranks=2))


def test_a_child_of_a_rank_made_by_init_with_is_no_rank():
    program = """if True:
        import os, unisono
        unisono.init_with(0, 1, lambda own: own).close()
        for start in (unisono.init, lambda: unisono.spawn(unisono.init, ranks=2)):
            child = os.fork()
            if child == 0:
                try:
                    start()
                except (unisono.StateError, RuntimeError):
                    os._exit(7)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print("fine")
        """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


def kept_by_mpi():
    from unisono import mpi
    comm = mpi.COMM_WORLD
    vector = mpi.DOUBLE.Create_vector(2, 1, 2).Commit()
    mine, every = numpy.ones(4), numpy.empty(2 * comm.size)
    array = weakref.ref(mine)
    request = comm.Iallgather([mine, 1, vector], every)
    plan = comm.Allgather_init([mine, 1, vector], every)
    request.Wait()
    plan.Start()
    plan.Wait()
    plan.Free()
    del mine
    return array() is None, request is not plan


def test_requests_of_mpi_give_their_buffers_back():
    assert unisono.spawn(kept_by_mpi, ranks=2) == [(True, True)] * 2

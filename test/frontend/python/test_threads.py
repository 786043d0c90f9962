# SPDX-License-Identifier: BSD-3-Clause
"""Threads of one rank, each in calls of its own: under the thread sanitizer as well."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy
import pytest
import unisono

TURNS = 50


def at_once(functions):
    """Runs them in threads of their own, and raises what they raise."""
    errors = []
    start = threading.Barrier(len(functions))

    def run(function):
        try:
            start.wait()
            function()
        except BaseException as error:  # noqa: B902 (raised below)
            errors.append(error)
    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def every_form():
    with unisono.init() as world:
        comms = [world.dup() for _ in range(4)]

        def waits(comm):
            for turn in range(TURNS):
                assert comm.allreduce(turn) == turn * comm.size

        def starts(comm):
            mine, total = numpy.ones(3000), numpy.empty(3000)
            for _ in range(TURNS):
                request = comm.allreduce_start(mine, total)
                while not request.done():
                    pass
                assert request.wait()[-1] == comm.size
                comm.allgather_start(mine[:7])  # nobody waits

        def plans(comm):
            mine = comm.empty(3000)
            with comm.allreduce_plan(unisono.IN_PLACE, mine) as plan:
                for turn in range(TURNS):
                    mine[:] = turn
                    plan()
                    assert mine[-1] == turn * comm.size

        def operators(comm):
            for _ in range(TURNS):
                assert comm.allreduce(numpy.arange(4.0), op=numpy.maximum).tolist() == [0, 1, 2, 3]

        at_once([lambda comm=comm, work=work: work(comm)
                 for comm, work in zip(comms, (waits, starts, plans, operators))])
        for comm in comms:
            comm.close()
        return True


def test_each_form_in_a_thread_of_its_own():
    assert unisono.spawn(every_form, ranks=2) == [True, True]


def ends():
    """Threads make, use, forget and close communicators, arrays and requests."""
    with unisono.init() as world:
        parents = [world.dup() for _ in range(3)]

        def work(parent, forgets):
            for turn in range(TURNS // 2):
                comm = parent.dup()
                array = comm.empty(50)
                comm.allreduce_start(array)
                if not forgets:
                    comm.close()
                del comm, array
                if turn % 5 == 0:
                    gc.collect()
                parent.barrier()

        at_once([lambda: work(parents[0], False), lambda: work(parents[1], True),
                 lambda: work(parents[2], True)])
        return True


def test_communicators_end_in_several_threads():
    assert unisono.spawn(ends, ranks=2) == [True, True]


def one_communicator():
    """A call of one thread at a time; the others are refused, and the results are right."""
    with unisono.init() as comm:
        done, refused = [], []

        def work():
            array = comm.empty(4)  # also while another thread is in a call
            for _ in range(TURNS):
                try:
                    comm.info()
                    done.append(array.sum())
                except unisono.StateError as error:
                    refused.append(str(error))

        at_once([work] * 4)
        assert len(done) + len(refused) == 4 * TURNS
        assert all("another thread" in text for text in refused)
        return comm.allreduce(1)


def test_threads_that_meet_in_one_communicator():
    assert unisono.spawn(one_communicator, ranks=2) == [2, 2]


def elsewhere(by_threads):
    """A rank waits for one communicator, and a sum by a function of Python goes on meanwhile. The
    last rank comes to the former when it has the sum."""
    with unisono.init() as world:
        other = world.dup()
        for turn in range(TURNS // 5):
            if world.rank == 1:
                time.sleep(0.005)
            request = world.allreduce_start(numpy.full(3, turn), op=numpy.add)
            if world.rank == 1:
                assert request.wait().tolist() == [2 * turn] * 3
                other.barrier()
            elif by_threads:
                waits = threading.Thread(target=other.barrier)
                waits.start()
                while not request.done():
                    pass
                waits.join()
            else:
                other.barrier()
            assert request.wait().tolist() == [2 * turn] * 3
        other.close()
        return True


@pytest.mark.parametrize("by_threads", (False, True))
def test_a_function_of_python_is_called_in_a_wait_for_another_communicator(by_threads):
    assert unisono.spawn(elsewhere, args=(by_threads,), ranks=2) == [True, True]


def failing():
    """A thread's communicator fails while other threads are in calls."""
    with unisono.init() as world:
        good, bad = world.dup(), world.dup()

        def goes_on():
            for _ in range(TURNS):
                assert good.allreduce(1) == good.size

        def fails():
            with pytest.raises(unisono.Error):
                for turn in range(TURNS):
                    is_wrong = turn == 9 and bad.rank == 0
                    bad.allreduce(numpy.ones(3), op="none" if is_wrong else "sum")
                bad.barrier()

        at_once([goes_on, fails])
        return world.allreduce(1)


def test_a_failure_in_one_thread():
    assert unisono.spawn(failing, ranks=2) == [2, 2]


def forking():
    """A child is forked while a thread waits in a collective that has not started everywhere."""
    with unisono.init() as world:
        comm = world.dup()
        if world.rank == 1:
            world.barrier()
            return comm.allreduce(1)
        results = []
        thread = threading.Thread(target=lambda: results.append(comm.allreduce(1)))
        thread.start()
        while True:  # until the thread is in its call
            try:
                comm.info()
            except unisono.StateError:
                break
        child = os.fork()
        if child == 0:
            try:
                world.barrier()
            except unisono.StateError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        world.barrier()
        thread.join()
        return results[0]


def test_a_fork_while_a_thread_waits():
    assert unisono.spawn(forking, ranks=2) == [2, 2]


WORKING = """
import numpy, sys, threading, unisono
TURNS = 20
comm = unisono.init()
turns = threading.Semaphore(0)
ones = numpy.ones(3000)

def add(left, right):
    return left + right

def poll(comm):
    request = comm.allreduce_start(ones)
    while not request.done():
        pass

def plan(comm):
    with comm.allreduce_plan(ones, op=add) as plan:
        plan()

def repeat(call, comm):
    try:
        while True:
            call(comm)
            turns.release()
    except unisono.Error:
        turns.release(TURNS * 100)  # the other rank has left

comm.allreduce(1.0, op=add)
calls = [lambda comm: comm.allreduce(ones), lambda comm: comm.allreduce_start(ones).wait(), poll,
         plan, lambda comm: comm.allreduce(ones, op=add)]
for call in calls:
    threading.Thread(target=repeat, args=(call, comm.dup()), daemon=True).start()
for _ in range(TURNS * len(calls) * (1 + comm.rank)):  # one rank ends before the other
    turns.acquire()
"""


FORGETTING = """
import sys, threading, unisono
sys.setswitchinterval(1e-6)
comm = unisono.init()
begin = threading.Event()

def forget(comms):
    begin.wait()
    while comms:
        comms.pop()

for _ in range(6):
    comms = [comm.dup() for _ in range(12)]
    threading.Thread(target=forget, args=(comms,), daemon=True).start()
del comms
begin.set()
"""


@pytest.mark.parametrize("text", [WORKING, FORGETTING], ids=["work", "forget"])
def test_the_interpreter_ends_while_daemon_threads(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text(text)
    ended = subprocess.run([sys.executable, "-m", "unisono", "run", "-n", "2", sys.executable,
                            program], check=False, text=True, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, "")

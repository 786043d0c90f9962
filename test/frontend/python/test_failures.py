# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls, lost ranks and signals: clear exceptions on every rank, and no hang."""

import asyncio
import gc
import os
import signal
import threading
import time

import numpy
import pytest
import unisono

GOOD = numpy.ones(4)


def read_only():
    array = numpy.ones(4)
    array.flags.writeable = False
    return array


def misaligned():
    return numpy.frombuffer(bytearray(40), numpy.uint8)[1:33].view("f8")


class LendsNothing:
    def __init__(self, why="not now"):
        self.why = why

    def __dlpack__(self, **options):
        raise BufferError(self.why)


WRONG = {
    "type": (lambda c: c.allreduce(GOOD, numpy.ones(4, "f4")), unisono.DatatypeError, "float32"),
    "shape": (lambda c: c.allreduce(GOOD, numpy.ones(5)), unisono.ArgumentError, "5 elements"),
    "short": (lambda c: c.allgather(GOOD, numpy.ones(4)), unisono.ArgumentError, "recv has 4"),
    "read_only": (lambda c: c.allreduce(GOOD, read_only()), unisono.ArgumentError, "read-only"),
    "strides": (lambda c: c.allreduce(numpy.ones(8)[::2]), unisono.ArgumentError, "contiguous"),
    "alignment": (lambda c: c.allreduce(misaligned(), numpy.ones(4)), unisono.ArgumentError,
                  "align"),
    "no_array": (lambda c: c.allreduce("text", GOOD), unisono.DatatypeError, "DLPack"),
    "objects": (lambda c: c.allreduce(numpy.array([{}])), unisono.DatatypeError, "object"),
    "op": (lambda c: c.allreduce(GOOD, op="plus"), unisono.ArgumentError, "plus"),
    "root": (lambda c: c.broadcast(GOOD, root=7), unisono.ArgumentError, "root"),
    "multiple": (lambda c: c.reduce_scatter(numpy.ones(7)), unisono.ArgumentError, "multiple"),
    "block": (lambda c: c.allgatherv(GOOD, numpy.ones(4), counts=[4, 4]), unisono.ArgumentError,
              "not within"),
    "counts": (lambda c: c.allgatherv(GOOD, counts=[4]), unisono.ArgumentError, "1 entries"),
    "negative_count": (lambda c: c.allgatherv(GOOD, counts=[4, -1]), unisono.ArgumentError,
                       "counts: entry 1 is -1"),
    "no_argument": (lambda c: c.allreduce(), TypeError, "signature"),
    "keyword": (lambda c: c.allreduce_start(GOOD, operator="sum"), TypeError, "signature"),
    "root_type": (lambda c: c.broadcast(GOOD, root="0"), TypeError, "root is '0', of type str"),
    "root_float": (lambda c: c.reduce_start(GOOD, root=0.0), TypeError, "root is 0.0, .* float"),
    "root_numpy": (lambda c: c.gather(GOOD, None, numpy.float64(0)), TypeError, "float64"),
    "root_none": (lambda c: c.gather(GOOD, root=None), TypeError, "signature"),
    "root_bits": (lambda c: c.broadcast_plan(GOOD, root=2**40), ValueError, "root is 109951162777"),
    "count_type": (lambda c: c.allgatherv(GOOD, counts=[4.0, 4]), TypeError, "counts: .* 4.0"),
    "count_bits": (lambda c: c.allgatherv(GOOD, counts=[2**70, 4]), ValueError, "counts: .* 1180"),
    "counts_type": (lambda c: c.allgatherv(GOOD, counts=4), TypeError, "counts is not a sequence"),
    "color": (lambda c: c.split("1"), TypeError, "split: color is '1', of type str"),
    "key": (lambda c: c.split(1, key=numpy.float32(1)), TypeError, "split: key is"),
    "color_bits": (lambda c: c.split(-2**31 - 1), ValueError, "color is -2147483649"),
    "no_color": (lambda c: c.split(), TypeError, "split: the arguments"),
    "members": (lambda c: c.subgroup([0, "1"]), TypeError, "subgroup: an entry of ranks is '1'"),
    "no_members": (lambda c: c.subgroup(7), TypeError, "int"),
    "number": (lambda c: c.allreduce(2**70), unisono.ArgumentError, "OverflowError: .*large"),
    "nothing": (lambda c: c.allreduce(None), unisono.DatatypeError, "send is a .*NoneType"),
    "lent": (lambda c: c.allreduce(LendsNothing()), unisono.ArgumentError, "BufferError: not now"),
    "half a pair": (lambda c: c.allreduce(LendsNothing("\udc80")), unisono.ArgumentError,
                    r"BufferError: \\udc80"),
    "types": (lambda c: c.alltoallw(GOOD, [1, 1], [0, 8], ["foo"] * 2, GOOD.copy(), [1, 1], [0, 8],
                                    ["float64"] * 2), unisono.DatatypeError,
              "types: TypeError: 'foo'"),
}


def wrong_call(name):
    call, kind, text = WRONG[name]
    with unisono.init() as world:
        comm = world.dup()
        if comm.rank == 1:
            with pytest.raises(kind, match=text) as caught:
                call(comm)
        else:
            with pytest.raises(unisono.PeerArgumentError) as caught:
                comm.allreduce(GOOD)
        if isinstance(caught.value, unisono.Error):
            assert caught.value.rank == 1
        assert "Traceback" not in str(caught.value)
        world.barrier()
        return True


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_on_every_rank(name):
    assert unisono.spawn(wrong_call, (name,), ranks=2) == [True, True]


def cause():
    with unisono.init() as comm:
        with pytest.raises(unisono.ArgumentError) as caught:
            comm.allreduce(2**70)
        return isinstance(caught.value.__cause__, OverflowError)


def test_an_exception_of_an_argument_is_the_cause():
    assert unisono.spawn(cause, ranks=1) == [True]


class Unreadable:
    def __repr__(self):
        raise LookupError("of its text")


def wrong_numbers():
    """Wrong numbers in calls that no other rank waits for; the communicator goes on."""
    with unisono.init() as comm:
        for call, kind, text in (
                (lambda: comm.publish("1"), TypeError, "publish: value is '1'"),
                (lambda: comm.publish(-1), ValueError, "value is -1; it has to be from 0"),
                (lambda: comm.query("==", 1.0), TypeError, "query: value is 1.0"),
                (lambda: comm.rank_state("0"), TypeError, "rank_state: rank is '0'"),
                (lambda: comm.rank_state(9), ValueError, "rank is 9; it must be in 0 .."),
                (lambda: comm.publish(Unreadable()), LookupError, "of its text"),
                (lambda: setattr(comm, "timeout", None), TypeError, "timeout is a NoneType; it"),
                (lambda: setattr(comm, "timeout", "5"), TypeError, "timeout is a str; it has"),
                (lambda: unisono.init_with(0, 1, bytes, float("nan")), ValueError, "not negative"),
                (lambda: unisono.init_with(0, 1, bytes, -1), ValueError, "not negative"),
                (lambda: unisono.init_with(0, 1, bytes, 1e300), ValueError, "it can be 0 .."),
                (lambda: unisono.init_with("0", 2, bytes), TypeError, "init_with: rank is '0'"),
                (lambda: unisono.init_with(0, 2.0, bytes), TypeError, "init_with: size is 2.0")):
            with pytest.raises(kind, match=text):
                call()
        return comm.allreduce(1)


def test_what_is_no_whole_number():
    assert unisono.spawn(wrong_numbers, ranks=2) == [2, 2]
    with pytest.raises(TypeError, match="ranks is '2', of type str"):
        unisono.spawn(wrong_numbers, ranks="2")


def no_communicator():
    unbound = unisono.Communicator.__new__(unisono.Communicator)
    for what in (None, 5, GOOD, unbound):
        for name in ("allreduce", "allreduce_start", "allreduce_plan"):
            with pytest.raises(TypeError):
                getattr(unisono.Communicator, name)(what, GOOD)
    return True


def test_a_method_of_what_is_no_communicator():
    assert unisono.spawn(no_communicator, ranks=1) == [True]


def only_a_copy():
    comm = unisono.init().dup()  # nobody else holds the communicator of all ranks
    gc.collect()
    halves = comm.split(comm.rank)
    del comm
    gc.collect()
    return halves.allreduce(1)


def test_what_comes_of_a_communicator_keeps_it():
    assert unisono.spawn(only_a_copy, ranks=2) == [1, 1]


def ended():
    world = unisono.init()
    comm = world.dup()
    request = comm.allreduce_start(GOOD)
    request.wait()
    plan = comm.allreduce_plan(GOOD)
    comm.close()
    comm.close()
    for call in (comm.barrier, plan, lambda: comm.allreduce(GOOD), comm.info):
        with pytest.raises(unisono.StateError, match="closed"):
            call()
    assert request.wait().tolist() == [2.0] * 4
    world.close()
    with pytest.raises(unisono.StateError):
        world.barrier()
    with pytest.raises(unisono.StateError):
        unisono.init()
    return True


def test_use_after_the_end():
    assert unisono.spawn(ended, ranks=2) == [True, True]


def forked():
    with unisono.init() as comm:
        request = comm.allreduce_start(GOOD)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                comm.barrier()
            except unisono.StateError as error:
                status = 0 if "parent" in str(error) else 2
            comm.close()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        assert request.wait()[0] == comm.size
        comm.barrier()
        return os.waitstatus_to_exitcode(status)


def test_a_forked_child_has_no_part_in_the_job():
    assert unisono.spawn(forked, ranks=2) == [0, 0]


def leaving_without_waiting():
    comm = unisono.init()
    comm.allreduce_start(numpy.ones(100_000))  # nobody waits for it, and its arrays go
    return comm.rank


def test_the_end_with_operations_in_flight():
    assert unisono.spawn(leaving_without_waiting, ranks=3) == [0, 1, 2]


def killed():
    comm = unisono.init()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(unisono.RankLostError, match="rank 1") as caught:
        comm.allreduce(GOOD)
    state = comm.rank_state(1)
    assert state.state == "lost" and "rank 1 is lost" in state.why
    assert comm.rank_state(0).state == "present" and comm.rank_state(0).why == ""
    with comm.shrink() as rest:
        return caught.value.rank, rest.size


def test_a_killed_rank_is_named():
    with pytest.raises(unisono.SpawnError) as caught:
        unisono.spawn(killed, ranks=3)
    assert caught.value.rank == 1


def interrupted(reader, writer):
    comm = unisono.init()
    comm.barrier()
    if comm.rank == 0:
        main = threading.main_thread().ident
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            comm.barrier()
        os.write(writer, b".")
    else:
        os.read(reader, 1)
    with pytest.raises(unisono.CancelledError) as caught:
        comm.barrier()  # the first of rank 1 may have all that it needs from rank 0
        comm.barrier()
    return caught.value.rank


def test_control_c_ends_a_wait():
    assert unisono.spawn(interrupted, os.pipe(), ranks=2) == [0, 0]


def late(reader, writer):
    with unisono.init() as world:
        comm = world.dup()
        assert comm.timeout == 0
        with pytest.raises(unisono.ArgumentError, match="not negative"):
            comm.timeout = -1.0
        if world.rank == 0:
            comm.timeout = 0.2
            with pytest.raises(unisono.TimeoutError):
                comm.allreduce(GOOD)
            os.write(writer, b".")
        else:
            os.read(reader, 1)
        with pytest.raises(unisono.Error) as caught:
            comm.barrier()
            comm.barrier()
        return caught.value.code == unisono.TimeoutError.code, world.allreduce(1)


def test_a_late_call_ends_at_the_timeout():
    assert unisono.spawn(late, os.pipe(), ranks=2) == [(True, 2)] * 2


def shortened(reader, writer):
    """Another thread gives the call in progress a limit."""
    with unisono.init() as world:
        comm = world.dup()
        if world.rank == 1:
            os.read(reader, 1)
            with pytest.raises(unisono.Error):
                comm.barrier()
                comm.barrier()
            return True
        errors = []

        def wait():
            with pytest.raises(unisono.TimeoutError) as caught:
                comm.barrier()
            errors.append(caught.value)
        thread = threading.Thread(target=wait)
        thread.start()
        comm.timeout = 0.01
        thread.join()
        os.write(writer, b".")
        return len(errors) == 1


def test_a_limit_for_a_call_in_progress():
    assert unisono.spawn(shortened, os.pipe(), ranks=2) == [True, True]


def raising():
    with unisono.init() as comm:
        def divide(left, right):
            raise ZeroDivisionError("by the operator")
        kinds = (ZeroDivisionError, unisono.PeerArgumentError)
        with pytest.raises(kinds):
            comm.allreduce(GOOD, op=divide)
            comm.barrier()
        return True


def test_an_operator_that_raises():
    assert unisono.spawn(raising, ranks=3) == [True] * 3


def raising_on_one_rank(form, count):
    """The result of the call, and that of the next one."""
    with unisono.init() as comm:
        def add(left, right):
            if comm.rank == 0:
                raise ZeroDivisionError("of rank 0")
            return left + right

        def call():
            array = numpy.full(count, comm.rank + 1.0)
            if form == "started":
                return comm.allreduce_start(array, op=add).wait()
            return (comm.allreduce_plan(array, op=add)() if form == "planned"
                    else comm.allreduce(array, op=add))

        def outcome(function):
            try:
                result = function()
                return "fine" if result is None or (result == 6.0).all() else "wrong"
            except (ZeroDivisionError, unisono.PeerArgumentError) as error:
                return f"{type(error).__name__}: {error}"
        return outcome(call), outcome(comm.barrier)


@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("form", ["blocking", "started", "planned"])
def test_an_operator_that_raises_on_one_rank_gives_no_rank_a_wrong_result(form, count):
    outcomes = unisono.spawn(raising_on_one_rank, (form, count), ranks=3)
    told = "the operator failed on rank 0: ZeroDivisionError: of rank 0"
    assert outcomes[0][0] == "ZeroDivisionError: of rank 0"  # rank 0 combines in each of them
    for call, later in outcomes:
        assert call in ("fine", outcomes[0][0]) or told in call
        assert told in later


class OfTwo(Exception):
    """Its pickle calls it with one argument, which it does not take."""

    def __init__(self, what, why):
        super().__init__(f"{what} because of {why}")


def failing_with(rank):
    with unisono.init() as comm:
        if comm.rank == rank:
            raise OfTwo("an end", "the weather")
        comm.barrier()


def test_spawn_tells_of_an_exception_that_cannot_be_unpickled():
    with pytest.raises(unisono.SpawnError, match="an end because of the weather") as caught:
        unisono.spawn(failing_with, (1,), ranks=2)
    assert caught.value.rank == 1
    assert caught.value.__cause__ is None


def never_started():
    with unisono.init() as comm:
        async def forget():
            return await comm.allreduce_plan(GOOD)

        with comm.allreduce_plan(GOOD) as plan:
            with pytest.raises(unisono.StateError, match="has not been started"):
                plan.wait()
            with pytest.raises(unisono.StateError, match="has not been started"):
                asyncio.run(forget())
            total = plan()
            assert plan.wait() is total
        return total[0]


def test_a_plan_that_was_never_started_has_no_result():
    assert unisono.spawn(never_started, ranks=2) == [2.0, 2.0]


def raising_in_a_block():
    with unisono.init() as comm:
        def divide(left, right):
            raise ZeroDivisionError("by the operator")

        other = comm.dup()
        try:
            with other.allreduce_plan(GOOD, op=divide) as plan:
                plan()
        except ZeroDivisionError as error:
            return str(error)
        return None


def test_the_exception_of_an_operator_leaves_the_block_of_its_plan():
    assert unisono.spawn(raising_in_a_block, ranks=1) == [None]
    assert "by the operator" in unisono.spawn(raising_in_a_block, ranks=2)


def masked():
    with unisono.init() as comm:
        hidden = numpy.ma.array([1.0, 2.0], mask=[True, False])
        plain = numpy.ma.array([1.0, 2.0])
        for send, recv in ((hidden, None), (numpy.ones(2), hidden), (unisono.IN_PLACE, hidden)):
            with pytest.raises(unisono.ArgumentError, match="has masked elements"):
                comm.dup().allreduce(send, recv)
        with pytest.raises(unisono.ArgumentError, match="has masked elements"):
            comm.dup().broadcast(hidden)
        return comm.allreduce(plain).tolist(), comm.allreduce(hidden.filled(0)).tolist()


def test_masked_elements_are_refused():
    assert unisono.spawn(masked, ranks=2) == [([2.0, 4.0], [0.0, 4.0])] * 2


def idle(writer):
    unisono.init()
    os.write(writer, b".")
    while True:
        signal.pause()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_ranks_of_spawn_end_with_the_process_that_called_it(number):
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            unisono.spawn(idle, (writer,), ranks=2)
        finally:
            os._exit(1)
    os.close(writer)
    assert os.read(reader, 1) + os.read(reader, 1) == b".."
    os.kill(parent, number)
    os.waitpid(parent, 0)
    assert os.read(reader, 1) == b""  # nobody has the other end any more
    os.close(reader)


def failing_with_one_of_mpi():
    from unisono import mpi as MPI
    if MPI.COMM_WORLD.rank == 1:
        raise MPI.Exception(MPI.ERR_ARG, "an argument of mine")
    MPI.COMM_WORLD.Barrier()


def has_ended(process):
    """The parent may still have to hear of it."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def failing_after_the_other(reading, writing):
    from unisono import mpi as MPI
    if MPI.COMM_WORLD.rank == 0:
        os.write(writing, str(os.getpid()).encode())
        MPI.COMM_WORLD.Barrier()
    other = int(os.read(reading, 100))
    MPI.Finalize()
    while not has_ended(other):
        time.sleep(0.001)
    raise MPI.Exception(MPI.ERR_ARG, "an argument of mine")


def test_spawn_raises_the_cause_and_not_what_came_of_it():
    reading, writing = os.pipe()
    try:
        with pytest.raises(unisono.SpawnError, match="an argument of mine") as caught:
            unisono.spawn(failing_after_the_other, (reading, writing), ranks=2)
        assert caught.value.rank == 1
    finally:
        os.close(reading)
        os.close(writing)


def test_spawn_joins_no_job_for_an_exception_of_mpi():
    with pytest.raises(unisono.SpawnError, match="an argument of mine"):
        unisono.spawn(failing_with_one_of_mpi, ranks=2)
    assert unisono.spawn(size_of_all, ranks=2) == [2, 2]


def size_of_all():
    with unisono.init() as comm:
        return comm.size


def test_spawn_where_children_are_not_waited_for():
    """The kernel then takes the children away itself."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert unisono.spawn(size_of_all, ranks=2) == [2, 2]
        with pytest.raises(unisono.SpawnError, match="of this rank"):
            unisono.spawn(failing, (1,), ranks=2)
    finally:
        signal.signal(signal.SIGCHLD, before)


def raising_with_an_open_request():
    with unisono.init() as world:
        requests = []
        with pytest.raises(KeyError, match="of the program"):
            with world.dup() as comm:
                requests.append(comm.allreduce_start(numpy.ones(2)))
                raise KeyError("of the program")
        with pytest.raises(unisono.StateError, match="outstanding"):
            with comm:
                pass
        return requests[0].wait().tolist(), world.allreduce(1)


def test_an_exception_with_an_open_request_is_the_programs_own():
    assert unisono.spawn(raising_with_an_open_request, ranks=2) == [([2.0, 2.0], 2)] * 2


def closed_with_plans():
    with unisono.init() as world:
        comm = world.dup()
        plan = comm.allreduce_plan(numpy.ones(2))
        plan.start()
        with pytest.raises(unisono.StateError, match="outstanding"):
            comm.close()
        plan.wait()
        comm.close()  # a plan that is not active does not hold it
        plan.close()
        return True


def test_an_active_plan_holds_its_communicator():
    assert unisono.spawn(closed_with_plans, ranks=2) == [True, True]


def job_ended_with_a_request():
    world = unisono.init()
    if world.rank == 0:
        request = world.allreduce_start(GOOD)
        plan = world.allreduce_plan(GOOD)
        world.close()
        for kept in (request, plan):
            with pytest.raises(unisono.StateError, match="closed|has not been started"):
                kept.wait()
    return True


def test_the_end_of_the_job_ends_its_requests():
    assert unisono.spawn(job_ended_with_a_request, ranks=2) == [True, True]


def failing(rank):
    with unisono.init() as comm:
        if comm.rank == rank:
            raise LookupError("of this rank")
        comm.barrier()


def test_spawn_names_the_rank_and_keeps_its_exception():
    with pytest.raises(unisono.SpawnError, match="of this rank") as caught:
        unisono.spawn(failing, (1,), ranks=3)
    assert caught.value.rank == 1
    assert isinstance(caught.value.__cause__, LookupError)

# SPDX-License-Identifier: BSD-3-Clause
"""unisono.mpi: buffer specifications, derived datatypes, Python objects, and errors after which the
communicator goes on. mpi4py's own tests (mpi4py_collectives.py) cover the collectives."""

import array
import collections
import pickle

import ml_dtypes
import numpy
import pytest
import unisono

RANKS = 3


def run(function, *arguments, ranks=RANKS):
    return unisono.spawn(function, arguments, ranks=ranks)


def specifications():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    received = {}
    for name, make in {
        "array": lambda a: a,
        "list": lambda a: [a, MPI.INT],
        "letter": lambda a: (a, "i"),
        "count": lambda a: (a, 2),
        "count and type": lambda a: [a, 2, MPI.INT],
        "count and displacement": lambda a: (a, (2, 0), MPI.INT),
        "four": lambda a: (a, 2, 0, MPI.INT),
        "bytes": lambda a: (a.view("u1"), MPI.INT),
        "other type": lambda a: (a, 2 * 4, MPI.BYTE),
        "buffer": lambda a: memoryview(a),
    }.items():
        mine, all_of_them = numpy.full(2, rank, "i4"), numpy.full(2 * size, -1, "i4")
        comm.Allgather(make(mine), all_of_them)
        received[name] = all_of_them.tolist()
    plain = array.array("d", [rank + 1.0])
    total = array.array("d", [0.0])
    comm.Allreduce(plain, total)
    fortran = numpy.asfortranarray(numpy.full((2, 3), rank, "f8"))
    comm.Bcast(fortran, root=1)
    return received, total[0], fortran.tolist()


def test_buffer_specifications():
    for received, total, fortran in run(specifications):
        assert set(map(tuple, received.values())) == {(0, 0, 1, 1, 2, 2)}, received
        assert total == 6.0
        assert fortran == [[1.0] * 3] * 2


def persistent_in_any_order():
    """Requests that are not active do not count."""
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    total, word = numpy.zeros(1, "i4"), numpy.full(1, comm.rank, "i4")
    requests = [comm.Allreduce_init(numpy.ones(1, "i4"), total), comm.Bcast_init(word, root=1)]
    for _ in range(3):
        assert MPI.Request.Waitany(requests) == MPI.UNDEFINED
        word[0] = comm.rank
        MPI.Prequest.Startall(requests)
        with pytest.raises(MPI.Exception, match="active"):
            requests[0].Start()
        assert {MPI.Request.Waitany(requests) for _ in requests} == {0, 1}
        assert (total[0], word[0]) == (comm.size, 1)
    for request in requests:
        request.Free()


def test_persistent_requests_end_in_any_order():
    run(persistent_in_any_order)


def persistent_after_a_wrong_call():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    total, ones = numpy.zeros(1), numpy.ones(1)
    requests = [comm.Allreduce_init(ones, total) for _ in range(2)]
    requests[0].Start()
    requests[0].Wait()
    before = comm.unisono
    with pytest.raises((ValueError, MPI.Exception)):
        comm.Allreduce(ones, numpy.ones(8)[::2] if comm.rank == 1 else total)
    totals = []
    for _ in range(2):
        total[0] = 0
        requests[0].Start()
        requests[0].Wait()
        totals.append(total[0])
    for request in requests:  # one of the communicator now, one of the failed communicator
        request.Free()
    return totals, comm.unisono is before, comm.allreduce(1)


def test_persistent_requests_start_again_after_a_wrong_call():
    assert run(persistent_after_a_wrong_call) == [([3.0, 3.0], False, 3)] * RANKS


def derived():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    # A column of a matrix, to every second element of a vector.
    column = MPI.DOUBLE.Create_vector(4, 1, 3).Create_resized(0, 8).Commit()
    matrix = numpy.arange(12.0).reshape(4, 3) if rank == 0 else None
    mine = numpy.full(8, -1.0)
    every_second = MPI.DOUBLE.Create_vector(4, 1, 2)
    comm.Scatter((matrix, 1, column) if rank == 0 else None, (mine, 1, every_second))
    # The middle of an array, to all ranks.
    middle = MPI.INT.Create_subarray([4, 4], [2, 2], [1, 1])
    square = numpy.full((4, 4), rank, "i4")
    request = comm.Ibcast((square, 1, middle), root=2)
    request.Wait()
    # Blocks of derived types with counts of their own.
    pair = MPI.SHORT.Create_indexed([1, 1], [0, 3])
    gathered = numpy.full(4 * size + 2, -1, "i2")
    spread = numpy.arange(4, dtype="i2") + 10 * rank
    comm.Allgatherv((spread, 1, pair), (gathered, [1] * size, [0, 1, 2], pair))
    # A prepared call packs at each start.
    plan = comm.Bcast_init((square, 1, middle), root=0)
    square[:] = rank + 5
    plan.Start()
    plan.Wait()
    plan.Free()
    sizes = (column.Get_size(), column.Get_extent(), middle.Get_extent(), pair.Get_extent())
    return mine.tolist(), square.tolist(), gathered.tolist(), sizes


def test_derived_datatypes():
    for rank, (mine, square, gathered, sizes) in enumerate(run(derived)):
        assert mine[::2] == [rank, rank + 3.0, rank + 6.0, rank + 9.0]
        assert mine[1::2] == [-1.0] * 4
        edge = rank + 5
        assert square == [[edge] * 4, [edge, 5, 5, edge], [edge, 5, 5, edge], [edge] * 4]
        assert gathered[:12] == [0, -1, -1, 3, 10, -1, -1, 13, 20, -1, -1, 23]
        assert sizes == (32, (0, 8), (0, 64), (0, 8))


class Colour:
    def __init__(self, name):
        self.name = name


def objects():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    long = comm.bcast("x" * 100_000 if rank == 1 else None, root=1)
    assert long == "x" * 100_000
    assert comm.bcast(b"", root=0) == b""
    parts = comm.alltoall([{"from": rank, "to": to, "more": "y" * to} for to in range(size)])
    assert parts == [{"from": source, "to": rank, "more": "y" * rank} for source in range(size)]
    gathered = comm.gather([rank] * rank, root=2)
    assert gathered == ([[], [1], [2, 2]] if rank == 2 else None)
    assert comm.allreduce("abc"[rank]) == "abc"
    assert comm.scan([rank], lambda left, right: left + right) == list(range(rank + 1))
    assert comm.allreduce((rank % 2, rank), MPI.MAXLOC) == (1, 1)
    half = comm.Split(rank if rank < 2 else MPI.UNDEFINED)
    assert half == MPI.COMM_NULL if rank == 2 else half.allgather(rank) == [rank]
    assert MPI.COMM_SELF.allgather("me") == ["me"]
    assert MPI.COMM_SELF.Dup().size == 1
    return True


def test_python_objects():
    assert run(objects) == [True] * RANKS


def operators():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank = comm.rank

    def first_minus_second(left, right, datatype):
        a, b = (numpy.frombuffer(each, datatype.dtype) for each in (left, right))
        b[:] = a - b

    difference = MPI.Op.Create(first_minus_second)
    total = numpy.zeros(2)
    comm.Allreduce(numpy.array([10.0, 1.0]) / 2**rank, total, difference)
    pairs = numpy.array([(rank * 2.0 - 1, rank)], MPI.DOUBLE_INT.dtype)
    best = numpy.empty_like(pairs)
    comm.Allreduce((pairs, 1, MPI.DOUBLE_INT), (best, 1, MPI.DOUBLE_INT), MPI.MAXLOC)
    counts = numpy.zeros(rank + 1, "i8")
    comm.Reduce_scatter(numpy.arange(comm.size * (comm.size + 1) // 2), counts)
    small = numpy.ones(3, ml_dtypes.bfloat16)
    if rank == 0:
        with pytest.raises(MPI.Exception) as caught:
            MPI.OP_NULL(1, 2)
        assert caught.value.Get_error_class() == MPI.ERR_OP
    return total.tolist(), best[0].tolist(), counts.tolist(), small.size


def test_operators():
    # The order of ranks is kept, and an operator is associative only by chance here.
    for total, best, _, _ in run(operators, ranks=2):
        assert total == [5.0, 0.5]
        assert best == (1.0, 1)
    for rank, (_, _, counts, _) in enumerate(run(operators)):
        assert counts == [[0], [3, 6], [9, 12, 15]][rank]


class Unpicklable:
    def __reduce__(self):
        raise LookupError("\udc80")


def freed_datatype(MPI):
    pair = MPI.DOUBLE.Create_contiguous(2).Commit()
    pair.Free()
    assert not pair and pair == MPI.DATATYPE_NULL
    return pair


def freed_operator(MPI):
    last = MPI.Op.Create(lambda left, right, _: None)
    last.Free()
    assert not last and last == MPI.OP_NULL
    return last


WRONG = {
    "root": (lambda MPI, comm: comm.Bcast(numpy.ones(2), root=9), "ERR_ROOT"),
    "negative root": (lambda MPI, comm: comm.gather(1, root=-1), "ERR_ROOT"),
    "no buffer": (lambda MPI, comm: comm.Allreduce(numpy.ones(2), None), "ERR_ARG"),
    "null type": (lambda MPI, comm: comm.Bcast([numpy.ones(2), MPI.LONG_DOUBLE]), "ERR_TYPE"),
    "room": (lambda MPI, comm: comm.Bcast([numpy.ones(2), 3, MPI.DOUBLE]), ValueError),
    "parts": (lambda MPI, comm: comm.Allgather(numpy.ones(2), numpy.ones(7)), ValueError),
    "strides": (lambda MPI, comm: comm.Bcast(numpy.ones(8)[::2]), ValueError),
    "not a buffer": (lambda MPI, comm: comm.Bcast(7), TypeError),
    "objects": (lambda MPI, comm: comm.Bcast(numpy.array([{}])), ValueError),
    "unpicklable": (lambda MPI, comm: comm.allgather(lambda: 1), (AttributeError,
                                                                  pickle.PicklingError)),
    "a root of text": (lambda MPI, comm: comm.Bcast(numpy.ones(2), root="1"), TypeError),
    "a root that is a float": (lambda MPI, comm: comm.bcast(1, root=1.0), TypeError),
    "a count that is a float": (lambda MPI, comm: comm.Bcast([numpy.ones(2), 2.0]), TypeError),
    "counts of text": (lambda MPI, comm: comm.Allgatherv(
        numpy.ones(2), [numpy.ones(6), ["2", "2", "2"]]), TypeError),
    "recvcounts that are floats": (lambda MPI, comm: comm.Reduce_scatter(
        numpy.ones(3), numpy.ones(1), [1.0, 1.0, 1.0]), TypeError),
    "half a surrogate pair": (lambda MPI, comm: comm.allgather(Unpicklable()), LookupError),
    "a keyword": (lambda MPI, comm: comm.bcast(3, rooot=0), TypeError),
    "an argument too few": (lambda MPI, comm: comm.Iallreduce(numpy.ones(2)), TypeError),
    "arguments of a plan": (lambda MPI, comm: comm.Barrier_init(1, 2), TypeError),
    "arguments of a Split": (lambda MPI, comm: comm.Split(colour=1), TypeError),
    "a kind of Split": (lambda MPI, comm: comm.Split_type(77), "ERR_ARG"),
    "a freed datatype": (lambda MPI, comm: comm.Bcast([numpy.ones(4), freed_datatype(MPI)]),
                         "ERR_TYPE"),
    "a freed operator": (lambda MPI, comm: comm.Allreduce(
        numpy.ones(2), numpy.ones(2), freed_operator(MPI)), "ERR_OP"),
    "derived reduction": (lambda MPI, comm: comm.Allreduce(
        MPI.IN_PLACE, [numpy.ones(4), 1, MPI.DOUBLE.Create_contiguous(4)]), TypeError),
}


def wrong_call(name):
    from unisono import mpi as MPI
    call, kind = WRONG[name]
    comm = MPI.COMM_WORLD.Dup()
    if comm.rank == 1:
        if isinstance(kind, str):
            with pytest.raises(MPI.Exception) as caught:
                call(MPI, comm)
            assert caught.value.Get_error_class() == getattr(MPI, kind)
        else:
            with pytest.raises(kind):
                call(MPI, comm)
    else:
        with pytest.raises(MPI.Exception, match="rank 1") as caught:
            comm.Allreduce(numpy.ones(2), numpy.ones(2))
        assert caught.value.rank == 1
        assert isinstance(caught.value.__cause__, unisono.PeerArgumentError)
    # The communicator has all its members, so it goes on.
    return [comm.allreduce(comm.rank) for _ in range(2)]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_an_error_on_every_rank_and_the_communicator_goes_on(name):
    assert run(wrong_call, name) == [[3, 3]] * RANKS


def heard_later():
    """The others only send in call 2, so they hear of the root's error in a later call."""
    from unisono import mpi as MPI
    comm, results = MPI.COMM_WORLD, []
    for call in range(12):
        total = numpy.zeros(1)
        try:
            if call == 2:
                comm.Gather(numpy.ones(2), numpy.ones(7) if comm.rank == 0 else None, root=0)
            elif 3 <= call < 6:
                comm.Gather(numpy.ones(1), numpy.ones(RANKS) if comm.rank == 0 else None, root=0)
            else:
                comm.Allreduce(numpy.array([10.0**call]), total)
            results.append(total[0])
        except (ValueError, MPI.Exception) as error:
            results.append(str(error))
    return results


def test_ranks_that_hear_of_an_error_later_go_on_with_the_same_call():
    every = run(heard_later)
    for call, results in enumerate(zip(*every)):
        for result in results:  # of call `call`, or an error that says why
            assert isinstance(result, str) or result in (0.0, RANKS * 10.0**call), every
    assert every[0][2].startswith("message: 7 elements"), every
    assert [results[-1] for results in every] == [RANKS * 10.0**11] * RANKS


def rank_leaves_after_an_error():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    if comm.rank == 1:
        with pytest.raises(ValueError):
            comm.Bcast(numpy.ones(8)[::2])
        return []
    with pytest.raises(MPI.Exception):
        comm.Allreduce(numpy.ones(4), numpy.ones(4))
    errors = []
    for _ in range(2):
        with pytest.raises(MPI.Exception) as caught:
            comm.allreduce(1)
        errors.append((caught.value.Get_error_class(), str(caught.value), comm.size))
    rest = comm.Shrink()
    assert errors[0][0] == MPI.ERR_PROC_FAILED
    return [errors, rest.size, rest.allreduce(comm.rank)]


def test_a_rank_that_leaves_after_an_error_is_missed():
    first, gone, last = run(rank_leaves_after_an_error)
    assert gone == []
    for errors, size, total in (first, last):
        assert [text for _, text, _ in errors] == [
            "1 of the communicator's 3 ranks have left or are lost; Shrink() makes one of the "
            "others"] * 2
        assert [before for _, _, before in errors] == [RANKS] * 2
        assert (size, total) == (2, 2)


def of_objects():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    counted = MPI.Op.Create(lambda left, right, _: left + right, commute=True)
    every = comm.allreduce(collections.Counter({comm.rank: 1, "all": 1}), op=counted)
    scalar = numpy.float64(1.0)
    with pytest.raises(MPI.Exception) as caught:
        comm.Allreduce(MPI.IN_PLACE, scalar)
    same = [pickle.loads(pickle.dumps(each)) is each for each in (MPI.INT, MPI.SUM, MPI.MAXLOC)]
    return dict(every), counted(2, 3), caught.value.Get_error_class() != 0, same


def test_operators_of_objects():
    for every, total, is_refused, same in run(of_objects):
        assert every == {0: 1, 1: 1, 2: 1, "all": 3}
        assert (total, is_refused, same) == (5, True, [True] * 3)


def less_usual_specifications():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    # A transpose: each rank has rows, and sends columns.
    rows = numpy.arange(size, dtype="i4") + 10 * rank
    columns = numpy.zeros(size, "i4")
    pick = [MPI.INT.Create_indexed_block(1, [peer]) for peer in range(size)]
    for each in pick:
        each.Commit()
    comm.Alltoallw([rows, pick], [columns, pick])
    # 5 elements on 3 ranks
    part = numpy.zeros(2 if rank < 2 else 1)
    comm.Scatterv(numpy.arange(5.0) if rank == 0 else None, part, root=0)
    pair = numpy.arange(4.0) + rank
    comm.Bcast([pair, [2, 1], MPI.DOUBLE], root=1)
    comm.Alltoallv([None, [0] * size, MPI.DOUBLE], [None, [0] * size, MPI.DOUBLE])
    letter = MPI._typedict["d"] is MPI.DOUBLE
    return columns.tolist(), part.tolist(), pair.tolist(), letter


def test_less_usual_specifications():
    for rank, (columns, part, pair, letter) in enumerate(run(less_usual_specifications)):
        assert columns == [rank, 10 + rank, 20 + rank]
        assert part == [[0.0, 1.0], [2.0, 3.0], [4.0]][rank]
        assert pair == [rank + 0.0, 2.0, 3.0, rank + 3.0]
        assert letter


def freed_with_requests():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD.Dup()
    inner = comm.unisono
    total = numpy.zeros(2)
    requests = [comm.Iallreduce(numpy.ones(1), total[i:i + 1]) for i in range(2)]
    comm.Free()
    before = inner.is_open
    first = MPI.Request.Waitany(requests)
    done = MPI.Request.Waitsome(requests)
    comm.Free()
    none = MPI.Request.Testany(requests)
    return before, inner.is_open, total.tolist(), sorted([first, *done]), none


def test_a_communicator_is_freed_behind_its_requests():
    assert run(freed_with_requests) == [(True, False, [3.0, 3.0], [0, 1], (-32766, True))] * RANKS


def freed_with_persistent_requests():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD.Dup()
    inner = comm.unisono
    total = numpy.zeros(1)
    requests = [comm.Allreduce_init(numpy.ones(1), total) for _ in range(2)]
    requests[0].Start()
    comm.Free()
    assert not comm
    with pytest.raises(MPI.Exception, match="COMM_NULL"):
        comm.Barrier()
    requests[0].Wait()
    totals = [total[0]]
    for request in requests:
        total[0] = 0
        request.Start()
        request.Wait()
        totals.append(total[0])
    requests[0].Free()
    before = inner.is_open
    requests[1].Free()
    return totals, before, inner.is_open


def test_a_communicator_is_freed_behind_its_persistent_requests():
    assert run(freed_with_persistent_requests) == [([3.0] * 3, True, False)] * RANKS


def copies():
    from unisono import mpi as MPI

    class Mine(MPI.Intracomm):
        def __init__(self, comm, word="none"):
            self.word = word

        def __new__(cls, comm=None, *_):
            return super().__new__(cls, comm)

    comm = MPI.COMM_WORLD
    mine = Mine(comm, "a word")
    assert (mine.allreduce(1), mine.word) == (comm.size, "a word")
    assert mine == comm and hash(mine) == hash(comm) and mine != comm.Dup()
    copy = mine.Dup()
    assert type(copy) is Mine and MPI.Comm(copy).allgather(1) == [1] * comm.size
    again = MPI.Intracomm(copy)
    copy.Free()
    assert not again and again == MPI.COMM_NULL == MPI.Intracomm()
    assert MPI.Op(MPI.SUM) == MPI.SUM != MPI.MAX
    assert MPI.Op() == MPI.OP_NULL
    total = numpy.zeros(1, "i4")
    kind = MPI.Datatype(MPI.INT)
    comm.Allreduce([numpy.ones(1, "i4"), kind], total, MPI.Op(MPI.SUM))
    assert kind == MPI.INT != MPI.LONG and total[0] == comm.size
    return [pickle.loads(pickle.dumps(each)) == each for each in (kind, MPI.Op(MPI.SUM))]


def test_copies_have_the_same_handle():
    assert run(copies) == [[True, True]] * RANKS


def truth_values():
    from unisono import mpi as MPI
    comm, seen = MPI.COMM_WORLD, []

    def alike(left, right, datatype):
        seen.append(datatype)
        a, b = (numpy.frombuffer(each, datatype.tocode()) for each in (left, right))
        b[:] = ~(a ^ b)
    result = numpy.zeros(2, bool)
    comm.Allreduce(numpy.array([comm.rank == 0, True]), result, MPI.Op.Create(alike))
    return result.tolist(), all(each is MPI.C_BOOL for each in seen)


def test_an_operator_of_the_program_on_truth_values():
    assert run(truth_values, ranks=2) == [([False, True], True)] * 2


def about_communicators():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    host = comm.Split_type(MPI.COMM_TYPE_SHARED, key=-comm.rank)
    nothing = comm.Split_type(MPI.UNDEFINED)
    assert nothing == MPI.COMM_NULL
    pairs = [(comm, MPI.Intracomm(comm)), (comm, comm.Dup(MPI.INFO_NULL)), (comm, host),
             (comm, comm.Split(comm.rank)), (MPI.COMM_SELF, comm.Split(comm.rank))]
    names = [MPI.IDENT, MPI.CONGRUENT, MPI.SIMILAR, MPI.UNEQUAL, MPI.CONGRUENT]
    assert [MPI.Comm.Compare(*pair) for pair in pairs] == names
    comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    assert comm.Get_errhandler() is MPI.ERRORS_ARE_FATAL
    assert comm.Get_attr(MPI.TAG_UB) > 0 and comm.Get_attr(MPI.KEYVAL_INVALID) is None
    sizes = host.allgather(comm.rank)
    host.Disconnect()
    return sizes, bool(host)


def test_hosts_and_comparisons():
    assert run(about_communicators) == [([2, 1, 0], False)] * RANKS


def statuses():
    from unisono import mpi as MPI
    comm, kept, status = MPI.COMM_WORLD, [], MPI.Status()
    request = comm.Ibarrier()
    while not request.Get_status(status):
        pass
    assert request
    MPI.Request.Waitall([request, comm.Ibarrier()], kept)
    assert [type(each) for each in kept] == [MPI.Status] * 2
    while not MPI.Request.Testall([request], kept):
        pass
    fixed, more = (MPI.Status(), MPI.Status()), [comm.Ibarrier(), comm.Ibarrier()]
    while not MPI.Request.Get_status_all(more, fixed) or not more[0].get_status():
        pass
    assert all(more)
    MPI.Request.Waitall(tuple(more), fixed)  # a tuple gets no more of them
    return (len(kept), bool(request), status.Get_source(), status.Get_tag(),
            status.Get_count(MPI.DOUBLE), status.Get_elements(MPI.DOUBLE))


def test_statuses():
    assert run(statuses) == [(2, False, -1, -1, 0, 0)] * RANKS


def null_requests():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    waited, tested, prepared = comm.Ibarrier(), comm.Ibarrier(), comm.Barrier_init()
    assert waited != MPI.REQUEST_NULL and waited != tested and waited == waited
    assert waited in {waited} and waited != 0
    MPI.Request.Waitall([waited])
    while tested != MPI.REQUEST_NULL:
        tested.Test()
    assert waited == MPI.REQUEST_NULL == tested
    prepared.Start()
    prepared.Wait()
    assert prepared != MPI.REQUEST_NULL  # it can be started again
    prepared.Free()
    assert prepared == MPI.REQUEST_NULL
    return True


def test_a_request_that_has_ended_is_the_null_one():
    assert run(null_requests) == [True] * RANKS


def smaller_names():
    from unisono import mpi as MPI
    assert MPI.Compute_dims(12, 2) == [4, 3] and MPI.Compute_dims(12, [0, 2, 0]) == [3, 2, 2]
    assert MPI.Compute_dims(7, 3) == [7, 1, 1]
    with pytest.raises(MPI.Exception):
        MPI.Compute_dims(7, [2, 0])
    assert (MPI.VERSION, MPI.SUBVERSION) == MPI.Get_version()
    assert len(MPI.Get_processor_name()) < MPI.MAX_PROCESSOR_NAME
    assert MPI.Datatype.fromcode("d") == MPI.DOUBLE
    assert MPI.Datatype.Match_size(MPI.TYPECLASS_REAL, 4).Get_size() == 4
    spread = MPI.INT.Create_indexed([1, 1], [1, 3]).Create_resized(0, 32)
    assert (spread.Get_extent(), spread.Get_true_extent()) == ((0, 32), (4, 12))
    info = MPI.Info.Create({"key": "value"})
    assert info.Get("key") == info["key"] == "value" and not MPI.INFO_NULL
    with pytest.raises(AttributeError, match="mpi.Win is no part of unisono.mpi"):
        MPI.Win
    with pytest.raises(AttributeError, match="Intracomm.Send is no part.*use-from-python.md"):
        MPI.COMM_WORLD.Send(numpy.ones(1), 0)
    MPI.pickle.__init__(lambda value: b"!" + pickle.dumps(value),
                        lambda data: pickle.loads(data[1:]))
    return MPI.COMM_WORLD.allgather("text")


def test_smaller_names():
    assert run(smaller_names) == [["text"] * RANKS] * RANKS


class OnADevice:
    """As the array of a GPU's library describes its memory."""

    def __init__(self, array, shift=0):
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3, "shape": array.shape, "typestr": array.dtype.str, "strides": None,
            "data": (array.ctypes.data + shift, False)}


def device_memory():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    managed = OnADevice(numpy.full(3, comm.rank + 1.0))
    comm.Allreduce(MPI.IN_PLACE, managed)
    away = OnADevice(numpy.ones(3), shift=2**60)
    with pytest.raises(ValueError, match="cannot read"):
        comm.Bcast(away)
    return managed.array.tolist()


def whole_numbers():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    one = numpy.int64(1)
    mine, every = numpy.full(1, comm.rank), numpy.empty(comm.size, int)
    comm.Allgatherv(mine, [every, numpy.ones(comm.size, "i4"), numpy.arange(comm.size)])
    comm.Bcast([mine, one], root=one)
    with comm.unisono.split(numpy.int32(0)) as same:
        return every.tolist(), mine.tolist(), comm.bcast(comm.rank, one), same.size


def test_whole_numbers_of_numpy():
    assert run(whole_numbers) == [([0, 1, 2], [1], 1, RANKS)] * RANKS


def test_memory_of_devices_that_the_host_can_read():
    assert run(device_memory, ranks=2) == [[3.0] * 3] * 2

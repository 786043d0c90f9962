# SPDX-License-Identifier: BSD-3-Clause
"""unisono.mpi: what belongs to communicators, as groups, attributes and infos. mpi4py's own tests
(mpi4py_collectives.py) cover infos and groups of one rank each."""

import pickle

import numpy
import pytest
import unisono

RANKS = 4


def run(function, *arguments, ranks=RANKS):
    return unisono.spawn(function, arguments, ranks=ranks)


def of_groups():
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    everyone = comm.Get_group()
    assert (everyone.size, everyone.rank, everyone) == (size, rank, comm.group)
    backwards = comm.Create(everyone.Range_incl([(size - 1, 0, -1)]))
    assert backwards.rank == size - 1 - rank
    assert backwards.Compare(comm) == MPI.SIMILAR
    assert comm.group.Translate_ranks([0], backwards.group) == [size - 1]
    # Each half passes its own group.
    half = comm.Create(everyone.Incl([0, 1] if rank < 2 else [3, 2]))
    members = half.allgather(rank)
    # Ranks that are in no group.
    first = comm.Create(everyone.Incl([2, 0]) if rank % 2 == 0 else MPI.GROUP_EMPTY)
    assert (not first) == (rank % 2 == 1)
    inner = None if not first else (first.allgather(rank), first.group.Translate_ranks())
    # A communicator of a communicator.
    again = half.Create(half.group.Excl([0]))
    return members, inner, again.allgather(rank) if again else None


def test_communicators_of_groups():
    assert run(of_groups) == [([0, 1], ([2, 0], [2, 0]), None), ([0, 1], None, [1]),
                              ([3, 2], ([2, 0], [2, 0]), [2]), ([3, 2], None, None)]


def refused_groups():
    """Rank 2 has no group, so that its call cannot be made. The communicator goes on."""
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    everyone = comm.group
    with pytest.raises(MPI.Exception) as caught:
        comm.Create(MPI.GROUP_NULL if comm.rank == 2 else everyone)
    assert comm.allreduce(1) == comm.size
    outside = comm.Create(everyone.Incl([comm.rank]))
    with pytest.raises(MPI.Exception) as own:
        outside.Create(everyone)
    assert own.value.ierr == MPI.ERR_GROUP
    assert caught.value.ierr == (MPI.ERR_GROUP if comm.rank == 2 else MPI.ERR_OTHER)
    return "GROUP_NULL" in str(caught.value)


def test_a_wrong_group_is_an_error_on_every_rank():
    assert run(refused_groups) == [True] * 4


def different_groups():
    """Rank 0 wants one rank less than the others. Only members can notice it."""
    from unisono import mpi as MPI
    comm = MPI.COMM_WORLD
    group = comm.group.Incl([0, 1] if comm.rank == 0 else [0, 1, 2])
    try:
        return bool(comm.Create(group)), comm.allreduce(1)
    except MPI.Exception as error:
        assert error.ierr == MPI.ERR_GROUP
        return "error", comm.allreduce(1)


def test_different_groups():
    assert run(different_groups) == [("error", 4), (True, 4), (True, 4), (False, 4)]


def attributes():
    from unisono import mpi as MPI
    seen = []
    key = MPI.Comm.Create_keyval(lambda comm, key, value: value + ["copy"],
                                 lambda comm, key, value: seen.append(value))
    left = MPI.Comm.Create_keyval()
    shared = MPI.Comm.Create_keyval(copy_fn=True)
    declined = MPI.Comm.Create_keyval(lambda comm, key, value: NotImplemented)
    comm = MPI.COMM_WORLD.Dup()
    for each in (key, left, shared, declined):
        assert comm.Get_attr(each) is None
        comm.Set_attr(each, ["first"])
    assert MPI.Intracomm(comm).Get_attr(key) == ["first"]
    made = comm.Dup()
    assert made.Get_attr(key) == ["first", "copy"]
    assert made.Get_attr(left) is None and made.Get_attr(declined) is None
    assert made.Get_attr(shared) is comm.Get_attr(shared)
    made.Set_attr(key, ["second"])  # which ends the first one
    comm.Delete_attr(key)
    with pytest.raises(MPI.Exception) as caught:
        comm.Delete_attr(key)
    made.Free()
    with pytest.raises(MPI.Exception):
        comm.Set_attr(MPI.TAG_UB, 1)
    assert MPI.Comm.Free_keyval(key) == MPI.KEYVAL_INVALID
    return seen, caught.value.ierr == MPI.ERR_KEYVAL


def test_attributes():
    ended = [["first", "copy"], ["first"], ["second"]]
    assert run(attributes, ranks=2) == [(ended, True)] * 2


def infos():
    from unisono import mpi as MPI
    hints = MPI.Info.Create({"one": "1"})
    hints.update([("two", "2")], three="3")
    made, request = MPI.COMM_WORLD.Idup_with_info(hints)
    request.Wait()
    assert made.info.items() == hints.items()
    made.info = MPI.Info.Create()
    assert made.Dup_with_info(hints).Dup().info.get("two") == "2"
    assert hints.pop("one") == "1" and hints.pop("one", "none") == "none"
    assert (hints.keys(), hints.values(), list(hints)) == (["two", "three"], ["2", "3"],
                                                          ["two", "three"])
    for wrong, kind in ((lambda: hints.Delete("one"), MPI.ERR_INFO_NOKEY),
                        (lambda: hints.Set("", "1"), MPI.ERR_INFO_KEY),
                        (lambda: hints.Set("x" * (MPI.MAX_INFO_KEY + 1), "1"), MPI.ERR_INFO_KEY),
                        (lambda: hints.Set("x", "1" * (MPI.MAX_INFO_VAL + 1)),
                         MPI.ERR_INFO_VALUE)):
        with pytest.raises(MPI.Exception) as caught:
            wrong()
        assert caught.value.ierr == kind
    del hints["two"]
    hints.clear()
    assert hints and len(hints) == 0
    assert MPI.INFO_NULL.get("one") is None and MPI.INFO_NULL.keys() == []
    with pytest.raises(KeyError):
        MPI.INFO_NULL["one"] = "1"
    return made.info.keys(), made.allreduce(1)


def test_infos():
    assert run(infos, ranks=2) == [([], 2)] * 2


def statuses_and_requests():
    from unisono import mpi as MPI
    status = MPI.Status()
    status.Set_elements(MPI.INT, 3)
    status.Set_source(1)
    copied = MPI.Status(status)
    assert copied == status and copied is not status
    status.Set_tag(7)
    assert copied != status
    assert (copied.Get_count(MPI.SHORT), copied.Get_count(MPI.DOUBLE), copied.count) == (
        6, MPI.UNDEFINED, 12)
    requests = [MPI.COMM_WORLD.Ibarrier(), MPI.REQUEST_NULL]
    while not MPI.Request.get_status_all(requests):
        pass
    assert MPI.Request.Get_status_some(requests) == [0]
    assert MPI.Request.get_status_any(requests) == (0, True)
    assert MPI.Request.waitsome(requests) == ([0], [None])
    assert MPI.Request.testsome(requests) == (None, None)
    assert MPI.Request.Get_status_any(requests, status) == (MPI.UNDEFINED, True)
    assert status.source == MPI.ANY_SOURCE  # as of no request
    MPI.REQUEST_NULL.free()
    return True


def test_statuses_and_requests():
    assert run(statuses_and_requests, ranks=2) == [True] * 2


def frees():
    """Lower case frees what can be freed, and passes by the rest."""
    from unisono import mpi as MPI
    for kept in (MPI.COMM_NULL, MPI.COMM_WORLD, MPI.SUM, MPI.OP_NULL, MPI.INT, MPI.DATATYPE_NULL,
                 MPI.INFO_NULL, MPI.GROUP_NULL, MPI.ERRORS_RETURN):
        is_there = bool(kept)
        kept.free()
        assert bool(kept) == is_there
    freed = (MPI.COMM_WORLD.Dup(), MPI.INT.Create_contiguous(2), MPI.Info.Create(),
             MPI.COMM_WORLD.group, MPI.Op.Create(lambda left, right, datatype: left))
    for each in freed:
        each.free()
        assert not each
    return MPI.COMM_WORLD.allreduce(1)


def test_frees():
    assert run(frees, ranks=2) == [2, 2]


def pickled():
    from unisono import mpi as MPI
    for name in ("COMM_WORLD", "COMM_SELF", "COMM_NULL", "GROUP_EMPTY", "GROUP_NULL", "INFO_NULL",
                 "INFO_ENV"):
        assert pickle.loads(pickle.dumps(getattr(MPI, name))) is getattr(MPI, name)
    assert pickle.loads(pickle.dumps(MPI.Info.Create({"a": "b"}))).items() == [("a", "b")]
    with pytest.raises(ValueError, match="predefined"):
        pickle.dumps(MPI.COMM_WORLD.Dup())
    return True


def test_predefined_objects_are_pickled_by_name():
    assert run(pickled, ranks=1) == [True]


def described():
    from unisono import mpi as MPI
    for name, text, letter in (("DOUBLE", "f8", "d"), ("INT", "i4", "i"), ("BYTE", "u1", "B"),
                               ("CHAR", "S1", "c"), ("C_BOOL", "b1", "?"),
                               ("FLOAT_INT", "V8", "V"), ("DATATYPE_NULL", "", "")):
        datatype = getattr(MPI, name)
        assert (datatype.Get_name(), datatype.name) == (f"MPI_{name}", f"MPI_{name}")
        assert (datatype.typestr, datatype.typechar) == (text, letter)
        assert pickle.loads(pickle.dumps(datatype)) == datatype
        assert repr(datatype) == f"unisono.mpi.{name}"
    assert MPI.INT_INT.Get_name() == "MPI_2INT"
    assert pickle.loads(pickle.dumps(MPI.INT_INT)) is MPI.INT_INT
    with pytest.raises(TypeError, match="not None"):
        MPI.COMM_SELF.Bcast(None)
    return True


def test_datatypes_are_described_as_in_mpi4py():
    assert run(described, ranks=1) == [True]


def counts_of_no_dimension():
    from unisono import mpi as MPI
    received = numpy.zeros(2)
    MPI.COMM_SELF.Allgatherv(numpy.ones(2), [received, numpy.array(2), numpy.array(0), MPI.DOUBLE])
    return received.tolist()


def test_counts_of_no_dimension():
    assert run(counts_of_no_dimension, ranks=1) == [[1.0, 1.0]]

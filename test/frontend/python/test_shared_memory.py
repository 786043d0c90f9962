# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in memory that the ranks of a host share: contents, results, life time, errors."""

import gc
import os

import ml_dtypes
import numpy
import pytest
import unisono

LONG = 300_000


def shared_bytes():
    """This process's bytes in the job's memory file and other shared memory."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssShmem"))


def contents():
    with unisono.init() as comm:
        for dtype in ("int8", "uint16", numpy.int64, numpy.float16, "float32", numpy.float64,
                      numpy.complex128, bool, ml_dtypes.bfloat16, "bfloat16", "datetime64[s]", "S5",
                      [("value", "f8"), ("index", "i4")]):
            array = comm.empty((3, 5), dtype)
            expected = numpy.zeros((3, 5), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
            assert array.dtype == expected.dtype and array.shape == (3, 5)
            assert array.tobytes() == expected.tobytes()
            assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
        assert comm.empty(4).dtype == numpy.float64 and comm.empty(numpy.int32(4)).shape == (4,)
        assert comm.empty(()).shape == () and comm.empty([2, 0, 3]).size == 0
        before = shared_bytes()
        comm.empty(LONG)[:] = 1
        arrays = [comm.empty(LONG), comm.empty(LONG)]
        for array in arrays:
            array[:] = 1
        return shared_bytes() - before > 8 * LONG * 3 // 2  # the kernel counts in steps of pages


def test_contents_types_and_shapes():
    assert unisono.spawn(contents, ranks=2) == [True, True]


def reductions(sharing):
    with unisono.init() as comm:
        rank, size = comm.rank, comm.size
        make = comm.empty if sharing >> rank & 1 else numpy.empty
        for dtype in ("float32", "int64"):
            send, receive, all_blocks = (make(LONG * n, dtype) for n in (1, 1, size))
            expected = (numpy.arange(LONG) % 7 * size + size * (size - 1) // 2).astype(dtype)
            for _ in range(3):
                send[:] = numpy.arange(LONG) % 7 + rank
                assert comm.allreduce(send, receive) is receive
                numpy.testing.assert_array_equal(receive, expected)
                with comm.allreduce_plan(unisono.IN_PLACE, send) as plan:
                    plan()
                numpy.testing.assert_array_equal(send, expected)
                all_blocks[:] = rank + 1
                comm.reduce_scatter(all_blocks, receive)
                assert (receive == size * (size + 1) // 2).all()
                send[:] = rank
                comm.allgather(send, all_blocks)
                assert all_blocks.reshape(size, LONG)[:, -1].tolist() == list(range(size))
    return True


@pytest.mark.parametrize("sharing", [0b111, 0b001])
@pytest.mark.parametrize("ranks", [2, 3])
def test_reductions_whoever_shares(ranks, sharing):
    assert unisono.spawn(reductions, (sharing,), ranks=ranks) == [True] * ranks


def lifetime():
    world = unisono.init()
    comm = world.dup()
    held = shared_bytes()
    for _ in range(20):  # freed with the last view over it
        row = comm.empty((2, LONG))[1]
        row[:] = 1
    assert shared_bytes() <= held + 3 * 8 * LONG
    request = comm.allreduce_start(comm.empty(LONG))  # nobody else has this array
    assert (request.wait() == 0).all()
    array, view = comm.empty(LONG), comm.empty(LONG)[7:9]
    array[:] = 3
    comm.close()
    del comm
    gc.collect()
    assert array.sum() == 3 * LONG and world.allreduce(array)[-1] == 3 * world.size
    world.close()
    array += 1
    view[:] = 5
    assert array.sum() == 4 * LONG
    before = shared_bytes()
    del array
    assert shared_bytes() <= before - 8 * LONG // 2
    return view.tolist()


def test_an_array_outlives_its_communicators():
    assert unisono.spawn(lifetime, ranks=2) == [[5.0, 5.0]] * 2


def forked():
    with unisono.init() as comm:
        array = comm.empty(LONG)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                array[:] = 7
                comm.empty(5)
            except unisono.StateError as error:
                status = 0 if "parent" in str(error) else 2
            del array
            gc.collect()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (array == 7).all()  # the child wrote it, and has not freed it
        return comm.allreduce(array)[-1]


def test_a_forked_child_shares_the_array():
    assert unisono.spawn(forked, ranks=2) == [14.0, 14.0]


def wrong_arguments():
    with unisono.init() as comm:
        for shape in (-1, (2, -3)):
            with pytest.raises(unisono.ArgumentError, match="negative"):
                comm.empty(shape)
        for shape in ("abc", 2.5, (2, 1.5), None):
            with pytest.raises(unisono.ArgumentError, match="sequence of integers"):
                comm.empty(shape)
        with pytest.raises(unisono.DatatypeError, match="Python objects"):
            comm.empty(3, object)
        with pytest.raises(unisono.DatatypeError, match="no type of NumPy"):
            comm.empty(3, "float33")
        with pytest.raises(unisono.ResourcesError, match="address space"):
            comm.empty(2**62, "f8")
        with pytest.raises(unisono.ResourcesError):
            comm.empty(2**59, "f8")
        with pytest.raises(TypeError):
            comm.empty()
        total = comm.allreduce(1)  # none of these ends the communicator
        with comm.dup() as other:
            pass
        with pytest.raises(unisono.StateError, match="closed"):
            other.empty(3)
        return total


def test_wrong_arguments_leave_the_communicator():
    assert unisono.spawn(wrong_arguments, ranks=2) == [2, 2]


def left_over():
    """The interpreter ends while arrays, and a view in a cycle, still exist."""
    with unisono.init() as comm:
        kept = {"array": comm.empty(LONG)}
        kept["itself"] = kept
    kept_until_the_end.append(kept)
    return True


kept_until_the_end = []


def test_the_interpreter_ends_with_arrays():
    assert unisono.spawn(left_over, ranks=2) == [True, True]

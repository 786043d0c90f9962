# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are functions of Python may keep their arrays, and change them."""

import numpy
import pytest
import unisono

COUNTS = (1, 1000, 300_000)


def keeping(dtype):
    """Whether what a function has kept is the same after more calls, and after the job's end."""
    kept = []

    def add(left, right):
        if len(kept) < 30:
            kept.extend((each, each.tobytes()) for each in (left, right[1:], memoryview(left)))
        return left + right

    with unisono.init() as comm:
        for count in COUNTS:
            mine = numpy.ones(count, dtype)
            total = comm.allreduce(mine, op=add)
            assert (total == (True if dtype is bool else comm.size)).all()
            comm.allreduce_start(mine, op=add).wait()
            with comm.allreduce_plan(mine, op=add) as plan:
                plan()
            comm.allreduce(mine * 0, op="sum")
    return len(kept), all(numpy.asarray(each).tobytes() == before for each, before in kept)


@pytest.mark.parametrize("dtype", ["f8", "i4", bool])
def test_a_function_keeps_its_arrays(dtype):
    found = unisono.spawn(keeping, (dtype,), ranks=3)
    assert all(are_same for _, are_same in found)
    assert any(count > 0 for count, _ in found)


def changing():
    def add(left, right):
        right += left
        left[:] = -1
        return right

    with unisono.init() as comm:
        return [comm.allreduce(numpy.full(count, comm.rank + 1.0), op=add)[-1] for count in COUNTS]


def test_a_function_changes_its_arrays():
    assert unisono.spawn(changing, ranks=3) == [[6.0] * len(COUNTS)] * 3


def locals_of(error):
    trace = error.__traceback__
    while trace is not None:
        yield from trace.tb_frame.f_locals.values()
        trace = trace.tb_next


def looking_at_frames(count, fails):
    """How many arrays of the frames of an exception are not what they were."""
    def fail(left, right):
        raise LookupError(left[0], right[0])

    errors = []
    with unisono.init() as comm:
        try:
            # The result of the second one has another length.
            comm.allreduce(numpy.full(count, 2.0),
                           op=fail if fails else lambda left, right: numpy.full(count + 1, 2.0))
            comm.barrier()
        except (LookupError, ValueError) as error:
            errors.append(error)
        except unisono.PeerArgumentError:
            return 0
    changed = 0
    for each in locals_of(errors[0]):
        if isinstance(each, numpy.ndarray):
            changed += not (each == 2.0).all()
        elif isinstance(each, memoryview):
            with pytest.raises(ValueError, match="released"):
                bytes(each)
    return changed


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("fails", (False, True))
def test_an_exception_keeps_no_memory_of_the_library(count, fails):
    assert unisono.spawn(looking_at_frames, (count, fails), ranks=2) == [0, 0]


def ufuncs():
    """In place where the function is one of NumPy, with the types that it has else."""
    with unisono.init() as comm:
        found = []
        for function in (numpy.add, numpy.maximum, numpy.hypot, numpy.frompyfunc(max, 2, 1),
                         numpy.matmul):
            with comm.dup() as other:
                try:
                    result = other.allreduce(numpy.array([3.0, 4.0]), op=function)
                    other.barrier()
                    found.append(result.round(6).tolist())
                except (TypeError, ValueError, unisono.PeerArgumentError) as error:
                    found.append(type(error).__name__ != "")
        found.append(comm.allreduce(numpy.array([comm.rank], "i1"), op=numpy.greater).tolist())
        return found


def test_ufuncs():
    for found in unisono.spawn(ufuncs, ranks=2):
        assert found[:3] == [[6.0, 8.0], [3.0, 4.0], [round(18**0.5, 6), round(32**0.5, 6)]]
        assert found[3] is True  # objects are no numbers
        assert found[4] == [25.0, 25.0]  # a number for all
        assert found[5] in ([0], [1])


def functions_of_one_element():
    """Called with two arrays, it would write its result into the second one."""
    with unisono.init() as comm:
        for function in (numpy.sin, numpy.logical_not, numpy.divmod, unisono.Op(numpy.negative)):
            for kind in ("f8", bool):
                with pytest.raises(unisono.DatatypeError, match="an operator has 2 and 1"):
                    comm.dup().allreduce(numpy.ones(2, kind), op=function)
        for function in (sum, numpy.sum, unisono.Op(sum)):
            with pytest.raises(unisono.DatatypeError, match="give the name 'sum'"):
                comm.dup().allreduce(numpy.ones(2), op=function)
        return comm.allreduce(1)


def test_functions_of_one_element_are_no_operators():
    assert unisono.spawn(functions_of_one_element, ranks=2) == [2, 2]

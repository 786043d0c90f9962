# SPDX-License-Identifier: BSD-3-Clause
"""Every collective with every type of elements and every layout, against NumPy in one process."""

import datetime
import functools

import ml_dtypes
import numpy
import pytest
import unisono
from unisono import _arrays

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
INTEGERS = [numpy.dtype(kind + size) for kind in "iu" for size in "1248"]
REALS = [numpy.dtype("f2"), BFLOAT16, numpy.dtype("f4"), numpy.dtype("f8")]
COMPLEX = [numpy.dtype("c8"), numpy.dtype("c16")]
BOOL = numpy.dtype("?")
ALL = [*INTEGERS, *REALS, *COMPLEX, BOOL]
SHAPES = [(), (1,), (7,), (3, 4), (0,), (300,)]

FUNCTIONS = {"sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum,
             "logical_and": numpy.logical_and, "logical_or": numpy.logical_or,
             "logical_xor": numpy.logical_xor, "bitwise_and": numpy.bitwise_and,
             "bitwise_or": numpy.bitwise_or, "bitwise_xor": numpy.bitwise_xor}


def ops_of(dtype):
    if dtype in COMPLEX:
        return ["sum", "prod"]
    if dtype in REALS:
        return ["sum", "prod", "min", "max"]
    return list(FUNCTIONS)


def data(rank, shape, dtype):
    """Small numbers, so that sums and products of five ranks are exact in every type."""
    count = int(numpy.prod(shape, dtype=int))
    values = (numpy.arange(count) * 3 + rank) % 4
    if dtype in COMPLEX:
        values = values + 1j * ((values + 1) % 2)
    return values.astype(dtype).reshape(shape)


def combined(op, arrays):
    return functools.reduce(FUNCTIONS[op], arrays).astype(arrays[0].dtype)


def same(got, expected, what):
    got, expected = numpy.asarray(got), numpy.asarray(expected)
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, (what, got.shape, expected.shape)
    assert numpy.array_equal(got, expected), (what, got, expected)


def in_larger_array(array):
    """The same values and shape, in the middle of a longer array."""
    around = numpy.zeros(array.size + 10, array.dtype)
    view = around[5:5 + array.size].reshape(array.shape)
    view[...] = array
    return view


def run_all_ways(comm, name, send, receive_shape, expected, *, in_place=None, **options):
    """Blocking, started, planned; result returned or given; in a view. expected None: no result."""
    blocking, start, plan = (getattr(comm, name + form) for form in ("", "_start", "_plan"))
    what = (name, comm.size, comm.rank, send.dtype, send.shape, options)
    results = [blocking(send, **options), start(send, **options).wait()]
    if expected is not None:
        given = numpy.empty(receive_shape, send.dtype)
        assert blocking(in_larger_array(send), given, **options) is given
        results.append(given)
        placed = in_larger_array(numpy.zeros(receive_shape, send.dtype))
        start(send, placed, **options).wait()
        results.append(placed)
    else:
        blocking(send, **options)
        start(send, **options).wait()
    with plan(send, **options) as planned:
        for _ in range(2):
            results.append(planned())
    for result in results:
        if expected is None:
            assert result is None, what
        else:
            same(result, expected, what)
    if in_place is not None:
        in_place(what)


def check_reductions(comm, shape, dtype):
    everyone = [data(rank, shape, dtype) for rank in range(comm.size)]
    mine = everyone[comm.rank]
    for op in ops_of(dtype):
        total = combined(op, everyone)

        def twice(what, op=op, total=total):
            array = numpy.array(mine)
            comm.allreduce(array, array, op=op)
            same(array, total, what)
            array = numpy.array(mine)
            comm.allreduce(unisono.IN_PLACE, array, op=op)
            same(array, total, what)
        run_all_ways(comm, "allreduce", mine, shape, total, in_place=twice, op=op)
        root = comm.size - 1
        run_all_ways(comm, "reduce", mine, shape, total if comm.rank == root else None, op=op,
                     root=root)
        run_all_ways(comm, "scan", mine, shape, combined(op, everyone[:comm.rank + 1]), op=op)
        before = everyone[:comm.rank]
        result = comm.exscan(mine, op=op)
        if before:
            same(result, combined(op, before), "exscan")
        else:
            assert result is None


def check_reduce_scatter(comm, shape, dtype):
    everyone = [data(rank, (comm.size, *shape), dtype) for rank in range(comm.size)]
    total = combined("sum", everyone)
    mine = everyone[comm.rank]

    def whole(what):
        array = numpy.array(mine)
        comm.reduce_scatter(unisono.IN_PLACE, array)
        same(array[0], total[comm.rank], what)
    run_all_ways(comm, "reduce_scatter", mine, shape, total[comm.rank], in_place=whole)
    counts = [rank + 1 for rank in range(comm.size)]
    long = [data(rank, (sum(counts),), dtype) for rank in range(comm.size)]
    begin = sum(counts[:comm.rank])
    expected = combined("sum", long)[begin:begin + counts[comm.rank]]
    run_all_ways(comm, "reduce_scatter", long[comm.rank], expected.shape, expected, counts=counts)


def check_moves(comm, shape, dtype):
    everyone = numpy.stack([data(rank, shape, dtype) for rank in range(comm.size)])
    mine = everyone[comm.rank]
    root = comm.size // 2
    is_root = comm.rank == root

    def own_block(what):
        array = numpy.zeros_like(everyone)
        array[comm.rank] = mine
        comm.allgather(unisono.IN_PLACE, array)
        same(array, everyone, what)
        array = numpy.zeros_like(everyone)
        array[comm.rank] = mine
        comm.allgather(array[comm.rank:comm.rank + 1], array)
        same(array, everyone, what)
    run_all_ways(comm, "allgather", mine, everyone.shape, everyone, in_place=own_block)
    run_all_ways(comm, "gather", mine, everyone.shape, everyone if is_root else None, root=root)
    buffer = numpy.array(mine)
    assert comm.broadcast(buffer, root=root) is buffer
    same(buffer, everyone[root], "broadcast")
    part = numpy.empty(shape, dtype)
    comm.scatter(everyone if is_root else None, part, root=root)
    same(part, mine, "scatter")
    if is_root:
        same(comm.scatter(everyone, root=root), mine, "scatter at the root")
        assert comm.scatter(everyone.copy(), unisono.IN_PLACE, root=root) is None
    else:
        comm.scatter(None, part, root=root)
        comm.scatter(None, part, root=root)
    table = numpy.stack([data(comm.rank + 2 * other, shape, dtype) for other in range(comm.size)])
    expected = numpy.stack([data(other + 2 * comm.rank, shape, dtype)
                            for other in range(comm.size)])
    run_all_ways(comm, "alltoall", table, table.shape, expected)


def check_unequal_blocks(comm, dtype):
    size, rank = comm.size, comm.rank
    counts = [2 * r for r in range(size)]
    blocks = [data(r, (counts[r],), dtype) for r in range(size)]
    packed = numpy.concatenate(blocks)
    run_all_ways(comm, "allgatherv", blocks[rank], packed.shape, packed, counts=counts)
    same(comm.allgatherv(blocks[rank], counts=iter(counts)), packed, "counts that are read once")
    places = [sum(counts[r + 1:]) for r in range(size)]  # the other way round
    apart = numpy.zeros(sum(counts), dtype)
    comm.allgatherv(blocks[rank], apart, counts=counts, displacements=places)
    same(apart, numpy.concatenate(blocks[::-1]), "allgatherv with displacements")
    result = comm.gatherv(blocks[rank], counts=counts if rank == 0 else None)
    if rank == 0:
        same(result, packed, "gatherv")
    own = numpy.empty(counts[rank], dtype)
    comm.scatterv(packed if rank == 0 else None, own, counts if rank == 0 else None)
    same(own, blocks[rank], "scatterv")
    receives = [r % 2 == 0 for r in range(size)]
    result = comm.many_to_many(blocks[rank], counts=counts, receives=receives)
    if receives[rank]:
        same(result, packed, "many_to_many")
    # To rank r: rank + r elements.
    sizes = [rank + r for r in range(size)]
    send = numpy.concatenate([data(rank * 7 + r, (sizes[r],), dtype) for r in range(size)])
    expected = numpy.concatenate([data(r * 7 + rank, (sizes[r],), dtype) for r in range(size)])
    same(comm.alltoallv(send, sizes, None, sizes), expected, "alltoallv")
    if dtype not in (BOOL, BFLOAT16):
        step = dtype.itemsize
        starts = numpy.cumsum([0, *sizes[:-1]]) * step
        types = [dtype] * size
        got = numpy.empty_like(expected)
        comm.alltoallw(send, sizes, starts, types, got, sizes, starts, types)
        same(got, expected, "alltoallw")


def everything(dtypes):
    with unisono.init() as comm:
        for dtype in dtypes:
            for shape in SHAPES:
                check_reductions(comm, shape, dtype)
                check_reduce_scatter(comm, shape, dtype)
                check_moves(comm, shape, dtype)
            check_unequal_blocks(comm, dtype)
        comm.barrier()
        return comm.info()["operations"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtypes", [INTEGERS, REALS, COMPLEX, [BOOL]],
                         ids=["integers", "reals", "complex", "bool"])
def test_every_collective(ranks, dtypes):
    operations = unisono.spawn(everything, (dtypes,), ranks=ranks)
    assert len(set(operations)) == 1
    assert operations[0] > 100


def opaque():
    with unisono.init() as comm:
        record = numpy.dtype([("name", "S5"), ("value", "<f8")])
        dates = numpy.array(["2026-11-25"], "M8[D]") + comm.rank
        mine = numpy.array([(b"abc", float(comm.rank))] * 3, record)
        swapped = (numpy.arange(3) + comm.rank).astype(">i4")
        found = comm.allgather(mine), comm.allgather(dates), comm.allgather(swapped)
        assert found[0][:, 0].tolist() == [(b"abc", float(r)) for r in range(comm.size)]
        assert found[1][:, 0].tolist() == [datetime.date(2026, 11, 25 + r)
                                           for r in range(comm.size)]
        assert found[2][:, 0].tolist() == list(range(comm.size))
        with pytest.raises(unisono.DatatypeError, match="numbers"):
            comm.allreduce(swapped)
        return True


def test_other_elements_are_moved_and_not_reduced():
    assert unisono.spawn(opaque, ranks=3) == [True] * 3


def pairs():
    with unisono.init() as comm:
        pair = numpy.dtype([("value", "f8"), ("rank", "i4")], align=True)
        mine = numpy.array([(float(-comm.rank), comm.rank), (1.0, comm.rank)], pair)
        low = comm.allreduce(mine, op="minloc")
        return low["rank"].tolist(), comm.allreduce(mine, op="maxloc")["rank"].tolist()


def test_minloc_and_maxloc():
    assert unisono.spawn(pairs, ranks=3) == [([2, 0], [0, 0])] * 3


def numbers():
    with unisono.init() as comm:
        rank = comm.rank
        results = (comm.allreduce(rank), comm.allreduce(0.5), comm.allreduce(1j),
                   comm.allreduce(rank == 0), comm.scan(rank), comm.reduce(rank, op="max", root=1))
        return [*results, *(type(r).__name__ for r in results)]


def test_numbers_give_numbers():
    assert unisono.spawn(numbers, ranks=2) == [
        [1, 1.0, 2j, True, 0, None, "int", "float", "complex", "bool", "int", "NoneType"],
        [1, 1.0, 2j, True, 1, 1, "int", "float", "complex", "bool", "int", "int"]]


def numbers_of_the_root():
    with unisono.init() as comm:
        mine = comm.rank + 5
        with comm.broadcast_plan(float(mine), root=1) as plan:
            results = [comm.broadcast(mine), comm.broadcast_start(mine, root=1).wait(), plan(),
                       comm.broadcast(comm.rank == 0), comm.broadcast(numpy.int8(mine))]
        other = comm.dup()
        with pytest.raises(unisono.MismatchError):
            other.broadcast(1 if comm.rank == 0 else 1j)
            other.barrier()
        return [*results, *(type(each).__name__ for each in results)]


def test_a_broadcast_number_is_that_of_the_root():
    expected = [5, 6, 6.0, True, 5, "int", "int", "float", "bool", "int8"]
    assert unisono.spawn(numbers_of_the_root, ranks=2) == [expected] * 2


def other_arrays():
    import array
    with unisono.init() as comm:
        mine = array.array("d", [comm.rank, 1])
        total = array.array("d", [0, 0])
        comm.allreduce(mine, total)
        text = comm.allgather(bytes([comm.rank, 7]))
        view = memoryview(bytearray(2))
        comm.broadcast(view if comm.rank else b"hi")
        return list(total), text.tolist(), bytes(view) if comm.rank else b"hi"


def test_other_buffers():
    assert unisono.spawn(other_arrays, ranks=2) == [([1, 2], [[0, 7], [1, 7]], b"hi")] * 2


class ByDlpack:
    """Lends an array by DLPack only, as a tensor does."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def dlpack():
    with unisono.init() as comm:
        mine = numpy.arange(6.0, dtype="f4").reshape(2, 3) + comm.rank
        total = numpy.zeros((2, 3), "f4")
        comm.allreduce(ByDlpack(mine), ByDlpack(total))
        assert numpy.array_equal(total, 2 * numpy.arange(6.0).reshape(2, 3) + 1)
        fresh = comm.allreduce(ByDlpack(mine))  # a result is of NumPy where there is no new_empty
        assert fresh.dtype == "f4" and numpy.array_equal(fresh, total)
        assert comm.allgather(ByDlpack(numpy.ones(2, bool))).dtype == bool
        with pytest.raises(unisono.ArgumentError, match="contiguous"):
            comm.allreduce(ByDlpack(mine.T), ByDlpack(total))
        return True


def test_dlpack():
    assert unisono.spawn(dlpack, ranks=2) == [True, True]


def changed_meanwhile():
    """An array in an operation gets another shape, and no other memory."""
    with unisono.init() as comm:
        mine = numpy.arange(6.0)
        requests = [comm.allreduce_start(mine), comm.allgather_start(mine)]
        mine.shape = (2, 3)
        with pytest.raises(ValueError, match="resize"):
            mine.resize((40, 40))
        total, everyone = [request.wait() for request in requests]
        assert total.tolist() == (comm.size * numpy.arange(6.0)).tolist()
        assert everyone.tolist() == [list(range(6))] * comm.size
        return True


def test_an_array_keeps_its_memory_in_an_operation():
    assert unisono.spawn(changed_meanwhile, ranks=2) == [True, True]


def test_the_fields_of_arrays_are_where_they_are_read():
    assert _arrays.has_known_fields()


def user_operators():
    with unisono.init() as comm:
        mine = numpy.array([comm.rank + 1, 2.0])
        product = comm.allreduce(mine, op=lambda a, b: a * b)
        last = unisono.Op(lambda a, b: b, commutative=False)
        assert comm.allreduce(mine, op=last).tolist() == [comm.size, 2.0]
        half = numpy.array([1.5], BFLOAT16)
        assert comm.allreduce(half, op=numpy.add)[0] == 1.5 * comm.size
        with comm.allreduce_plan(mine, op=numpy.maximum) as plan:
            assert plan().tolist() == [comm.size, 2.0]
        assert comm.allreduce_start(mine, op=numpy.minimum).wait().tolist() == [1.0, 2.0]
        return product.tolist()


def functions_of_truth_values():
    """One function for truth values and for bytes: it gets arrays of their type."""
    with unisono.init() as comm:
        seen = []

        def odd(left, right):
            seen.append(left.dtype.name)
            return ~(left ^ right) if left.dtype == bool else left + right

        flags = numpy.array([comm.rank == 0, True])
        alike = comm.allreduce(flags, op=odd)
        total = comm.allreduce(numpy.ones(2, "u1"), op=odd)
        both = comm.allreduce(numpy.ones(1, bool), op=lambda left, right: left + right)
        return alike.tolist(), total.tolist(), both.view("u1").tolist(), set(seen)


def test_functions_get_truth_values():
    results = unisono.spawn(functions_of_truth_values, ranks=2)
    assert [result[:3] for result in results] == [([False, True], [2, 2], [1])] * 2
    assert set.union(*(seen for *_, seen in results)) == {"bool", "uint8"}


def scalars():
    with unisono.init() as comm:
        found = []
        for number in (numpy.float64(1.5), numpy.float32(1.5), numpy.int32(2), numpy.bool_(True)):
            total = comm.allreduce(number)
            found.append((type(total) is type(number), float(total), comm.allgather(number).shape))
        for moved in (numpy.datetime64("2026-11-25", "D"), numpy.str_("ab"), numpy.bytes_(b"abc")):
            assert comm.allgather(moved).tolist() == [moved.item()] * comm.size
            assert comm.broadcast(moved) == moved
            with pytest.raises(unisono.DatatypeError, match="give a type of numbers"):
                comm.dup().allreduce(moved)
        return found


def test_scalars_of_numpy_give_scalars():
    expected = [(True, 3.0, (2,)), (True, 3.0, (2,)), (True, 4.0, (2,)), (True, 1.0, (2,))]
    assert unisono.spawn(scalars, ranks=2) == [expected] * 2


def pairs_of_another_layout(value, offset, itemsize):
    with unisono.init() as comm:
        kind = numpy.dtype({"names": ["value", "index"], "formats": [value, "i4"],
                            "offsets": [0, offset], "itemsize": itemsize})
        pair = numpy.ones(1, kind)
        with pytest.raises(unisono.DatatypeError, match="no operator by name"):
            comm.dup().allreduce(pair, op="maxloc")
        return comm.allgather(pair)["index"].reshape(-1).tolist()


@pytest.mark.parametrize("layout", [("f8", 12, 16), ("f4", 8, 12), ("i2", 2, 6)])
def test_pairs_of_another_layout_are_moved_and_not_reduced(layout):
    assert unisono.spawn(pairs_of_another_layout, layout, ranks=1) == [[1]]


class Negative:
    """As a tensor of PyTorch with the negative bit, whose memory has the other sign."""

    def __init__(self, array):
        self.array = array
        self.__dlpack_device__ = array.__dlpack_device__

    def is_neg(self):
        return True

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def negative():
    with unisono.init() as comm:
        with pytest.raises(unisono.ArgumentError, match="resolve_neg"):
            comm.allreduce(Negative(numpy.ones(2)), numpy.ones(2))
        return True


def test_tensors_with_the_negative_bit_are_refused():
    assert unisono.spawn(negative, ranks=1) == [True]


def test_functions_as_operators():
    assert unisono.spawn(user_operators, ranks=4) == [[24.0, 16.0]] * 4


def derived():
    with unisono.init() as comm:
        half = comm.split(comm.rank % 2, key=-comm.rank)
        assert comm.split(-1) is None
        pair = comm.subgroup([2, 0])
        copy = comm.dup()
        found = [half.rank, half.allreduce(comm.rank), copy.allreduce(1)]
        if pair is not None:
            found.append(pair.allgather(comm.rank).tolist())
            pair.close()
        comm.publish(5)
        comm.barrier()
        found.append((comm.query(">=", 5), comm.query("<", 5)))
        comm.barrier()
        return found


def test_communicators_and_queries():
    assert unisono.spawn(derived, ranks=4) == [
        [1, 2, 4, [2, 0], (True, False)], [1, 4, 4, (True, False)],
        [0, 2, 4, [2, 0], (True, False)], [0, 4, 4, (True, False)]]

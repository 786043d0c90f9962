# SPDX-License-Identifier: BSD-3-Clause
"""The back end in Python, which takes the place of an extension module for another torch. It runs
the tests of the compiled one, and tests say which of the two is chosen."""

import os

import programs
import pytest
import test_collectives
import test_failures
import test_groups
import test_memory
import test_parallel
import test_training
import torch
import torch.distributed as dist
import unisono
from jobs import run


@pytest.fixture(autouse=True)
def in_python(monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", "python")


def every_collective(dtypes):
    assert type(test_failures.back_end()).__name__ == "PythonBackend"
    size = dist.get_world_size()
    for dtype in dtypes:
        for shape in test_collectives.SHAPES:
            for layout in test_collectives.LAYOUTS:
                everyone = [test_collectives.data(rank, shape, dtype) for rank in range(size)]
                test_collectives.reductions(everyone, layout)
                test_collectives.moves(everyone, layout)
                test_collectives.single_tensors(everyone, layout)
    dist.barrier()
    return True


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_collective(tmp_path, ranks):
    types = [torch.uint8, torch.int64, torch.bfloat16, torch.float32, torch.complex64, torch.bool]
    assert run(every_collective, tmp_path, ranks, types) == [True] * ranks


@pytest.mark.parametrize("function, ranks", [
    (test_collectives.unequal, 3), (test_collectives.others, 2), (test_collectives.messages, 3),
    (test_collectives.waiting_callbacks, 2), (test_collectives.callbacks_that_wait_for_others, 2),
    (test_failures.mismatch, 2), (test_failures.late, 2), (test_failures.ended, 2),
    (test_failures.message_of_another_length, 2), (test_failures.interrupted_wait, 2),
    (test_groups.sparse, 3), (test_groups.uneven_lists, 3),
    (test_groups.aborted, 2)], ids=lambda each: getattr(
        each, "__name__", str(each)))
def test_as_the_compiled_one(tmp_path, function, ranks):
    assert run(function, tmp_path, ranks) == [True] * ranks


def aborted_just_before():
    """The abort comes between the look at the group's state and the call of the library."""
    group = dist.new_group()
    calls = group._get_backend(torch.device("cpu"))._calls

    def late():
        calls.abort()
        calls.comm.barrier()

    if dist.get_rank() == 0:
        with pytest.raises(dist.DistBackendError, match="the group has been aborted"):
            calls.submit("barrier", dist.BarrierOptions(), [], late).wait()
    dist.barrier()
    return True


def test_an_abort_just_before_a_call(tmp_path):
    assert run(aborted_just_before, tmp_path, 2) == [True, True]


@pytest.mark.parametrize("sharing", [0b111, 0b001])
def test_reductions_of_allocated_tensors(tmp_path, sharing):
    assert run(test_memory.reductions, tmp_path, 3, sharing) == [True] * 3


def test_an_allocated_tensor_outlives_its_group(tmp_path):
    test_memory.test_a_tensor_outlives_its_group(tmp_path)


def test_fsdp_allocates_from_the_group(tmp_path):
    test_memory.test_fsdp_allocates_from_the_group(tmp_path)


def no_allocation_after_a_fork():
    child = os.fork()
    if child == 0:
        try:
            test_memory.empty(3)
        except dist.DistBackendError as error:
            os._exit(0 if "forked child" in str(error) else 2)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_allocates_nothing(tmp_path):
    assert run(no_allocation_after_a_fork, tmp_path, 2) == [0, 0]


@pytest.mark.parametrize("name", test_failures.WRONG)
def test_a_wrong_call_is_an_error_on_every_rank(tmp_path, name):
    assert run(test_failures.wrong_call, tmp_path, 2, name) == [True, True]


def test_a_killed_rank_is_named(tmp_path):
    with pytest.raises(unisono.SpawnError, match="killed by signal 9") as caught:
        run(test_failures.killed, tmp_path, 3)
    assert caught.value.rank == 1


def test_new_groups(tmp_path):
    assert run(some_groups, tmp_path, 4) == [4] * 4


def test_groups_that_are_split(tmp_path):
    assert run(test_collectives.groups, tmp_path, 4) == [4] * 4


def test_survivors_shrink_their_group(tmp_path):
    survivors = test_groups.survivors_of(run, tmp_path)
    assert survivors == ["survivor-0", "survivor-2", "survivor-3"]


PROGRAMS_OF_TWO_RANKS = [each for each in programs.ALL if each is not programs.two_dimensions]


@pytest.mark.parametrize("program", PROGRAMS_OF_TWO_RANKS, ids=lambda program: program.__name__)
def test_numbers_are_those_of_gloo(tmp_path, program):
    ours = run(program, tmp_path, 2)
    theirs = run(program, tmp_path, 2, backend="gloo")
    test_parallel.compare(ours, theirs, test_parallel.TOLERANCE.get(program.__name__, 1e-4))


def asynchronous():
    tensors = [torch.full((1000,), float(i)) for i in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    halved = works[3].get_future().then(lambda future: future.value()[0] / 2)
    for i in (7, 0, 5):
        works[i].wait()
    assert halved.wait()[0].item() == 3 * dist.get_world_size() / 2
    torch.futures.wait_all([work.get_future() for work in works])
    return [tensor[0].item() for tensor in tensors]


def test_asynchronous_calls_and_futures(tmp_path):
    assert run(asynchronous, tmp_path, 2) == [[2.0 * i for i in range(8)]] * 2


def complete_futures():
    """The future of an operation that has ended is complete at once, also with an error."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(200):
        every = [torch.zeros(2) for _ in range(size)]
        work = dist.all_gather(every, torch.full((2,), float(rank)), async_op=True)
        work.wait()
        future = work.get_future()
        assert future.done()
        assert [each.tolist() for each in future.value()] == [[float(r)] * 2 for r in range(size)]
    wrong = dist.all_reduce(torch.ones(4), dist.ReduceOp.BAND, async_op=True)
    with pytest.raises(TypeError, match="BAND"):
        wrong.wait()
    with pytest.raises(Exception, match="BAND"):
        wrong.get_future().value()
    return True


def test_the_future_of_an_ended_operation_is_complete(tmp_path):
    assert run(complete_futures, tmp_path, 2) == [True, True]


def left_out():
    with pytest.raises(RuntimeError, match="not support"):
        dist.recv(torch.ones(2))
    with pytest.raises(RuntimeError, match="not support"):
        dist.monitored_barrier()
    dist.barrier()  # these leave the group as it is
    return True


def test_what_only_the_compiled_one_has(tmp_path):
    assert run(left_out, tmp_path, 2) == [True, True]


def some_groups():
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group([r for r in range(size) if r % 2 == part]) for part in range(2)]
    tensor = torch.tensor([rank])
    dist.all_reduce(tensor, group=groups[rank % 2])
    assert tensor.item() == sum(r for r in range(size) if r % 2 == rank % 2)
    dist.destroy_process_group(groups[rank % 2])
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    with dist._coalescing_manager():
        tensors = [torch.full((4,), float(i + rank)) for i in range(3)]
        for each in tensors:
            dist.all_reduce(each)
    assert [each[0].item() for each in tensors] == [size * i + sum(range(size)) for i in range(3)]
    tensor = torch.tensor([1])
    dist.all_reduce(tensor)
    return tensor.item()


def test_losses_are_those_of_gloo(tmp_path):
    ours = run(test_training.train, tmp_path, 2, 0.01)
    theirs = run(test_training.train, tmp_path, 2, 0.01, backend="gloo")
    assert torch.allclose(torch.tensor(ours[0]), torch.tensor(theirs[0]), rtol=1e-4)


def test_the_hook_rounds_once(tmp_path):
    test_training.test_the_hook_rounds_once(tmp_path)


def forked():
    work = dist.all_reduce(torch.ones(3), async_op=True)
    work.wait()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(3))
        except dist.DistBackendError as error:
            os._exit(0 if "forked child" in str(error) else 2)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_has_no_part(tmp_path):
    assert run(forked, tmp_path, 2) == [0, 0]


def chosen():
    """The class of the back end, with an extension module for a torch that is not this one."""
    import warnings

    from unisono.torch import _c10d
    _c10d.torch_version = "1.2.3"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    tensor = torch.ones(3)
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [dist.get_world_size()] * 3
    texts = [str(each.message) for each in caught if "unisono" in str(each.message)]
    return type(backend).__name__, texts


def test_it_is_chosen_for_another_torch(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", "auto")
    for name, texts in run(chosen, tmp_path, 2):
        assert name == "PythonBackend"
        assert len(texts) == 1 and "built for torch 1.2.3" in texts[0] and "pip" in texts[0]


def test_the_compiled_one_is_an_error_then(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", "compiled")
    with pytest.raises(unisono.SpawnError, match="ImportError.*built for torch 1.2.3"):
        run(chosen, tmp_path, 2)


def test_an_unknown_choice_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_UNISONO", "fast")
    with pytest.raises(unisono.SpawnError, match="'fast'.*auto, compiled, python"):
        run(forked, tmp_path, 1)

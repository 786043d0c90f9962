# SPDX-License-Identifier: BSD-3-Clause
"""The parts of torch that stand on its process groups, as functions of one rank of four. They are
hooks for gradients, averaged models, schedules of pipelines, checkpoints, objects, groups and
autograd. Each returns numbers that are alike with every back end."""

import tempfile
import threading

import torch
import torch.distributed as dist
import versions
from programs import FEATURES, batches, mesh_of, model_of, step
from torch.nn.parallel import DistributedDataParallel


def train(model, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def trained_with_hook(state, hook):
    model = DistributedDataParallel(model_of())
    model.register_comm_hook(state, hook)
    return train(model)


def shared_folder():
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    return folder[0]


def halves_as_gradients():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    return trained_with_hook(None, default_hooks.fp16_compress_hook)


def low_ranks():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    return trained_with_hook(
        powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2),
        powerSGD_hook.powerSGD_hook)


def averaged_now_and_then():
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook
    from torch.distributed.algorithms.model_averaging import averagers
    from torch.distributed.optim import PostLocalSGDOptimizer
    model = DistributedDataParallel(model_of())
    pair, _ = dist.new_subgroups(group_size=2)
    model.register_comm_hook(post_localSGD_hook.PostLocalSGDState(None, pair, 2),
                             post_localSGD_hook.post_localSGD_hook)
    return train(model, PostLocalSGDOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.001),
        averagers.PeriodicModelAverager(period=2, warmup_steps=2)))


def uneven_inputs_of_a_sharded_optimizer():
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = DistributedDataParallel(model_of())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.001)
    losses = []
    with Join([model, optimizer]):
        for points in batches(0)[:2 + dist.get_rank()]:
            losses.append(step(model, optimizer, points))
    return losses[:2]


def sparse_gradients():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.EmbeddingBag(20, 8, sparse=True), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for turn in range(4):
        optimizer.zero_grad()
        loss = model((torch.arange(6).view(2, 3) * (dist.get_rank() + 1) + turn) % 20).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def a_sampler_and_workers():
    """The workers of the loader are forked from ranks that have a group."""
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    torch.manual_seed(3)
    points = TensorDataset(torch.randn(37, FEATURES))
    sampler = DistributedSampler(points, seed=3)
    model = DistributedDataParallel(model_of())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        loader = DataLoader(points, batch_size=4, sampler=sampler, num_workers=2)
        losses += [step(model, optimizer, batch) for (batch,) in loader]
    return losses


def hybrid_sharding():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    losses = []
    for mesh, policy in ((mesh_of(("copies", 2), ("parts", dist.get_world_size() // 2)),
                          MixedPrecisionPolicy()),
                         (mesh_of(("parts", dist.get_world_size())),
                          MixedPrecisionPolicy(torch.bfloat16, torch.float32))):
        model = model_of()
        fully_shard(model[0], mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        for points in batches(dist.get_rank()):
            optimizer.zero_grad()
            loss = model(points).float().pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def first_sharding():
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    losses = []
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        losses += train(FullyShardedDataParallel(model_of(), sharding_strategy=strategy,
                                                 device_id=torch.device("cpu")))
    return losses


def parallel_sequences():
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   SequenceParallel, parallelize_module)
    size = dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.GELU(),
                                torch.nn.Linear(32, 16))
    parallelize_module(model, mesh_of(("tensor", size)), {
        "0": SequenceParallel(sequence_dim=0), "1": ColwiseParallel(input_layouts=Shard(0)),
        "3": RowwiseParallel(output_layouts=Shard(0))})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    part = torch.randn(4 * size, 16).chunk(size)[dist.get_rank()]
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(part).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run_schedule(schedule, stages, turns=2):
    """Layers stand on the ranks in turn; the last stage may be on any rank."""
    torch.manual_seed(5)
    points = torch.randn(16, FEATURES)
    losses = []
    for _ in range(turns):
        losses.clear()
        inputs = [points] if any(stage.is_first for stage in stages) else []
        ends = any(stage.is_last for stage in stages)
        schedule.step(*inputs, **({"target": points * 2, "losses": losses} if ends else {}))
    return [*[stage.submod.weight.grad.sum().item() for stage in stages],
            *[loss.item() for loss in losses]]


def stages_at(places):
    from torch.distributed.pipelining import PipelineStage
    stages = []
    for place in places:
        torch.manual_seed(place)
        stages.append(PipelineStage(torch.nn.Linear(FEATURES, FEATURES), place,
                                    len(places) * dist.get_world_size(), torch.device("cpu")))
    return stages


def pipelines():
    from torch.distributed import pipelining
    rank, size = dist.get_rank(), dist.get_world_size()
    loss = torch.nn.functional.mse_loss
    (stage,) = stages_at([rank])
    numbers = run_schedule(pipelining.Schedule1F1B(stage, 8, loss_fn=loss), [stage])
    for kind, places in ((pipelining.ScheduleInterleaved1F1B, [rank, size + rank]),
                         (pipelining.ScheduleZBVZeroBubble, [rank, 2 * size - 1 - rank])):
        stages = stages_at(places)
        numbers += run_schedule(kind(stages, 8, loss_fn=loss), stages)
    return numbers


def saved_meanwhile():
    import torch.distributed.checkpoint as checkpoint
    folder = shared_folder()
    state = {"own": torch.full((100, 10), float(dist.get_rank())), "same": torch.arange(5.0)}
    group = dist.new_group()  # of the thread that saves
    saved = checkpoint.async_save(state, checkpoint_id=folder, process_group=group)
    total = torch.ones(10)
    for _ in range(50):  # beside the collectives of the saving thread
        dist.all_reduce(total)
        total /= dist.get_world_size()
    saved.result()
    state["same"].zero_()
    checkpoint.load(state, checkpoint_id=folder)
    return [state["same"].sum().item(), total.sum().item()]


def through_collectives():
    """Gradients through collectives, of both interfaces."""
    import torch.distributed._functional_collectives as functional
    import torch.distributed.nn.functional as collectives
    rank, size, world = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
    numbers = (torch.arange(8.0) + rank).requires_grad_()
    total = collectives.all_reduce(numbers * 2)
    parts = [collectives.all_gather(total * (rank + 1)), [collectives.broadcast(total, 1)],
             [collectives.reduce_scatter(torch.empty(8), [total * i for i in range(size)])],
             collectives.all_to_all([torch.empty(8) for _ in range(size)],
                                    [total * i for i in range(size)]),
             [collectives.all_to_all_single(torch.empty(8), total)],
             [collectives.scatter([total * i for i in range(size)], 1)]]
    everyone = functional.all_gather_tensor_autograd(numbers * (rank + 1), 0, world)
    own = functional.reduce_scatter_tensor_autograd(everyone * 2, "sum", 0, world)
    moved = functional.all_to_all_single_autograd(own, None, None, world)
    result = sum(each.sum() for part in parts for each in part) + (moved * torch.arange(8.0)).sum()
    result.backward()
    for _ in range(20):
        functional.all_reduce(own, "sum", world)  # nobody waits for it
    return [result.item(), *numbers.grad.tolist()]


def objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "text": "x" * 10**rank})
    lengths = [len(each["text"]) for each in every]
    at_one = [None] * size if rank == 1 else None
    dist.gather_object(("rank", rank, torch.ones(rank)), at_one, dst=1)
    assert at_one is None or [each[1] for each in at_one] == list(range(size))
    mine = [None]
    dist.scatter_object_list(mine, [{"part": i} for i in range(size)] if rank == 0 else None, src=0)
    assert mine == [{"part": rank}]
    if rank == 0:
        dist.send_object_list(["text", 3, torch.arange(4)], dst=1)
    if rank == 1:
        received = [None] * 3
        dist.recv_object_list(received, src=0)
        assert received[:2] == ["text", 3] and received[2].sum() == 6
    pair = dist.new_group([1, 3])
    if rank in (1, 3):
        heard = ["of rank 3" if rank == 3 else None]
        dist.broadcast_object_list(heard, group=pair, group_src=1)
        assert heard == ["of rank 3"]
    dist.barrier()
    return lengths


def groups_of_groups():
    rank = dist.get_rank()
    numbers = []
    pair, _ = dist.new_subgroups(group_size=2)
    across, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    halves = [[0, 1], [2, 3]]
    half = (dist.split_group(split_ranks=halves) if versions.SPLITS_GROUPS_OF_CPUS else
            dist.new_subgroups_by_enumeration(halves)[0])
    alone = dist.new_group([rank], use_local_synchronization=True)
    local = dist.new_group([0, 1] if rank < 2 else [2, 3], use_local_synchronization=True)
    for group in (pair, across, half, alone, local):
        tensor = torch.tensor([float(rank + 1)])
        dist.all_reduce(tensor, group=group)
        dist.broadcast(tensor, group_src=dist.get_world_size(group) - 1, group=group)
        numbers.append(tensor.item())
    if dist.get_rank(local) == 0:
        dist.send(tensor * 3, group=local, group_dst=1)
    else:
        dist.recv(tensor, group=local, group_src=0)
    dist.destroy_process_group(pair)
    dist.barrier()
    return [*numbers, tensor.item()]


def rows_of_different_lengths():
    rank, size = dist.get_rank(), dist.get_world_size()
    give = [(rank + other) % 3 for other in range(size)]  # none for some
    got = torch.empty(sum(give), 2)
    dist.all_to_all_single(got, torch.arange(2.0 * sum(give)).view(-1, 2) + 10 * rank, give, give)
    nothing = torch.empty(0, 3)
    dist.all_reduce(nothing)
    dist.all_gather([torch.empty(0) for _ in range(size)], torch.empty(0))
    number = torch.tensor(3.0 + rank)
    dist.all_reduce(number)
    return [*got.view(-1).tolist(), number.item()]


def coalesced():
    rank, size = dist.get_rank(), dist.get_world_size()
    inputs = [torch.full((4,), float(rank + i)) for i in range(3)]
    outputs, parts = [torch.empty(4 * size) for _ in range(3)], [torch.empty(4) for _ in range(3)]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, inputs):
            dist.all_gather_into_tensor(output, tensor)
    with dist._coalescing_manager(async_ops=True) as operations:
        for part, output in zip(parts, outputs):
            dist.reduce_scatter_tensor(part, output)
    operations.wait()
    with dist._coalescing_manager(async_ops=True) as operations:
        for tensor in inputs:
            dist.all_reduce(tensor)
    operations.wait()
    return [tensor.sum().item() for tensor in [*outputs, *parts, *inputs]]


def messages_in_any_order():
    rank, size = dist.get_rank(), dist.get_world_size()
    operations, rooms = [], []
    for peer in range(size):
        for length in (1, 50_000) if peer != rank else ():
            rooms.append(torch.empty(length))
            operations += [dist.P2POp(dist.irecv, rooms[-1], peer),
                           dist.P2POp(dist.isend, torch.full((length,), rank * 10.0 + peer), peer)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    right, left = (rank + 1) % size, (rank - 1) % size
    sends = [dist.isend(torch.full((3,), float(i)), right, tag=i % 3) for i in range(60)]
    got = [torch.empty(3) for _ in range(60)]
    receives = [dist.irecv(tensor, left, tag=i % 3) for i, tensor in enumerate(got)]
    for work in [*reversed(receives), *sends]:
        work.wait()
    return [tensor.sum().item() for tensor in [*rooms, *got]]


def groups_of_threads():
    groups = [dist.new_group() for _ in range(4)]
    results = [0.0] * len(groups)

    def work(index):
        tensor = torch.full((100,), float(dist.get_rank() + index))
        for _ in range(100):
            dist.all_reduce(tensor, group=groups[index])
            tensor /= dist.get_world_size()
        results[index] = tensor[0].item()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def ended_and_begun_again():
    back_end, rank, size = dist.get_backend(), dist.get_rank(), dist.get_world_size()
    folder, totals = shared_folder(), []
    for turn in range(3):
        dist.destroy_process_group()
        dist.init_process_group(back_end, init_method=f"file://{folder}/{turn}", rank=rank,
                                world_size=size)
        tensor = torch.tensor([float(rank + turn)])
        dist.all_reduce(tensor)
        totals.append(tensor.item())
    return totals


def without_gradients():
    numbers = []
    with torch.inference_mode():
        tensor = torch.ones(4) * dist.get_rank()
        dist.all_reduce(tensor)
        everyone = torch.empty(4 * dist.get_world_size())
        dist.all_gather_into_tensor(everyone, tensor)
        dist.all_reduce(tensor, async_op=True).wait()
        numbers += [*tensor.tolist(), *everyone.tolist()]
    parameter = torch.nn.Parameter(torch.full((3,), float(dist.get_rank())))
    dist.broadcast(parameter, 1)
    with torch.profiler.profile():
        dist.all_reduce(parameter.data)
    images = torch.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    dist.all_reduce(images)
    return [*numbers, *parameter.tolist(), *images.flatten().tolist()]


ALL = [halves_as_gradients, low_ranks, averaged_now_and_then,
       uneven_inputs_of_a_sharded_optimizer, sparse_gradients, a_sampler_and_workers,
       hybrid_sharding, first_sharding, parallel_sequences, pipelines, saved_meanwhile,
       through_collectives, objects, groups_of_groups, rows_of_different_lengths, coalesced,
       messages_in_any_order, groups_of_threads, ended_and_begun_again, without_gradients]

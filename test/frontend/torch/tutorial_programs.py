# SPDX-License-Identifier: BSD-3-Clause
"""Programs in the manner of PyTorch's tutorials, as functions of one rank of four: fully sharded
models, sharded tensors, pipelines, checkpoints and compiled collectives together. Each returns
numbers that are alike with every back end."""

import torch
import torch.distributed as dist
from library_programs import run_schedule, shared_folder, stages_at
from programs import FEATURES, batches, mesh_of, model_of, step


def train(model, optimizer):
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def gradients_without_a_sync():
    """Gradients of two batches are added up before they are reduced."""
    from torch.distributed.fsdp import fully_shard
    mesh = mesh_of(("data", dist.get_world_size()))
    model = model_of()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, reshard_after_forward=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)
    numbers = []
    for turn, points in enumerate(batches(dist.get_rank())):
        is_last = turn % 2 == 1
        model.set_requires_gradient_sync(is_last)
        model.set_is_last_backward(is_last)
        loss = model(points).pow(2).mean()
        loss.backward()
        numbers.append(loss.item())
        if is_last:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            numbers.append(norm.full_tensor().item())
            optimizer.step()
            optimizer.zero_grad()
    return numbers


def sharded_from_nothing():
    """Made without memory; rank 0 has the parameters, and all get whole ones back."""
    from torch.distributed.checkpoint import state_dict
    from torch.distributed.fsdp import fully_shard
    mesh = mesh_of(("data", dist.get_world_size()))
    with torch.device("meta"):
        model = model_of()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    model.to_empty(device="cpu")
    whole = model_of().state_dict() if dist.get_rank() == 0 else {}
    state_dict.set_model_state_dict(model, whole, options=state_dict.StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = train(model, optimizer)
    options = state_dict.StateDictOptions(full_state_dict=True)
    of_model, of_optimizer = state_dict.get_state_dict(model, optimizer, options=options)
    state_dict.set_state_dict(model, optimizer, model_state_dict=of_model,
                              optim_state_dict=of_optimizer, options=options)
    return [*losses, sum(each.sum().item() for each in of_model.values()),
            *train(model, optimizer)]


class State:
    """A model and its optimizer, as torch.distributed.checkpoint saves them."""

    def __init__(self, model, optimizer):
        self.parts = model, optimizer

    def state_dict(self):
        from torch.distributed.checkpoint.state_dict import get_state_dict
        return dict(zip(("model", "optimizer"), get_state_dict(*self.parts)))

    def load_state_dict(self, state):
        from torch.distributed.checkpoint.state_dict import set_state_dict
        set_state_dict(*self.parts, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])


def checkpoint_for_another_mesh():
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.fsdp import fully_shard
    size = dist.get_world_size()
    folder, losses = shared_folder(), []
    for mesh in (mesh_of(("data", size)), mesh_of(("copies", size // 2), ("parts", 2))):
        model = fully_shard(model_of(), mesh=mesh)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        state = {"all": State(model, optimizer)}
        if losses:
            checkpoint.load(state, checkpoint_id=folder)
        losses += train(model, optimizer)
        if len(losses) == len(batches(0)):
            checkpoint.save(state, checkpoint_id=folder)
    return losses


class Words(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(count, 16)
        self.norm = torch.nn.LayerNorm(16)
        self.scores = torch.nn.Linear(16, count, bias=False)

    def forward(self, words):
        return self.scores(self.norm(self.embedding(words)))


def words_on_all_ranks():
    """The vocabulary is cut, and so is the loss over it."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor import parallel
    size = dist.get_world_size()
    model = Words(8 * size)
    parallel.parallelize_module(model, mesh_of(("tensor", size)), {
        "embedding": parallel.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": parallel.SequenceParallel(),
        "scores": parallel.ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1),
                                           use_local_output=False)})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(5)
    words, next_ones = torch.randint(8 * size, (2, 2, 4 * size))
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with parallel.loss_parallel():
            loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1),
                                                     next_ones.flatten())
            loss.backward()
        optimizer.step()
        losses.append(loss.full_tensor().item())
    return losses


def compiled_calls():
    """Coalesced functional collectives, and calls of torch.distributed that become such."""
    import torch.distributed._functional_collectives as functional
    world, rank, size = dist.group.WORLD, dist.get_rank(), dist.get_world_size()

    def coalesced(one, other):
        sums = functional.all_reduce_coalesced([one, other], "sum", world)
        every = functional.all_gather_into_tensor_coalesced(list(sums), world)
        parts = functional.reduce_scatter_tensor_coalesced([each * 1.5 for each in every], "sum",
                                                           [0, 0], world)
        turned = functional.permute_tensor(sums[0], [(i + 1) % size for i in range(size)], world)
        return sum(each.sum() for each in [*parts, turned]) + sums[1].max()

    def direct(one, _):
        total = one * 2
        dist.all_reduce(total)
        every, part = torch.empty(one.numel() * size), torch.empty(one.numel())
        dist.all_gather_into_tensor(every, total)
        dist.reduce_scatter_tensor(part, every)
        moved = torch.empty(one.numel() * size)
        dist.all_to_all_single(moved, every)
        return total.sum() + part.sum() + (moved * torch.arange(moved.numel())).sum()

    found = []
    tensors = torch.arange(4.0) + rank, torch.arange(6.0) * (rank + 1)
    for function in (coalesced, direct):
        plain = function(*tensors)
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)(*tensors)
        assert torch.equal(plain, compiled)
        found.append(plain.item())
    return found


def more_pipelines():
    from torch.distributed import pipelining
    rank, size = dist.get_rank(), dist.get_world_size()
    loss, numbers = torch.nn.functional.mse_loss, []
    for kind, places in ((pipelining.ScheduleLoopedBFS, [rank, size + rank]),
                         (pipelining.ScheduleInterleavedZeroBubble, [rank, size + rank]),
                         (pipelining.ScheduleDualPipeV, [rank, 2 * size - 1 - rank])):
        stages = stages_at(places)
        numbers += run_schedule(kind(stages, 8, loss_fn=loss), stages)
    return numbers


def two_ways_at_once():
    """Pipelines of two ranks whose stages are fully sharded, and then tensor parallel."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    every = []
    for data, tensor in ((2, 1), (1, 2)):
        mesh = mesh_of(("pipeline", 2), ("data", data), ("tensor", tensor))
        place = mesh["pipeline"].get_local_rank()
        torch.manual_seed(place)
        part = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(),
                                   torch.nn.Linear(32, FEATURES))
        if tensor > 1:
            parallelize_module(part, mesh["tensor"], {"0": ColwiseParallel(),
                                                      "2": RowwiseParallel()})
        else:
            fully_shard(part, mesh=mesh["data"])
        stage = PipelineStage(part, place, 2, torch.device("cpu"),
                              group=mesh["pipeline"].get_group())
        schedule = Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
        optimizer = torch.optim.SGD(part.parameters(), lr=0.01)
        torch.manual_seed(50 + mesh["data"].get_local_rank())
        points = torch.randn(8, FEATURES)
        for _ in range(2):
            losses = []
            optimizer.zero_grad()
            if place == 0:
                schedule.step(points)
            else:
                schedule.step(target=points * 2, losses=losses)
            optimizer.step()
            every += [loss.item() for loss in losses]
    return every


ALL = [gradients_without_a_sync, sharded_from_nothing, checkpoint_for_another_mesh,
       words_on_all_ranks, compiled_calls, more_pipelines, two_ways_at_once]

# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which large models are trained, as functions of one rank of four. They are sharded,
in two precisions, with accumulated gradients and activations computed again, and parallel over
sequences. Each function returns numbers that are alike with every back end."""

import torch
import torch.distributed as dist
from programs import batches, mesh_of, model_of, step
from torch.nn.parallel import DistributedDataParallel


def sharded_in_two_precisions():
    """FSDP2 with gradients over several batches, activations computed again, and a norm."""
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as activations
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    mesh = mesh_of(("replicas", 2), ("shards", 2))
    model = model_of()
    activations.apply_activation_checkpointing(
        model, checkpoint_wrapper_fn=activations.checkpoint_wrapper,
        check_fn=lambda part: isinstance(part, torch.nn.Linear))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in model:
        if any(True for _ in part.parameters()):
            fully_shard(part, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    numbers = []
    for points in batches(dist.get_rank()):
        optimizer.zero_grad()
        for turn, part in enumerate(points.split(4)):
            is_last = turn == 1
            model.set_requires_gradient_sync(is_last)
            model.set_is_last_backward(is_last)
            loss = model(part).float().pow(2).mean()
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        numbers += [loss.item(), norm.full_tensor().item()]
    return numbers


def sharded_with_offload():
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    model = fully_shard(model_of(), mesh=mesh_of(("shards", 4)), reshard_after_forward=2,
                        offload_policy=CPUOffloadPolicy(pin_memory=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def sequences_and_losses_in_parallel():
    """A block as that of a transformer: tensor and sequence parallel, and its loss as well."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   SequenceParallel, loss_parallel,
                                                   parallelize_module)
    mesh = mesh_of(("model", 4))
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({
        "words": torch.nn.Embedding(64, 32), "norm": torch.nn.LayerNorm(32),
        "wide": torch.nn.Linear(32, 64), "narrow": torch.nn.Linear(64, 32),
        "scores": torch.nn.Linear(32, 64)})
    parallelize_module(model, mesh, {
        "words": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "wide": ColwiseParallel(input_layouts=Shard(1)),
        "narrow": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "scores": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1),
                                  use_local_output=False)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    losses = []
    for turn in range(4):
        torch.manual_seed(turn)
        words = torch.randint(0, 64, (2, 16))
        optimizer.zero_grad()
        values = model["norm"](model["words"](words))
        values = values + model["narrow"](torch.nn.functional.silu(model["wide"](values)))
        scores = model["scores"](values)
        with loss_parallel():
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), words.roll(1).flatten())
            loss.backward()
        optimizer.step()
        losses.append(float(loss.full_tensor()))
    return losses


def states_from_the_first_rank():
    from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                         get_optimizer_state_dict,
                                                         set_model_state_dict)
    from torch.distributed.fsdp import fully_shard
    model = fully_shard(model_of(), mesh=mesh_of(("shards", 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step(model, optimizer, batches(dist.get_rank())[0])
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=whole)
    moments = get_optimizer_state_dict(model, optimizer, options=whole)
    assert bool(moments.get("state")) == (dist.get_rank() == 0)
    torch.manual_seed(5)
    other = fully_shard(model_of(), mesh=mesh_of(("shards", 4)))
    set_model_state_dict(other, state if dist.get_rank() == 0 else {},
                         options=StateDictOptions(full_state_dict=True,
                                                  broadcast_from_rank0=True))
    total = sum(each.full_tensor().sum() for each in other.parameters())
    return [total.item()]


def functional_lists():
    import torch.distributed._functional_collectives as functional
    world, rank, size = dist.group.WORLD, dist.get_rank(), dist.get_world_size()
    values = [torch.full((4,), float(rank + i)) for i in range(3)]
    sums = functional.all_reduce_coalesced(values, "avg", world)
    everyone = functional.all_gather_into_tensor_coalesced(values, world)
    own = functional.reduce_scatter_tensor_coalesced(everyone, "sum", [0] * 3, world)
    moved = functional.permute_tensor(values[0], [(i + 1) % size for i in range(size)], world)
    from_two = functional.broadcast(values[1], 2, world)
    return [each.sum().item() for each in [*sums, *everyone, *own, moved, from_two]]


def meshes():
    """Dimensions that are joined and divided, and their groups."""
    mesh = mesh_of(("replicas", 2), ("shards", 2))
    joined = mesh["replicas", "shards"]._flatten("all")
    numbers = []
    for each in (mesh["replicas"], mesh["shards"], joined):
        tensor = torch.tensor([float(dist.get_rank())])
        dist.all_reduce(tensor, group=each.get_group())
        numbers += [tensor.item(), float(each.get_local_rank())]
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    whole = torch.arange(64.0).view(8, 8)
    parted = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    for layout in ([Replicate(), Shard(0)], [Shard(1), Shard(1)], [Replicate(), Replicate()],
                   [Shard(1), Replicate()]):
        parted = parted.redistribute(mesh, layout)
        numbers.append(parted.to_local().sum().item())
    products = parted @ distribute_tensor(whole, mesh, [Shard(0), Replicate()])
    return [*numbers, products.full_tensor().sum().item(), parted.var().full_tensor().item()]


def metrics():
    import torchmetrics
    accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=4)
    ranks = torchmetrics.CatMetric()
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        accuracy.update(torch.randn(8, 4), torch.randint(0, 4, (8,)))
    ranks.update(torch.arange(dist.get_rank() + 1.0))  # of different lengths
    return [accuracy.compute().item(), *sorted(ranks.compute().tolist())]


def buckets_that_are_the_gradients():
    model = DistributedDataParallel(model_of(), static_graph=True, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


ALL = [sharded_in_two_precisions, sharded_with_offload, sequences_and_losses_in_parallel,
       states_from_the_first_rank, functional_lists, meshes, metrics,
       buckets_that_are_the_gradients]

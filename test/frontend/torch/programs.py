# SPDX-License-Identifier: BSD-3-Clause
"""Programs as users of torch.distributed run them, as functions of one rank. Each returns numbers
that are alike with every back end."""

import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

STEPS = 5
FEATURES = 16


def model_of(width=32):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, width), torch.nn.GELU(),
                               torch.nn.Linear(width, width), torch.nn.LayerNorm(width),
                               torch.nn.Linear(width, 1))


def batches(rank, rows=8):
    torch.manual_seed(100 + rank)
    return [torch.randn(rows, FEATURES) for _ in range(STEPS)]


def mesh_of(*names_and_sizes):
    names, sizes = zip(*names_and_sizes)
    return init_device_mesh("cpu", sizes, mesh_dim_names=names)


def step(model, optimizer, points):
    optimizer.zero_grad()
    loss = (model(points) - points.pow(2).sum(dim=1, keepdim=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def data_parallel(**options):
    model = DistributedDataParallel(model_of(), bucket_cap_mb=0.001, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def unused_parameters():
    return data_parallel(find_unused_parameters=True)


def uneven_inputs():
    from torch.distributed.algorithms.join import Join
    model = DistributedDataParallel(model_of())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses = []
    with Join([model]):
        for points in batches(0)[:2 + dist.get_rank() % 2]:
            losses.append(step(model, optimizer, points))
    return losses[:2]


def accumulation():
    model = DistributedDataParallel(model_of())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses = []
    for points in batches(dist.get_rank()):
        with model.no_sync():
            model(points).pow(2).mean().backward()
        losses.append(step(model, optimizer, points))
    return losses


def compressed_gradients():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    model = DistributedDataParallel(model_of())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank())]


def fully_sharded():
    from torch.distributed.fsdp import fully_shard
    mesh = mesh_of(("data", dist.get_world_size()))
    model = model_of()
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = [step(model, optimizer, points) for points in batches(dist.get_rank())]
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return [*losses, norm.full_tensor().item()]


def tensors_of_a_mesh():
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    size = dist.get_world_size()
    mesh = mesh_of(("all", size))
    whole = torch.arange(6.0 * (size + 1)).reshape(size + 1, 6)  # uneven shards
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    product = columns @ distribute_tensor(torch.eye(6) * 2, mesh, [Shard(0)])
    partial = DTensor.from_local(torch.full((2, size), float(dist.get_rank())), mesh, [Partial()])
    summed = partial.redistribute(mesh, [Shard(1)]).full_tensor()
    back = product.redistribute(mesh, [Replicate()]).to_local()
    assert torch.equal(rows.full_tensor(), whole)
    return [back.sum().item(), rows.mean().full_tensor().item(), *summed.reshape(-1).tolist()]


def tensor_parallel():
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    mesh = mesh_of(("tensor", dist.get_world_size()))
    model = parallelize_module(model_of(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(0)]


def two_dimensions():
    """Tensor parallel within pairs of ranks, and fully sharded across them."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    mesh = mesh_of(("data", dist.get_world_size() // 2), ("tensor", 2))
    model = parallelize_module(model_of(), mesh["tensor"],
                               {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return [step(model, optimizer, points) for points in batches(dist.get_rank() // 2)]


def compiled_collectives():
    import torch.distributed._functional_collectives as functional
    world = dist.group.WORLD
    size = dist.get_world_size()

    def compute(tensor):
        total = functional.all_reduce(tensor * 2, "sum", world)
        everyone = functional.all_gather_tensor(total + dist.get_rank(), 0, world)
        part = functional.reduce_scatter_tensor(everyone, "avg", 0, world)
        moved = functional.all_to_all_single(everyone, None, None, world)
        return part.sum() + moved.sum() + functional.broadcast(total, size - 1, world).sum()

    tensor = torch.arange(4.0) + dist.get_rank()
    plain = compute(tensor)
    compiled = torch.compile(compute, backend="aot_eager", fullgraph=True)(tensor)
    assert torch.equal(plain, compiled)
    return [plain.item()]


def zero_redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = DistributedDataParallel(model_of())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam,
                                        lr=0.01)
    losses = [step(model, optimizer, points) for points in batches(dist.get_rank())]
    optimizer.consolidate_state_dict(to=0)
    return losses


def checkpoints():
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.fsdp import fully_shard
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    mesh = mesh_of(("data", dist.get_world_size()))
    model = fully_shard(model_of(), mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step(model, optimizer, batches(0)[0])
    checkpoint.save(get_model_state_dict(model), checkpoint_id=folder[0])
    other = fully_shard(model_of(), mesh=mesh)
    state = get_model_state_dict(other)
    checkpoint.load(state, checkpoint_id=folder[0])
    set_model_state_dict(other, state)
    points = batches(1)[0]
    assert torch.equal(other(points), model(points))
    return [other(points).sum().item()]


def pipeline():
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    part = torch.nn.Linear(FEATURES, FEATURES)
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    losses = []
    schedule = ScheduleGPipe(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    points = batches(0)[0]
    if rank == 0:
        schedule.step(points)
    elif rank == size - 1:
        schedule.step(target=points * 2, losses=losses)
    else:
        schedule.step()
    return [part.weight.grad.sum().item(), *[loss.item() for loss in losses]]


# The programs that are run with 4 ranks; two_dimensions needs an even number of at least 4.
ALL = [data_parallel, unused_parameters, uneven_inputs, accumulation, compressed_gradients,
       fully_sharded, tensors_of_a_mesh, tensor_parallel, two_dimensions, compiled_collectives,
       zero_redundancy, checkpoints, pipeline]

# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of a device are staged in host memory. The device is of device.py, as there is no GPU:
pinned memory and the order of a GPU's streams are not tested."""

import os

import pytest
import torch
import torch.distributed as dist
import unisono
from jobs import LIMIT

# torch before 2.10 cannot make one.
device = pytest.importorskip("device", exc_type=ImportError)

SIZE = 2


def on_device(values):
    return torch.tensor(values).to(device.NAME)


def calls():
    """The results of each collective and message with tensors of the device."""
    rank = dist.get_rank()
    mine = [float(rank + 1), float(10 * (rank + 1))]
    found = {}

    def keep(name, *tensors):
        assert all(tensor.device.type == device.NAME for tensor in tensors), name
        found[name] = [tensor.cpu().tolist() for tensor in tensors]

    tensor = on_device(mine)
    dist.all_reduce(tensor)
    keep("all_reduce", tensor)
    tensor = on_device(mine)
    dist.all_reduce(tensor, dist.ReduceOp.AVG, async_op=True).wait()
    keep("all_reduce, asynchronous", tensor)
    tensor = on_device(mine)
    dist.broadcast(tensor, 1)
    keep("broadcast", tensor)
    tensor = on_device(mine)
    dist.reduce(tensor, 0)
    if rank == 0:
        keep("reduce", tensor)
    whole = on_device([0.0] * 4)
    dist.all_gather_into_tensor(whole, on_device(mine))
    keep("all_gather_into_tensor", whole)
    outputs = [on_device([0.0] * 2) for _ in range(SIZE)] if rank == 0 else None
    dist.gather(on_device(mine), outputs, 0, async_op=True).wait()
    keep("gather", *(outputs or []))
    part = on_device([0.0])
    dist.reduce_scatter_tensor(part, on_device(mine))
    keep("reduce_scatter_tensor", part)
    exchanged = on_device([0.0] * 2)
    dist.all_to_all_single(exchanged, on_device(mine))
    keep("all_to_all_single", exchanged)
    message = on_device([0.0] * 2)
    works = [dist.isend(on_device(mine), 1 - rank), dist.irecv(message, 1 - rank)]
    for work in works:
        work.wait()
    keep("irecv", message)
    dist.barrier()
    return found, device.copies


def one_rank(path):
    device.register()
    rank = int(os.environ["UNISONO_RANK"])
    dist.init_process_group(f"cpu:unisono,{device.NAME}:unisono",
                            store=dist.FileStore(str(path), SIZE), rank=rank, world_size=SIZE,
                            timeout=LIMIT)
    found = calls()
    dist.destroy_process_group()
    return found


def test_tensors_of_a_device(tmp_path):
    (first, copies), (second, _) = unisono.spawn(one_rank, (tmp_path / "store",), ranks=SIZE)
    both = {"all_reduce": [[3.0, 30.0]], "all_reduce, asynchronous": [[1.5, 15.0]],
            "broadcast": [[2.0, 20.0]], "all_gather_into_tensor": [[1.0, 10.0, 2.0, 20.0]]}
    assert first == both | {"reduce": [[3.0, 30.0]], "gather": [[1.0, 10.0], [2.0, 20.0]],
                            "reduce_scatter_tensor": [[3.0]], "all_to_all_single": [[1.0, 2.0]],
                            "irecv": [[2.0, 20.0]]}
    assert second == both | {"gather": [], "reduce_scatter_tensor": [[30.0]],
                             "all_to_all_single": [[10.0, 20.0]], "irecv": [[1.0, 10.0]]}
    assert copies["to host"] > 0 and copies["to device"] > 0


def test_a_group_serves_the_devices_that_there_are():
    """torch's recorder of calls asks each device of a group for its stream, in each barrier."""
    there = ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]
    assert dist.Backend.backend_capability["unisono"] == there

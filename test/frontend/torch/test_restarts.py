# SPDX-License-Identifier: BSD-3-Clause
"""Groups that start again with the store of ranks that have failed."""

import datetime
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import versions

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("how, kind", [("exception", "compiled"), ("kill", "compiled"),
                                       ("exit", "compiled"), ("kill", "python")])
def test_an_elastic_agent_starts_its_ranks_again(how, kind):
    ended = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone",
                            "--max-restarts", "2", "--nproc-per-node", "2", HERE / "restarted.py",
                            how], text=True, capture_output=True, check=False,
                           env=os.environ | {"TORCH_UNISONO": kind, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["0: 12", "1: 12"], ended.stderr


def start(path, rank, seconds, results):
    limit = datetime.timedelta(seconds=seconds)
    try:
        dist.init_process_group("unisono", store=dist.FileStore(str(path), -1), rank=rank,
                                world_size=2, timeout=limit)
    except dist.DistBackendError as error:
        results.put(str(error))
        return
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    if os.environ["TORCH_UNISONO"] != "python" and versions.HAS_MONITORED_BARRIER:
        dist.monitored_barrier()
    results.put(tensor.tolist())
    dist.destroy_process_group()


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize("first", [0, 1])
def test_what_ranks_have_left_in_a_store_is_not_used(tmp_path, monkeypatch, kind, first):
    """Each rank comes alone before both come."""
    monkeypatch.setenv("TORCH_UNISONO", kind)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    for ranks, seconds in (([first], 0.5), ([1 - first], 0.5), ([0, 1], 120.0)):
        processes = [context.Process(target=start,
                                     args=(tmp_path / "store", rank, seconds, results))
                     for rank in ranks]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * len(ranks)
        heard = [results.get() for _ in ranks]
        if len(ranks) == 1:
            assert f"rank {ranks[0]} waited" in heard[0]
            assert f"missing are ranks {1 - ranks[0]}" in heard[0]
        else:
            assert heard == [[2.0] * 4] * 2

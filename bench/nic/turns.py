# SPDX-License-Identifier: BSD-3-Clause
"""Allreduces of two float32 by processes and in the NIC path, undisturbed and disturbed, by turns
in one run. It is the common part of consistency.py and ordinary_traffic.py."""

import compare
from host_set import Failed
from peer_report import progress

NAMES = ["nic", "udp"]
SAID = {"nic": "NIC path", "udp": "processes, UDP and multicast"}


def find_ways(unisono, limit_seconds):
    """The two ways, and the settings for compare.run_once()."""
    settings = compare.parse_arguments(
        ["--collectives", "allreduce", "--only", ",".join(NAMES), "--unisono", str(unisono),
         "--limit", str(limit_seconds)])
    found = compare.find_all(settings)
    if len(found) != len(NAMES):
        raise Failed("both ways are needed")
    return found, settings


def measure_round(host_set, shape, ways, operations, turn, disturb, calls):
    """Everything takes its turn once; adds to `calls`."""
    found, settings = ways
    for disturbed in [False, True]:
        # The first one of a round alternates.
        for way in found if turn % 2 == 0 else found[::-1]:
            how = "disturbed" if disturbed else "undisturbed"
            progress(f"{shape} hosts, round {turn + 1}, {way.name}, {how}")
            with disturb(disturbed):
                run = compare.run_once(host_set, way, shape, operations, settings)
            if run is None:
                raise Failed(f"{way.name} has no figures for {shape} hosts")
            calls.setdefault((disturbed, way.name), compare.Calls()).add(run["allreduce"])
    progress("")


def measure(host_set, shape, ways, arguments, disturb):
    """{(is_disturbed, name): Calls}: everything takes its turn in each round. disturb(bool) is a
    context."""
    calls = {}
    operations = -(-arguments.operations // arguments.rounds)
    for turn in range(arguments.rounds):
        measure_round(host_set, shape, ways, operations, turn, disturb, calls)
    return calls

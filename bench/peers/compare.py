#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Unisono with all MPIs found and with Gloo: `unisono bench --peers` runs this.

Shapes: 8 is 8 ranks of this machine, 4x2 is 4 hosts with 2 ranks each. Hosts are network namespaces
of this machine (`unisono hosts`, as root). Each implementation runs at its best setting
(bench/hosts/implementations.py says which). All run in turn, again and again, so that other load
on the machine affects all alike.

Before and after each run it measures how long a cache line takes from one core to another and back:
on some machines that changes by times for seconds. The runs of Unisono and of another that belong
together are a pair. Pairs are thrown away if one of their four measurements is more than --state
times another, and counted.

It prints the medians, and for each cell the median of the pairs' ratios with the best other. With
two hosts of one rank each, "of tcp" says how much of the speed of plain TCP streams Unisono has.
Everything goes to a JSON file, from which heat_map.py draws the ratios, and picture.py the times.
Hosts and hogs are removed at the end, even after errors.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "hosts"))

from hogs import Hogs  # noqa: E402  (its folder has to be known first)
from host_set import (  # noqa: E402
    Failed,
    HostSet,
    ThisMachine,
    parse_shape,
    run_main,
    why_not,
)
from implementations import IMPLEMENTATIONS, YARDSTICKS, Missing, host_mpi  # noqa: E402
from quiet import wait_until_quiet  # noqa: E402

import heat_map  # noqa: E402
import pairs  # noqa: E402
from peer_report import Unusable, progress, read_report  # noqa: E402

COLLECTIVES = [
    *["barrier", "broadcast", "reduce", "allreduce", "allgather", "gather", "scatter"],
    *["alltoall", "reduce_scatter", "scan", "exscan"],
    *["allgatherv", "gatherv", "scatterv", "alltoallv", "reduce_scatterv"],
]
# Those of the picture, by default.
COMPARED = COLLECTIVES[:10]
METHODS = ["loop", "single"]
KNOWN = [*IMPLEMENTATIONS, *YARDSTICKS]


@dataclasses.dataclass(frozen=True)
class Shape:
    hosts: int
    per_host: int

    @property
    def ranks(self):
        return self.hosts * self.per_host

    def __str__(self):
        return f"{self.hosts}x{self.per_host}" if self.hosts > 1 else str(self.per_host)


@dataclasses.dataclass(frozen=True)
class Work:
    collectives: list
    sizes: str
    seconds: float
    root: int
    uneven: str
    operations = 0  # as many calls, each timed, in place of what fits into the seconds
    apart_us = late_us = 0


def say(text):
    print(f"compare.py: {text}", file=sys.stderr, flush=True)


def find_all(arguments):
    found = []
    for each in KNOWN:
        if arguments.only and each.name not in arguments.only:
            continue
        if arguments.root and not getattr(each, "has_roots", True):
            say(f"{each.name} is left out: it has root 0 only")
            continue
        try:
            found.append(each.find(arguments))
        except Missing as missing:
            say(f"{each.name} is left out: {missing}")
    return found


def state_ns(arguments):
    """The round trip of a cache line between two cores; None where it cannot be measured."""
    words = [arguments.unisono, "info", "--state"]
    done = subprocess.run(words, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, _, value = line.strip().partition(": ")
        if name == "round trip" and value.endswith(" ns"):
            return float(value.removesuffix(" ns"))
    return None


def run_once(place, implementation, shape, collectives, arguments):
    """The report, or None, having said why there is none."""
    work = Work(collectives, arguments.sizes, arguments.seconds, arguments.root, arguments.uneven)
    local = shape.hosts == 1
    make = implementation.local_commands if local else implementation.commands
    try:
        return read_report(place.run(make(place, shape, work), arguments.limit))
    except (Failed, Unusable) as error:
        say(f"{implementation.name}, {shape}, {','.join(collectives)}: {error}")
        return None


def able(implementation, shape, collectives):
    """Those of the collectives that it has for this shape."""
    shapes = getattr(implementation, "shapes", None)
    if shapes is not None and (shape.hosts, shape.per_host) not in shapes:
        return []
    its = implementation.collectives
    return [name for name in collectives if its is None or name in its]


def measure(place, shape, found, arguments, first):
    """A list of pairs.Run, the implementations by turns; repetitions count from `first`."""
    runs = []
    order = list(found)
    given_up = set()  # those that failed once: another attempt would take as long
    # The collectives of one launch.
    batches = [[each] for each in arguments.collectives]
    if arguments.together:
        batches = [arguments.collectives]
    for repetition in range(first, first + arguments.repeat):
        for batch in batches:
            order = order[1:] + order[:1]  # each is as often the first as any other
            before = state_ns(arguments)
            for each in order:
                mine = able(each, shape, batch)
                if not mine or (each.name, *mine) in given_up:
                    continue
                progress(f"{shape}: repetition {repetition + 1}, {','.join(mine)}, {each.name}")
                if arguments.quiet > 0:
                    wait_until_quiet(arguments.quiet)
                    before = state_ns(arguments)
                report = run_once(place, each, shape, mine, arguments)
                after = state_ns(arguments)
                if report is None:
                    given_up.add((each.name, *mine))
                else:
                    runs += pairs.runs_of(each.name, shape, repetition, (before, after), report)
                before = after
    progress("")
    return runs


def place_of(shape, arguments):
    if shape.hosts == 1:
        return ThisMachine(arguments.unisono)
    # No others on the bridge: a multicast would be copied to them as well.
    return HostSet(arguments.unisono, shape.hosts, arguments.rate,
                   congestion=arguments.congestion)


def measure_all(found, runs, arguments):
    """Appends to `runs`. Prints the tables of each shape as soon as they are known. Returns the
    congestion controls of the hosts."""
    congestions = set()
    for shape in arguments.shapes:
        if shape.hosts > 1 and (reason := why_not(arguments.unisono)):
            say(f"{shape} is left out: {reason}")
            continue
        first = 1 + max((run.repetition for run in runs if run.of_shape(shape)), default=-1)
        with place_of(shape, arguments) as place, Hogs(arguments.hogs):
            if shape.hosts > 1:
                congestions.add(place.congestion)
            runs += measure(place, shape, found, arguments, first)
        circumstances = f", links of {arguments.rate}" if arguments.rate else ""
        circumstances += ", a hog on each core" if arguments.hogs else ""
        of_shape = [run for run in runs if run.of_shape(shape)]
        pairs.print_tables(of_shape, arguments.state, circumstances, arguments.tables)
    return congestions


def own_command():
    """This run's words without paths of the machine, which mean nothing elsewhere."""
    words, paths = [], ("--unisono", "--environments", "--torch-python", "--output", "--json",
                        "--picture")
    given = iter(sys.argv[1:])
    for word in given:
        if word in paths:
            next(given, None)
        elif not word.startswith(tuple(f"{path}=" for path in paths)):
            words.append(word)
    return " ".join(["bench/peers/compare.py", *words])


def rounded(value):
    """Six digits are more than the clock gives."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def document(runs, before, arguments, congestions):
    reports = [run.versions for run in runs if run.versions]
    versions = dict(before.get("versions", {}))
    for each in reports:
        versions |= each
    machine = next((run.machine for run in runs if run.machine), before.get("machine"))
    states = [state for run in runs for state in run.state_ns if state]
    return {
        "tool": "peers/compare.py",
        "commands": [*before.get("commands", []), own_command()],
        "machine": machine,
        "cache_line_ns": {"least": min(states), "most": max(states)} if states else None,
        "versions": versions,
        "rate": arguments.rate,
        "root": arguments.root,
        "uneven": arguments.uneven,
        "congestion": sorted({*before.get("congestion", []), *congestions}),
        "hogs": arguments.hogs,
        "state": arguments.state,
        "thrown_away": pairs.count_thrown_away(runs, arguments.state),
        "results": pairs.rows(runs, arguments.state),
        "runs": [run.document() for run in runs],
    }


def numbers_of(text):
    """The sizes of 8,1K,64K; for argparse."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = []
    for word in text.split(","):
        unit = units.get(word[-1:], 1)
        digits = word[:-1] if unit > 1 else word
        if not digits.isdigit():
            raise argparse.ArgumentTypeError(f"'{word}' is no size, as 8, 64K or 1M")
        sizes.append(str(int(digits) * unit))
    return ",".join(sizes)


def shapes_of(text):
    return [Shape(*parse_shape(word if "x" in word else f"1x{word}")) for word in text.split(",")]


def add_options(parser):
    known = ",".join(each.name for each in KNOWN)
    in_sources = (ROOT / "dev").exists()
    output = ROOT / "build/bench" if in_sources else pathlib.Path("unisono-bench")
    wheels = host_mpi.ENVIRONMENTS if in_sources else output / "venv-mpi"
    add = parser.add_argument
    add("words", nargs="*", metavar="COLLECTIVE", help=f"default: {','.join(COMPARED)}")
    add("--collectives", type=lambda text: text.split(","), help="the same, by commas")
    add("--shapes", type=shapes_of, default=shapes_of("2,8,4x1"),
        help="ranks, or hosts x ranks on each; default: 2,8,4x1")
    add("--sizes", type=numbers_of, default=numbers_of("8,512,4K,32K,256K,1M"),
        help="bytes; default: 8,512,4K,32K,256K,1M")
    add("--root", type=int, default=0, help="of rooted collectives; default: 0")
    add("--uneven", choices=["halves", "zeros", "one"], default="halves",
        help="blocks of collectives that end in v (unisono bench --help); default: halves")
    add("--only", type=lambda text: text.split(","), help=f"some of {known}; default: all found")
    add("--repeat", type=int, default=3, help="repetitions; default: 3")
    add("--seconds", type=float, default=0.05, help="time for one line; default: %(default)s")
    add("--limit", type=float, default=300, help="seconds after which a run is given up")
    add("--state", type=float, default=1.5,
        help="throw away pairs whose cache-line round trips differ by more; default: %(default)s")
    add("--rate", default="", help="limit every link between hosts, each way: 200mbit")
    add("--congestion", default="cubic",
        help="TCP's congestion control on the hosts; default: the kernel's own, cubic")
    add("--hogs", action="store_true", help="a program on each core that only burns time")
    add("--quiet", type=float, default=0, metavar="SECONDS",
        help="before each run, wait at most so long for an idle machine; default: do not")
    add("--quick", action="store_true", help="8 bytes, once, little time: does it work?")
    add("--together", action="store_true",
        help="all collectives in one launch: quicker, but pairs lie further apart")
    add("--tables", choices=["times", "all"], default="times",
        help="all: also p99, minimum and processor time")
    add("--install", action="store_true", help="fetch the wheels of Open MPI, MPICH and Intel MPI")
    add("--environments", type=pathlib.Path, default=wheels,
        help="folder of these wheels; default: build/venv-mpi")
    add("--torch-python", type=pathlib.Path, help="a Python that has torch, for Gloo")
    add("--unisono", type=pathlib.Path, default=ROOT / "build/release/bin/unisono",
        help="the binary; default: build/release/bin/unisono")
    add("--output", dest="directory", type=pathlib.Path, default=output,
        help="folder for the twins, peers.json and peers.svg; default: build/bench")
    add("--json", type=pathlib.Path, help="default: peers.json in the folder of --output")
    add("--picture", type=pathlib.Path, help="default: peers.svg in the folder of --output")
    add("--add", action="store_true", help="add repetitions and shapes to those in the JSON file")
    return known


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:\n  bench/peers/compare.py barrier allreduce --shapes 2,8,4x1",
    )
    known = add_options(parser)
    arguments = parser.parse_args()
    arguments.collectives = arguments.words or arguments.collectives or COMPARED
    if arguments.quick:
        arguments.sizes, arguments.seconds, arguments.repeat = "8", 0.01, 1
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    if not 0 <= arguments.root < min(shape.ranks for shape in arguments.shapes):
        parser.error("--root must be a rank of every shape")
    if arguments.state < 1:
        parser.error("--state must be at least 1")
    if arguments.hogs and arguments.quiet > 0:
        parser.error("--quiet waits for what --hogs prevents")
    for collective in arguments.collectives:
        if collective not in COLLECTIVES:
            parser.error(f"no collective is named '{collective}': {', '.join(COLLECTIVES)}")
    for name in arguments.only or []:
        if name not in known.split(","):
            parser.error(f"--only: nothing is named '{name}': {known}")
    if not arguments.unisono.exists():
        parser.error(f"{arguments.unisono} does not exist: run ./dev build first")
    arguments.directory = arguments.directory.resolve()
    arguments.json = (arguments.json or arguments.directory / "peers.json").resolve()
    arguments.picture = (arguments.picture or arguments.directory / "peers.svg").resolve()
    return arguments


def read_before(arguments):
    """The document that --add continues, or an empty one."""
    if not arguments.add or not arguments.json.exists():
        return {}
    try:
        document_before = json.loads(arguments.json.read_text())
        document_before["runs"][0]["results"]
        return document_before
    except (json.JSONDecodeError, KeyError, IndexError, TypeError):
        sys.exit(f"compare.py: --add: {arguments.json} has no runs of this tool")


def main():
    arguments = parse_arguments()
    before = read_before(arguments)
    for folder in (arguments.directory, arguments.json.parent, arguments.picture.parent):
        folder.mkdir(parents=True, exist_ok=True)
    found = find_all(arguments)
    runs = [pairs.Run.read(each) for each in before.get("runs", [])]
    try:
        congestions = measure_all(found, runs, arguments)
    except Failed as error:
        sys.exit(f"compare.py: {error}")
    if not runs:
        sys.exit("compare.py: nothing was measured")
    result = rounded(document(runs, before, arguments, congestions))
    arguments.json.write_text(json.dumps(result, separators=(",", ":")) + "\n")
    print(f"\nwritten: {arguments.json}")
    if heat_map.write(result, arguments.picture):
        print(f"written: {arguments.picture}")


if __name__ == "__main__":
    run_main(main)

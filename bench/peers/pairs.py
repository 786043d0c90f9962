# SPDX-License-Identifier: BSD-3-Clause
"""Runs of compare.py, the pairs that they form, and tables of them.

A pair is a run of Unisono and one of another implementation, of the same shape, collective and
repetition. Its ratio is the other's time by Unisono's. Pairs of different states of the machine are
left out: the ratio of their times says more about the machine than about the libraries.
"""

import dataclasses
import statistics
import sys

from peer_report import geometric_mean, number

UNISONO = "unisono"
STREAMS = "tcp"  # what the kernel's streams reach: no library, so it is not among the others
# (method, statistic, what the repetitions come to)
COLUMNS = [
    ("single", "median_us", statistics.median),
    ("loop", "median_us", statistics.median),
    ("single", "p99_us", statistics.median),
    ("single", "min_us", min),
    ("single", "cpu_us", statistics.median),
    ("loop", "cpu_us", statistics.median),
    ("loop", "agent_us", statistics.median),
]
TIMES = 2  # so many columns are tables by default
MEANING = {
    "single": "each call after a barrier, mean of the ranks",
    "loop": "calls back to back, the slowest rank's time for one",
}
PROCESSOR_TIME = {
    "cpu_us": "processor time of the calling thread for one call, mean of the ranks",
    "agent_us": "processor time of the process's other threads for one call, mean of the ranks",
}


@dataclasses.dataclass
class Run:
    tool: str
    hosts: int
    per_host: int
    repetition: int
    collective: str
    state_ns: tuple  # before and after; None where it is not known
    results: list  # for each size {"size", "single": {statistic: value}, "loop": {...}}
    machine: dict = None
    versions: dict = None

    @classmethod
    def read(cls, document):
        fields = ["tool", "hosts", "per_host", "repetition", "collective"]
        values = [document[name] for name in fields]
        return cls(*values, tuple(document["state_ns"]), document["results"])

    def document(self):
        fields = dataclasses.asdict(self)
        return {name: value for name, value in fields.items()
                if name not in ("machine", "versions")}

    def of_shape(self, shape):
        return (self.hosts, self.per_host) == (shape.hosts, shape.per_host)

    @property
    def shape(self):
        return self.hosts, self.per_host


def runs_of(tool, shape, repetition, state_ns, report):
    """A Run for each collective of a report."""
    results = {}
    for cell in report["results"]:
        kept = {"size": cell["size"], "single": {}, "loop": {}}
        for method, statistic, _ in COLUMNS:
            if statistic in cell[method]:
                kept[method][statistic] = cell[method][statistic]
        results.setdefault(cell["collective"], []).append(kept)
    machine = report.get("machine") if tool == UNISONO else None
    versions = {tool: report.get("library", report.get("version"))}
    return [Run(tool, shape.hosts, shape.per_host, repetition, collective, tuple(state_ns), cells,
                machine, versions) for collective, cells in results.items()]


def same_state(one, other, limit):
    """Whether the machine was in one state all the time, as far as is known."""
    states = [state for run in (one, other) for state in run.state_ns if state]
    return not states or max(states) <= limit * min(states)


def all_pairs(runs):
    """[(run of Unisono, run of another)]"""
    ours = {(run.shape, run.collective, run.repetition): run
            for run in runs if run.tool == UNISONO}
    for run in runs:
        mine = ours.get((run.shape, run.collective, run.repetition))
        if run.tool != UNISONO and mine is not None:
            yield mine, run


def count_thrown_away(runs, limit):
    kept = [same_state(*pair, limit) for pair in all_pairs(runs)]
    return {"pairs": len(kept), "thrown_away": kept.count(False)}


def statistics_of(runs):
    """{(collective, size, method, statistic): {tool: value}}, from these runs."""
    samples = {}
    for run in runs:
        for cell in run.results:
            for method, statistic, _ in COLUMNS:
                if statistic in cell[method]:
                    key = (run.collective, cell["size"], method, statistic)
                    samples.setdefault(key, {}).setdefault(run.tool, []).append(
                        cell[method][statistic])
    join = {(method, statistic): function for method, statistic, function in COLUMNS}
    return {key: {tool: join[key[2:]](values) for tool, values in row.items()}
            for key, row in samples.items()}


def ratios_of(runs, limit):
    """{(collective, size, method, statistic): {tool: median of the ratios of its kept pairs}}"""
    samples = {}
    for mine, other in all_pairs(runs):
        if not same_state(mine, other, limit):
            continue
        my_cells = {cell["size"]: cell for cell in mine.results}
        for cell in other.results:
            for method, statistic, _ in COLUMNS:
                own = my_cells.get(cell["size"], {}).get(method, {}).get(statistic)
                its = cell[method].get(statistic)
                if own and its:
                    key = (mine.collective, cell["size"], method, statistic)
                    samples.setdefault(key, {}).setdefault(other.tool, []).append(its / own)
    return {key: {tool: statistics.median(values) for tool, values in row.items()}
            for key, row in samples.items()}


def kept_runs(runs, limit):
    """The runs of pairs that are kept; those of Unisono alone, if nothing else was measured."""
    pairs = list(all_pairs(runs))
    if not pairs:
        return runs
    kept = {id(run) for pair in pairs if same_state(*pair, limit) for run in pair}
    return [run for run in runs if id(run) in kept]


def best(row):
    """Of the libraries."""
    others = [ratio for tool, ratio in (row or {}).items() if tool != STREAMS]
    return min(others) if others else None


def shapes(runs):
    return list(dict.fromkeys(run.shape for run in runs))


def rows(runs, limit):
    """For each shape, collective, size and method one row, which the pictures read."""
    table = []
    for hosts, per_host in shapes(runs):
        of_shape = [run for run in runs if run.shape == (hosts, per_host)]
        ratios = ratios_of(of_shape, limit)
        entries = {}
        for key, values in statistics_of(kept_runs(of_shape, limit)).items():
            collective, size, method, statistic = key
            cell = {"hosts": hosts, "ranks": hosts * per_host, "method": method}
            cell |= {"collective": collective, "size": size}
            entry = entries.setdefault(key[:3], cell)
            entry[statistic] = values
            if statistic == "median_us":
                entry["ratios"] = ratios.get(key, {})
                entry["ratio"] = best(entry["ratios"])
        table += entries.values()
    return table


def heading(method, statistic):
    if statistic not in PROCESSOR_TIME:
        return f"{statistic.removesuffix('_us')}: {MEANING[method]}"
    kind = "each call after a barrier" if method == "single" else "calls back to back"
    return f"{PROCESSOR_TIME[statistic]}; {kind}"


def print_head(runs, limit, circumstances):
    hosts, per_host = runs[0].shape
    where = f"{hosts} hosts x {per_host} ranks" if hosts > 1 else f"{per_host} ranks of one machine"
    print(f"\n# {where}{circumstances}; times in us; ratio: the best other / unisono, "
          "median of the pairs")
    states = [state for run in runs for state in run.state_ns if state]
    count = count_thrown_away(runs, limit)
    if states:
        print(f"# cache-line round trip: {min(states):.0f} to {max(states):.0f} ns; "
              f"{count['thrown_away']} of {count['pairs']} pairs thrown away, "
              f"of states that differ more than {limit:g} times")
    else:
        print("# cache-line round trip: not measured, so no pair was thrown away")


def print_tables(runs, limit, circumstances="", tables="times"):
    """All runs are of one shape."""
    if not runs:
        return
    print_head(runs, limit, circumstances)
    names = list(dict.fromkeys([UNISONO, *sorted(run.tool for run in runs)]))
    medians = statistics_of(kept_runs(runs, limit))
    ratios = ratios_of(runs, limit)
    for method, statistic, _ in COLUMNS[: TIMES if tables == "times" else len(COLUMNS)]:
        print(f"\n# {heading(method, statistic)}")
        head = "".join(f"{name:>13}" for name in names)
        head += f"{'ratio':>9}" + (f"{'of tcp':>9}" if STREAMS in names else "")
        print(f"# {'collective':<15}{'size':>8}{head}")
        of_table = []
        for key, row in medians.items():
            if key[2:] != (method, statistic):
                continue
            collective, size = key[:2]
            ratio = best(ratios.get(key))
            line = f"  {collective:<15}{size if collective != 'barrier' else '':>8}"
            line += "".join(number(row.get(name), 13) for name in names)
            line += number(ratio, 9, "x")
            if STREAMS in names:
                of_streams = ratios.get(key, {}).get(STREAMS)
                line += number(100 * of_streams if of_streams else None, 8, "%", digits=0)
            print(line)
            of_table += [ratio] if ratio else []
        if of_table and statistic != "agent_us":  # most have no other threads
            blanks = " " * 13 * len(names)
            print(f"# {'geometric mean':<23}{blanks}{number(geometric_mean(of_table), 9, 'x')}")
    sys.stdout.flush()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests what bench/choice measures in a job, how it goes on, and what its figures say.

usage: choice_test.py FOLDER    bench/choice
"""

import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import choice  # noqa: E402
import figures  # noqa: E402


def times_of(figures_by_name):
    return {name: dict(enumerate(each)) for name, each in figures_by_name.items()}


def noisy(seed, factors):
    """Repetitions of a machine that is sometimes four times as slow, with noise of 5 %."""
    source = random.Random(seed)
    states = [source.choice([1, 4]) for _ in range(8)]
    return times_of({name: [state * factor * source.lognormvariate(0, 0.05) for state in states]
                     for name, factor in factors.items()})


class Regret(unittest.TestCase):
    def test_states_of_the_machine_do_not_count(self):
        times = times_of({"slow": [2, 8, 2, 8], "fast": [1, 4, 4 / 4, 4]})
        self.assertAlmostEqual(figures.regret_of(times, "slow"), 2)
        self.assertAlmostEqual(figures.regret_of(times, "fast"), 1)
        self.assertAlmostEqual(figures.regret_over_luckiest(times, "slow"), 2)
        self.assertEqual(figures.best_of(times), ["fast", "slow"])

    def test_equal_candidates_have_none_and_the_luckiest_counts_luck(self):
        names = {f"c{i}": 1 for i in range(6)}
        checked, over_luckiest = 1.0, 1.0
        for seed in range(40):
            times = noisy(seed, names)
            checked *= figures.regret_of(times, "c0") ** (1 / 40)
            over_luckiest *= figures.regret_over_luckiest(times, "c0") ** (1 / 40)
        self.assertAlmostEqual(checked, 1, delta=0.02)
        self.assertGreater(over_luckiest, checked)

    def test_a_worse_choice_has_its_factor(self):
        times = noisy(1, {"c0": 1.5, "c1": 1, "c2": 1.02})
        self.assertAlmostEqual(figures.regret_of(times, "c0"), 1.5, delta=0.15)

    def test_only_repetitions_that_all_have_count(self):
        times = {"a": {0: 1, 1: 1, 2: 9}, "b": {0: 2, 1: 2}}
        self.assertAlmostEqual(figures.regret_of(times, "b"), 2)

    def test_one_repetition_is_compared_as_it_is(self):
        self.assertAlmostEqual(figures.regret_of(times_of({"a": [3], "b": [2]}), "a"), 1.5)


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "jobs.json")

    def test_a_later_run_goes_on(self):
        first = figures.JobFile(self.path, 0)
        self.assertEqual(first.times_of("a", lambda: ([["cell", 1]], "machine")), [["cell", 1]])
        later = figures.JobFile(self.path, 0)
        self.assertEqual(later.times_of("a", self.fail), [["cell", 1]])
        self.assertEqual(later.machine, "machine")

    def test_no_job_begins_that_would_end_late(self):
        late = figures.JobFile(self.path, 1000)
        late.longest_s = 2000
        self.assertIsNone(late.times_of("a", self.fail))
        self.assertTrue(late.is_out_of_time)


def cell(collective, size, names):
    return {"collective": collective, "size": size, "candidates": dict.fromkeys(names, {})}


class Places(unittest.TestCase):
    def test_candidates_have_lengths_of_their_own_and_change_places(self):
        cells = [cell("reduce", 8, ["serial", "bine"]), cell("reduce", 1024, ["serial"])]
        first = {size: name for (size, _), (_, name) in choice.places_of(cells, 0).items()}
        self.assertEqual(first, {8: "serial", 12: "bine", 1024: "serial"})
        second = {size: name for (size, _), (_, name) in choice.places_of(cells, 1).items()}
        self.assertEqual(second, {8: "bine", 12: "serial", 1024: "serial"})
        self.assertEqual(choice.rules_for(choice.places_of(cells, 0)),
                         "reduce:serial@8-9;bine@12-13;serial@1024-1025")

    def test_the_nic_path_has_no_rule(self):
        places = choice.places_of([cell("barrier", 0, [choice.NIC_PATH])], 0)
        self.assertEqual(choice.rules_for(places), "")
        self.assertEqual(choice.settings_of(places), ["barrier"])


class Equals(unittest.TestCase):
    PRICED = [{"algorithm": "linear", "ns": 1, "in_row_ns": 1},
              {"algorithm": "fnomial(4)", "ns": 1, "in_row_ns": 1, "same_as": "linear"},
              {"algorithm": "bine", "ns": 2, "in_row_ns": 2}]

    def test_a_choice_stands_for_its_equals(self):
        explanation = {"priced": self.PRICED, "algorithm": "fnomial(4)", "by_rule": "fnomial(4)",
                       "by_price": "linear"}
        shape = choice.Shape("4")
        self.assertEqual(choice.choices_of(explanation, shape),
                         dict.fromkeys(["library", "rule", "price", "in row"], "fnomial(4)"))
        self.assertEqual(choice.candidates_of(explanation, 3, shape), ["fnomial(4)", "bine"])


class Shapes(unittest.TestCase):
    def test_ranks_hosts_and_daemons(self):
        self.assertEqual((choice.Shape("8").hosts, choice.Shape("8").ranks), (0, 8))
        shape = choice.Shape("4x2+nic")
        self.assertEqual((shape.hosts, shape.ranks, shape.has_nic), (4, 8, True))
        for wrong in ["4+nic", "x2", "0", "4x1+tcp"]:
            with self.assertRaises(choice.argparse.ArgumentTypeError):
                choice.shape_of(wrong)


if __name__ == "__main__":
    unittest.main()

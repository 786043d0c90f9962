#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests which pairs the comparison with other libraries keeps, and the picture that it draws.

usage: peers_test.py FOLDER    bench/peers
"""

import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, sys.argv.pop(1))
import heat_map  # noqa: E402
import pairs  # noqa: E402
import peer_report  # noqa: E402


def run(tool, repetition, us, state_ns=(100, 100), hosts=1, collective="allreduce", size=8):
    results = [{"size": size, "single": {"median_us": us}, "loop": {"median_us": us}}]
    return pairs.Run(tool, hosts, 2, repetition, collective, state_ns, results)


def ratio(runs, limit=1.5):
    rows = pairs.rows(runs, limit)
    return next((row["ratio"] for row in rows if row["method"] == "single"), None)


class Pairs(unittest.TestCase):
    def test_the_best_other_counts(self):
        runs = [run("unisono", 0, 2.0), run("slow", 0, 8.0), run("fast", 0, 3.0)]
        self.assertAlmostEqual(ratio(runs), 1.5)

    def test_pairs_of_different_states_are_thrown_away(self):
        runs = [run("unisono", 0, 2.0), run("other", 0, 9.0, (100, 200)),
                run("unisono", 1, 2.0), run("other", 1, 4.0)]
        self.assertAlmostEqual(ratio(runs), 2.0)
        self.assertEqual(pairs.count_thrown_away(runs, 1.5), {"pairs": 2, "thrown_away": 1})
        self.assertAlmostEqual(ratio(runs, 2.0), 3.25)

    def test_without_a_kept_pair_there_is_no_ratio(self):
        runs = [run("unisono", 0, 2.0, (300, 300)), run("other", 0, 9.0)]
        self.assertIsNone(ratio(runs))

    def test_unknown_states_throw_nothing_away(self):
        runs = [run("unisono", 0, 2.0, (None, None)), run("other", 0, 6.0, (None, None))]
        self.assertAlmostEqual(ratio(runs), 3.0)

    def test_runs_of_other_repetitions_and_shapes_are_no_pair(self):
        runs = [run("unisono", 0, 2.0), run("other", 1, 9.0), run("other", 0, 9.0, hosts=4)]
        self.assertEqual(list(pairs.all_pairs(runs)), [])

    def test_a_run_is_read_back_as_written(self):
        one = run("unisono", 3, 2.0)
        self.assertEqual(pairs.Run.read(one.document()), one)


class HeatMap(unittest.TestCase):
    def document(self, runs):
        return {"versions": {"unisono": "1", "other": "2"}, "machine": {"processor": "<P & Q>"},
                "results": pairs.rows(runs, 1.5)}

    def test_each_shape_is_a_panel_with_its_ratios(self):
        runs = []
        for hosts, us in ((1, 3.0), (4, 0.5)):
            runs += [run("unisono", 0, 1.0, hosts=hosts, size=2048),
                     run("other", 0, us, hosts=hosts, size=2048)]
        picture = heat_map.draw(self.document(runs))
        xml.dom.minidom.parseString(picture)
        for words in ("2 ranks, one machine", "4 hosts, 2 ranks each", ">2K<", ">3.0<", ">0.50<"):
            self.assertIn(words, picture)

    def test_ahead_is_blue_and_behind_is_red(self):
        self.assertNotEqual(heat_map.colour(2.0), heat_map.colour(0.5))
        self.assertEqual(heat_map.colour(100.0), "rgb(%d,%d,%d)" % heat_map.AHEAD)
        self.assertEqual(heat_map.colour(0.01), "rgb(%d,%d,%d)" % heat_map.BEHIND)
        self.assertEqual(heat_map.colour(1.0), "rgb(%d,%d,%d)" % heat_map.EVEN)

    def test_nothing_is_drawn_without_a_ratio(self):
        self.assertEqual(heat_map.draw(self.document([run("unisono", 0, 1.0)])), "")


class Reports(unittest.TestCase):
    def test_wrong_results_make_a_report_unusable(self):
        with self.assertRaises(peer_report.Unusable):
            peer_report.read_report('launcher says\n{"results": [{"wrong": 3}]}')


if __name__ == "__main__":
    unittest.main()

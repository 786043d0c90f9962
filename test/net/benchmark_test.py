#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks with peers and between hosts (bench/peers, bench/hosts, bench/nic), with tiny
counts: what they print and write.

TEST is compare, loss, fat_tree, run, versions or group. Usage:

    benchmark_test.py --bin DIRECTORY --scripts bench/hosts TEST
    benchmark_test.py --bin DIRECTORY --scripts bench/nic nic
    benchmark_test.py --bin DIRECTORY --scripts bench/peers peers
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = None
# The SKIP_RETURN_CODE for ctest: nothing went wrong, but not everything could be run.
SKIPPED = 77
PEERS = {"openmpi41": "mpirun.openmpi", "mpich40": "mpiexec.mpich"}
# Their messages if the machine does not allow something.
OBSTACLES = [
    "does not let us make namespaces",
    "no token bucket filter",
    "does not drop packets at random",
    "built without the NIC program",
]


class Benchmark(unittest.TestCase):
    script = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="unisono-benchmark-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *words):
        command = [sys.executable, OPTIONS.scripts / f"{self.script}.py"]
        return subprocess.run(
            [*command, "--unisono", OPTIONS.bin / "unisono", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def printed(self, *words):
        done = self.call(*words)
        for obstacle in OBSTACLES:
            if done.returncode != 0 and obstacle in done.stdout:
                print(f"skipped: {done.stdout.strip()}")
                self.skipTest(obstacle)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def measure(self, file, *words):
        """The printed text and the JSON written."""
        printed = self.printed(*words)
        return printed, json.loads((self.folder / file).read_text())


class Peers(Benchmark):
    script = "compare"
    others = [name for name, program in PEERS.items() if shutil.which(program)]

    def compare(self, *words):
        return self.measure(
            *["peers.json", "--output", self.folder, "--environments", self.folder / "none"],
            *["--collectives", "barrier,allreduce", "--sizes", "8", "--repeat", "1"],
            # A busy machine changes its state all the time, and no pair is to be thrown away.
            *["--seconds", "0.002", "--limit", "60", "--tables", "all", "--state", "1e6", *words],
            *["--only", ",".join(["unisono", *PEERS, "mpich50"])],
        )

    def check(self, printed, document, place):
        self.assertIn("mpich50 is left out: its wheel is not there", printed)
        # Beside hogs a peer may take minutes, which is no failure of ours; it has to be named.
        slow = [name for name in self.others if f"compare.py: {name}, {place}, " in printed]
        rows = [(row["collective"], row["method"]) for row in document["results"]]
        self.assertEqual(sorted(rows), sorted(
            (collective, method) for collective in ["barrier", "allreduce"]
            for method in ["loop", "single"]))
        for row in document["results"]:
            measured = set(row["median_us"])
            self.assertLessEqual(measured, {"unisono", *self.others}, printed)
            self.assertLessEqual({"unisono", *self.others} - {*slow}, measured, printed)
            # A caller spends time in every implementation; not all have other threads.
            self.assertEqual(set(row["cpu_us"]), measured)
            self.assertGreater(min(row["cpu_us"].values()), 0, row)
            if row["method"] == "loop":
                self.assertEqual(set(row["agent_us"]), measured)
                self.assertGreaterEqual(min(row["agent_us"].values()), 0, row)
        for calls in ["each call after a barrier", "calls back to back"]:
            heading = "# processor time of the calling thread for one call, mean of the ranks; "
            self.assertIn(heading + calls, printed)

    def test_measures_what_is_there_and_names_what_is_not(self):
        printed, document = self.compare("--shapes", "2x1", "--hogs")
        self.check(printed, document, "2x1")
        for row in document["results"]:
            self.assertEqual((row["hosts"], row["ranks"]), (2, 2))

    def test_compares_on_this_machine_too(self):
        printed, document = self.compare("--shapes", "2")
        self.check(printed, document, "2")
        for row in document["results"]:
            self.assertEqual((row["hosts"], row["ranks"]), (1, 2))

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_has_plain_streams_as_a_yardstick(self):
        printed, document = self.measure(
            *["peers.json", "--output", self.folder, "--shapes", "2x1,2", "--only", "unisono,tcp"],
            *["--collectives", "barrier,broadcast,reduce,allgather,alltoall", "--sizes", "8,64K"],
            *["--seconds", "0.002", "--repeat", "1", "--limit", "60", "--state", "1e6"],
        )
        for row in document["results"]:
            has_streams = row["hosts"] == 2 and row["collective"] != "reduce"
            self.assertEqual("tcp" in row["median_us"], has_streams, printed)
            self.assertEqual("tcp" in row["ratios"], has_streams, printed)
            self.assertIsNone(row["ratio"], "a yardstick is no library")
        self.assertRegex(printed, r"\n# collective +size +unisono +tcp +ratio +of tcp\n")
        self.assertRegex(printed, r"\n  allgather +65536 +[0-9.]+ +[0-9.]+ +- +[0-9]+%\n")

    def test_refuses_what_it_cannot_read(self):
        done = self.call("--shapes", "2xx")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("2xx", done.stdout)
        self.assertIn("nothing is named 'slurm'", self.call("--only", "slurm").stdout)


class Loss(Benchmark):
    script = "loss"

    def test_has_a_line_for_each_share(self):
        printed, document = self.measure(
            *["loss.json", "--json", self.folder / "loss.json", "--hosts", "2"],
            *["--loss", "0,20", "--repeat", "1", "--seconds", "0.01"],
        )
        shares = [row["loss_percent"] for row in document["results"]]
        self.assertEqual(shares, [0, 20], printed)
        for row in document["results"]:
            self.assertGreater(row["cpu_us"], 0)


class FatTree(Benchmark):
    script = "fat_tree"

    def test_has_a_figure_for_each_row_with_the_k_used(self):
        printed, document = self.measure(
            *["tree.json", "--json", self.folder / "tree.json", "--rate", "1gbit"],
            *["--algorithms", "kprefix", "kshift", "kprefix(8)"],
            *["--size", "256", "--repeat", "1", "--seconds", "0.01"],
        )
        ran = {row: {name: cell["ran"] for name, cell in cells.items()}
               for row, cells in document["results"].items()}
        of_12 = {"kprefix": "kprefix(4,1)", "kshift": "kshift(4,1)"}
        self.assertEqual(ran, {
            "16, whole": {"kprefix": "kprefix(8,1)", "kshift": "kshift(8,1)",
                          "kprefix(8)": "kprefix(8,1)"},
            **{row: of_12 for row in ("12, whole", "12, 1 hole", "12, 2 holes")},
            "15, 1 hole": {"kshift": "kshift(3,1)"},
        }, printed)
        for cells in document["results"].values():
            for cell in cells.values():
                self.assertGreater(cell["MBps"], 0)
                self.assertGreater(cell["cpu_us"], 0)
        reasons = document["left_out"]["15, 1 hole"]
        self.assertEqual(reasons["kprefix"], "none of k = 8, 4, 2 divides 15")
        self.assertIn("kprefix(8) is not legal for 15 ranks: ", reasons["kprefix(8)"])
        self.assertIn(f"# left out: 15, 1 hole: kprefix: {reasons['kprefix']}\n", printed)
        self.assertRegex(printed, r"\n  12, 1 hole +k=4 [0-9.]+ \([0-9]+ %\) +k=4 ")
        self.assertIn("the paper", printed)

    def test_measures_no_ring_as_kprefix(self):
        sys.path.insert(0, str(OPTIONS.scripts))
        from fat_tree import LeftOut, to_ask_for, what_ran

        asked = {ranks: f"kprefix({k})" for ranks, k in [(16, 8), (12, 4), (14, 2), (128, 8)]}
        self.assertEqual({ranks: to_ask_for("kprefix", ranks) for ranks in asked}, asked)
        self.assertEqual(to_ask_for("kprefix(1)", 15), "kprefix(1)")
        self.assertEqual(what_ran("kprefix", "kprefix(2)", "kprefix(2,1)", 14), "kprefix(2,1)")
        for words in [("kprefix", "kprefix(1)", "kprefix(1,1)", 15),
                      ("kprefix(8)", "kprefix(8)", "gather-release", 15),
                      ("prefix-send", "prefix-send", "ring", 16)]:
            with self.assertRaises(LeftOut):
                what_ran(*words)
        with self.assertRaises(LeftOut):
            to_ask_for("kprefix", 15)

    def test_refuses_what_is_no_rate(self):
        done = self.call("--rate", "50")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--rate: '50' is no rate: write 50mbit", done.stdout)


class Run(Benchmark):
    script = "run"

    def test_runs_studies_between_hosts(self):
        shape = ["--shape", "2x1", "--"]
        tiny = ["--sizes", "8", "--iterations", "5"]
        printed = self.printed(*shape, "allreduce", "--overlap", *tiny)
        self.assertRegex(printed, r"\n +2 +8( +-?[0-9.]+){7} +0  ")
        printed = self.printed(*shape, "hot-spot", *tiny)
        self.assertRegex(printed, r"\n +2 +8( +[0-9.]+){4} +0  ")

    def test_refuses_what_is_no_shape(self):
        done = self.call("--shape", "0x1", "--", "barrier")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("'0x1' is no HOSTSxRANKS, as 4x1", done.stdout)


class Versions(unittest.TestCase):
    def call(self, *words):
        build = OPTIONS.bin.parent
        command = [sys.executable, OPTIONS.scripts / "versions.py", "--old", build, "--new", build]
        return subprocess.run([*command, *words], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_has_a_ratio_for_each_cell(self):
        tiny = ["--collectives", "barrier,reduce", "--sizes", "8", "--seconds", "0.002"]
        done = self.call("--shapes", "1x2,2x1", "--repeat", "2", *tiny)
        if done.returncode != 0 and any(obstacle in done.stdout for obstacle in OBSTACLES):
            print(f"skipped: {done.stdout.strip()}")
            self.skipTest("no hosts here")
        self.assertEqual(done.returncode, 0, done.stdout)
        for shape in ["1x2", "2x1"]:
            table = done.stdout.split(f"# {shape};")[1].split("# geometric mean ")
            for row in [r"barrier +", r"reduce +8"]:
                self.assertRegex(table[0], rf"\n  {row}( +[0-9.]+){{3}}\n")
            self.assertRegex(table[1], r"^[0-9.]+, worst [0-9.]+ \((barrier|reduce) [08]\)")

    def test_refuses_what_it_cannot_read(self):
        done = self.call("--shapes", "1x2,four")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--shapes: 'four' is no HOSTSxRANKS, as 4x1", done.stdout)
        done = self.call("--shapes", "1x2", "--collectives", "allreduces")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("allreduces", done.stdout)


class NicPath(Benchmark):
    script = "compare"
    # Without mpich40: on two cores it may poll until the limit, and takes both until then.
    there = [name for name in ["openmpi41"] if shutil.which(PEERS[name])]

    def test_times_each_call_of_each_path(self):
        names = ["nic", "udp", "tcp", *self.there]
        printed, document = self.measure(
            *["nic.json", "--output", self.folder, "--hosts", "2", "--rounds", "2"],
            *["--operations", "40", "--limit", "60", "--only", ",".join([*names, "mpich50"])],
            *["--environments", self.folder / "none"],
        )
        self.assertIn("mpich50 is left out: its wheel is not there", printed)
        self.assertIn("| p99 | p99.9 | mean99 | dev99 | near | cpu | others | calls |\n", printed)
        rows = {(row["collective"], row["name"]): row for row in document["results"]}
        for collective in ["barrier", "allreduce"]:
            for name in names:
                if f"compare.py: {name}, 2 hosts: no end after 60" in printed:
                    continue
                row = rows[(collective, name)]
                self.assertEqual((row["calls"], row["hosts"]), (40, 2), printed)
                self.assertLessEqual(row["min_us"], row["median_us"])
                # 1 % of 40 calls is none.
                self.assertEqual(row["trimmed_mean_us"], row["mean_us"])
                self.assertGreaterEqual(row["trimmed_deviation_us"], row["deviation_us"])
                self.assertTrue(0 <= row["near_percent"] <= 100, row)
                self.assertGreater(row["cpu_us"], 0, row)
                self.assertGreaterEqual(row["agent_us"], 0, row)
                shares, times = zip(*row["quantiles_us"])
                self.assertEqual((shares[0], times[0]), (1, row["min_us"]))
                self.assertEqual(list(times), sorted(times))
                self.assertLess(shares[-1], 2 / 40)
                self.assertIn(f"| {collective} | 2 | {name} | ", printed)

    def test_times_calls_from_the_last_in_to_the_last_out(self):
        names = ["nic", "tcp", *self.there]
        printed, document = self.measure(
            *["nic.json", "--output", self.folder, "--hosts", "2", "--rounds", "1"],
            *["--operations", "20", "--apart", "4000", "--only", ",".join(names)],
        )
        self.assertIn("From the last rank's call until all have returned;", printed)
        self.assertEqual(document["apart_us"], 4000)
        self.assertEqual(len(document["results"]), 2 * len(names))
        for row in document["results"]:
            self.assertGreater(row["cpu_us"], 0, row)
            # The time that the first rank waits for the last is not in it.
            self.assertLess(row["min_us"], 4000, printed)

    def test_consistency_leaves_the_highest_percent_out(self):
        sys.path.insert(0, str(OPTIONS.scripts))
        from distribution import summary

        # 198 are kept, of mean 1100; 98 of them are more than a tenth below it.
        figures = summary([5_000_000, 900_000_000] + [950_000] * 98 + [1_247_000] * 100)
        self.assertEqual(figures["calls"], 200)
        self.assertAlmostEqual(figures["trimmed_mean_us"], (98 * 950 + 100 * 1247) / 198)
        low, high = (950 - 1100) ** 2, (1247 - 1100) ** 2
        deviation = ((98 * low + 100 * high) / 197) ** 0.5
        self.assertAlmostEqual(figures["trimmed_deviation_us"], deviation)
        self.assertEqual(figures["near_percent"], 0)
        figures = summary([1_000] * 99 + [2_000])
        self.assertEqual((figures["trimmed_deviation_us"], figures["near_percent"]), (0, 100))
        self.assertEqual(figures["mean_us"], 1.01)
        figures = summary([900, 1_000, 1_100, 1_400, 600])
        self.assertEqual((figures["trimmed_mean_us"], figures["near_percent"]), (1, 60))
        figures = summary([7_000])
        self.assertEqual((figures["trimmed_deviation_us"], figures["near_percent"]), (0, 100))

    def test_refuses_what_it_does_not_know(self):
        done = self.call("--only", "nic,slurm")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--only: nothing is named 'slurm'", done.stdout)
        done = self.call("--collectives", "scan")
        self.assertIn("--collectives: nothing is named 'scan'", done.stdout)


    def test_histogram_has_all_calls(self):
        sys.path.insert(0, str(OPTIONS.scripts))
        from distribution import histogram

        bins = histogram([1_000, 1_001, 9_999, 10_000])
        self.assertEqual(len(bins), 25)
        self.assertEqual((bins[0], bins[-2][1], bins[-1]), ((1, 50), 25, (10, 25)))
        self.assertEqual(sum(share for _, share in bins), 100)

    def test_distributions_stay_for_other_numbers_of_hosts(self):
        self.script = "consistency"
        output = self.folder / "consistency.json"
        for hosts in ["2", "3"]:
            printed = self.printed("--hosts", hosts, "--operations", "200", "--output", output,
                                   "--machine", "a test's")
        document = json.loads(output.read_text())
        self.assertEqual(document["machine"], "a test's")
        self.assertEqual(len(document["commands"]), 2)
        rows = document["results"]
        found = {(row["hosts"], row["hogs"], row["name"]) for row in rows}
        wanted = {(hosts, hogs, name) for hosts in [2, 3] for hogs in [False, True]
                  for name in ["nic", "udp"]}
        self.assertEqual((found, len(rows)), (wanted, 8))
        for row in rows:
            self.assertEqual(row["calls"], 200)
            self.assertAlmostEqual(sum(share for _, share in row["histogram"]), 100)
        self.assertIn("| processes, UDP and multicast, busy loops | 3 | ", printed)

    def test_distributions_can_be_measured_in_pieces(self):
        self.script = "consistency"
        output, piece = self.folder / "pieces.json", self.folder / "pieces"
        words = ["--hosts", "2", "--operations", "60", "--rounds", "3", "--output", output,
                 "--piece", piece, "--seconds", "0.001"]
        for made in [1, 2]:
            self.assertIn(f"2 hosts: {made} of 3 rounds", self.call(*words).stdout)
            self.assertFalse(output.exists())
        other = self.call(*words, "--operations", "90")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("has rounds of 20 calls, not 30", other.stdout)
        self.printed(*words)
        rows = json.loads(output.read_text())["results"]
        self.assertEqual([row["calls"] for row in rows], [60] * 4)

    def test_ordinary_traffic_takes_turns_with_none(self):
        self.script = "ordinary_traffic"
        output = self.folder / "traffic.json"
        for kind in ["datagrams", "streams"]:
            self.printed("--hosts", "3", "--operations", "20", "--traffic", kind, "--json", output,
                         "--machine", "a test's")
        document = json.loads(output.read_text())
        self.assertEqual(document["machine"], "a test's")
        self.assertEqual(len(document["commands"]), 2)
        found = {(row["kind"], row["traffic"], row["name"], row["calls"])
                 for row in document["results"]}
        self.assertEqual(found, {(kind, traffic, name, 20) for kind in ["datagrams", "streams"]
                                 for traffic in [False, True] for name in ["nic", "udp"]})


# With a file in place of the kernel's setting.
ONE_GROUP = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
from one_group import OneGroup
setting = pathlib.Path(sys.argv[2])
group = OneGroup(setting)
group.start()
print(setting.read_text().strip() if setting.exists() else "none", flush=True)
"""
ENDS = ["group.end()", "sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"]


class Group(unittest.TestCase):
    def meanwhile(self, setting, end):
        """The setting after a program has ended so, and its guard too."""
        command = [sys.executable, "-c", ONE_GROUP + end, OPTIONS.scripts, setting]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip()

    def test_is_set_back_however_it_ends(self):
        with tempfile.TemporaryDirectory(prefix="unisono benchmark ") as folder:
            setting = pathlib.Path(folder, "setting")
            for end in ENDS:
                setting.write_text("1\n")
                self.assertEqual(self.meanwhile(setting, end), "0", end)
                self.assertEqual(setting.read_text(), "1\n", end)

    def test_leaves_alone_what_is_off_or_not_there(self):
        with tempfile.TemporaryDirectory(prefix="unisono-benchmark-") as folder:
            setting = pathlib.Path(folder, "setting")
            setting.write_text("0\n")
            for end in ENDS:
                self.assertEqual(self.meanwhile(setting, end), "0", end)
                self.assertEqual(setting.read_text(), "0\n", end)
            setting.unlink()
            self.assertEqual(self.meanwhile(setting, "group.end()"), "none")
            self.assertFalse(setting.exists())


TESTS = {"loss": Loss, "fat_tree": FatTree, "run": Run, "nic": NicPath,
         "versions": Versions, "group": Group, "peers": Peers}


def why_not():
    if OPTIONS.script == "group" or os.geteuid() == 0:
        return ""
    return "needs root"


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where unisono is")
    parser.add_argument("--scripts", required=True, type=pathlib.Path)
    parser.add_argument("script", choices=sorted(TESTS))
    OPTIONS = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return SKIPPED
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(TESTS[OPTIONS.script])
    result = unittest.TextTestRunner().run(suite)
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified MPI programs with the drop-in: results equal those of the bare MPI.

usage: mpi_test.py --bin DIRECTORY --drop-in OBJECT [--environments FOLDER] [--seeds N]
           [--most-ranks N] [--ranks N,...] MPI [TEST ...]

Compiles the programs beside this file for the MPI (host_mpi.py). Ends with 77 if the MPI is not
installed.
"""

import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import host_mpi

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
MOST_SECONDS = 200  # of one run; a hang ends there
OPTIONS = argparse.Namespace()


def environment(more):
    return OPTIONS.mpi.environment(OPTIONS.folder, more)


def mpirun(ranks, words, more=None, drop_in=True):
    """The finished run; more: variables of the ranks."""
    tool = [str(OPTIONS.bin / "unisono")] if drop_in else []
    limit = ["timeout", str(MOST_SECONDS)]
    return subprocess.run([*limit, *tool, "mpirun", "-n", str(ranks), *map(str, words)],
                          env=environment(more or {}), capture_output=True, text=True)


def compile_program(source, target, words=(), fortran=False):
    mpi = OPTIONS.mpi
    compiler, libraries = ((mpi.fortran, mpi.fortran_libraries) if fortran else
                           (mpi.compiler, mpi.libraries))
    subprocess.run([*compiler, "-O1", "-g", "-Wno-stringop-overflow",
                    "-Wno-stringop-overread", str(HERE / source), *words,
                    *libraries, "-o", str(OPTIONS.folder / target)],
                   check=True, cwd=OPTIONS.folder)
    return OPTIONS.folder / target


# These programs need more than their source. The one in C++ goes without the interface for C++ that
# MPI has no more.
MORE_WORDS = {"found_counts": ["-ldl"], "random_threads": ["-pthread"],
              "thread_ranks": ["-lpthread"],
              "throwing": ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-lstdc++"]}


@functools.cache
def compiled(name):
    """The program of this name, which is compiled when a test first asks for it."""
    [source] = HERE.glob(f"{name}.c*")
    return compile_program(source.name, name, MORE_WORDS.get(name, ()))


def batches(ranks):
    """First seeds and numbers of random programs: launches of up to 25 programs. Most of them have
    two ranks, as more take turns on few cores."""
    programs = OPTIONS.seeds if ranks == 2 else max(OPTIONS.seeds // 10, min(OPTIONS.seeds, 2))
    for first in range(0, programs, 25):
        yield 10_000 * ranks + first, min(25, programs - first)


class RandomPrograms(unittest.TestCase):
    def run_both(self, seed, programs, ranks):
        words = [compiled("random_program"), seed, 80, programs]
        bare = mpirun(ranks, [*words, "plain"], drop_in=False)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        ours = mpirun(ranks, [*words, "plain"])
        self.assertEqual(ours.returncode, 0, ours.stderr)
        self.assertEqual(ours.stdout, bare.stdout)
        self.assertEqual(bare.stdout.count("hashes"), programs)
        # With reductions in place at the root, which check themselves.
        whole = mpirun(ranks, words)
        self.assertEqual(whole.returncode, 0, whole.stderr)

    def test_results_are_those_of_the_bare_mpi(self):
        for ranks in range(1, OPTIONS.most_ranks + 1):
            for seed, programs in batches(ranks):
                with self.subTest(ranks=ranks, seed=seed):
                    self.run_both(seed, programs, ranks)


class RandomRequests(unittest.TestCase):
    """The program checks itself: some of the bare MPIs fail in it."""

    def run_both(self, seed, programs, ranks):
        program = compiled("random_requests")
        words = [program, seed, 200, programs]
        bare = mpirun(ranks, [*words, "plain"], drop_in=False)
        ours = mpirun(ranks, [*words, "plain"])
        self.assertEqual(ours.returncode, 0, ours.stderr)
        if bare.returncode == 0:
            self.assertEqual(ours.stdout, bare.stdout)
        whole = mpirun(ranks, words)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(whole.stdout.count("hashes"), programs, whole.stderr)

    def test_calls_are_open_on_many_communicators(self):
        for ranks in range(2, min(5, OPTIONS.most_ranks) + 1):
            for seed, programs in batches(ranks):
                with self.subTest(ranks=ranks, seed=seed):
                    self.run_both(seed, programs, ranks)


class RandomTypes(unittest.TestCase):
    def test_each_rank_lays_out_its_elements_in_its_own_way(self):
        """The program checks itself: the bare MPIs fail in several of its steps."""
        program = compiled("random_types")
        for ranks in range(2, min(5, OPTIONS.most_ranks) + 1):
            for seed, programs in batches(ranks):
                for early in ((), ("late",)):
                    with self.subTest(ranks=ranks, seed=seed, early=early):
                        done = mpirun(ranks, [program, seed, 150, programs, *early])
                        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"),
                                         done.stderr)


class RandomThreads(unittest.TestCase):
    def test_threads_call_collectives_at_once(self):
        """The program checks itself: the bare MPIs fail in it."""
        program = compiled("random_threads")
        for ranks in range(2, min(3, OPTIONS.most_ranks) + 1):
            for seed, programs in batches(ranks):
                with self.subTest(ranks=ranks, seed=seed):
                    done = mpirun(ranks, [program, seed, 60, programs])
                    if done.stdout == "none\n":
                        self.skipTest("this MPI has no MPI_THREAD_MULTIPLE")
                    self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)


class Running(unittest.TestCase):
    def expect_fine(self, name, ranks=3, more=None, program="scenarios"):
        done = mpirun(ranks, [compiled(program), name], more)
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
        return done


    def expect_all_fine(self, names, program="scenarios"):
        """All scenarios in one run, with each number of ranks; for each of them another one is the
        first."""
        said = []
        for turn, ranks in enumerate(OPTIONS.ranks):
            first = turn * len(names) // len(OPTIONS.ranks)
            with self.subTest(ranks=ranks):
                words = ",".join(names[first:] + names[:first])
                said.append(self.expect_fine(words, ranks, program=program).stderr)
        return said


class OneApplies(Running):
    """UNISONO_HETEROGENEOUS: one rank applies the operators, which say where they are called."""

    SETTING = {"UNISONO_HETEROGENEOUS": "on"}
    NAMES = "operators,sums,derived,backwards"

    def test_one_rank_applies_each_operator(self):
        for ranks in range(1, OPTIONS.most_ranks + 1):
            with self.subTest(ranks=ranks):
                self.expect_fine(self.NAMES, ranks, self.SETTING, "one_applies")

    def test_without_the_setting_the_program_finds_that_several_do(self):
        more = {"UNISONO_ALGORITHM": "allreduce:pairwise|reduce:serial"}
        for name in ("operators", "sums", "derived"):
            with self.subTest(name=name):
                done = mpirun(4, [compiled("one_applies"), name], more)
                # The text of a rank that aborts may get lost, and Intel MPI's mpirun may end by
                # SIGPIPE after it.
                self.assertNotEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.returncode == 3 or "not true:" in done.stderr,
                                f"{done.returncode}: {done.stderr}")


class Scenarios(Running):
    def test_programs_that_end_well(self):
        self.expect_all_fine(("threads", "many", "attributes", "kinds", "misaligned", "bottom",
                              "unexpected", "wide_types", "backwards", "differ", "corners",
                              "at_end"))

    def test_an_invalid_argument_is_the_bare_mpis_business(self):
        bare = mpirun(3, [compiled("scenarios"), "invalid"], drop_in=False)
        if bare.returncode != 0:
            self.skipTest("this MPI does not check arguments")
        self.expect_fine("invalid")

    def test_a_call_outside_of_init_and_finalize_is_the_bare_mpis_business(self):
        for name in ("too_early", "too_late"):
            with self.subTest(name=name):
                words = [compiled("scenarios"), name]
                bare = mpirun(2, words, drop_in=False)
                self.assertNotEqual(bare.returncode, 0)
                self.assertEqual(mpirun(2, words).returncode, bare.returncode)

    def test_a_mismatch_is_an_error_with_a_class_and_a_text(self):
        done = self.expect_fine("mismatch")
        self.assertIn("rank 1 called allreduce(count 8, int32, sum)", done.stderr)

    def test_the_error_handler_of_the_communicator_is_called(self):
        self.expect_fine("handler")

    def test_the_default_handler_ends_the_job_with_the_message(self):
        done = mpirun(3, [compiled("scenarios"), "fatal"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1 called allreduce(count 8, int32, sum)", done.stderr)

    def test_a_spawned_process_needs_no_drop_in(self):
        scenarios = compiled("scenarios")
        program = OPTIONS.folder / "without"
        program.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec {scenarios} "$@"\n')
        program.chmod(0o755)
        bare = mpirun(2, [scenarios, "spawn", program], drop_in=False)
        if bare.returncode != 0:
            self.skipTest("this MPI cannot spawn here")
        done = mpirun(2, [scenarios, "spawn", program])
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_a_killed_rank_ends_the_job(self):
        done = mpirun(3, [compiled("scenarios"), "killed"])
        self.assertNotEqual(done.returncode, 0)

    def test_the_other_ranks_say_which_one_was_lost(self):
        if OPTIONS.mpi.name != "openmpi":
            self.skipTest("this MPI's mpirun ends the other ranks at once")
        # This mpirun then leaves the other ranks alone, and says nothing by its exit code.
        done = mpirun(3, [compiled("scenarios"), "killed"], {"OMPI_MCA_orte_enable_recovery": "1"})
        self.assertNotEqual(done.returncode, 124, f"the other ranks wait: {done.stderr}")
        # The first one's error handler aborts the job, so the other may not get to say it.
        self.assertRegex(done.stderr, r"rank [02]: rank 1 is lost")
        self.assertNotIn("fine", done.stdout)

    def test_the_class_of_a_lost_rank_is_that_of_the_mpi(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                done = self.expect_fine("stopped", ranks)
                self.assertIn("rank 1 is lost", done.stderr)

    def test_who_does_the_collectives_is_in_the_log(self):
        for value in ("", "off", "allreduce,barrier"):
            with self.subTest(value=value):
                more = {"UNISONO_MPI": value, "UNISONO_LOG": "info"}
                done = self.expect_fine("attributes", 2, more)
                self.assertEqual("Unisono does the collectives" in done.stderr, value != "off")

    def test_a_collective_that_does_not_exist_is_a_warning(self):
        done = self.expect_fine("attributes", 2, {"UNISONO_MPI": "allreduce,everything"})
        self.assertIn('there is no collective "everything"', done.stderr)


class Nonblocking(Running):
    def test_programs_that_end_well(self):
        self.expect_all_fine(("first", "overlap", "blocked", "freed", "between", "status",
                              "threads", "mixed", "in_status", "asked_first", "elsewhere",
                              "beside_files"), "nonblocking")

    def test_without_a_thread_where_the_mpi_calls_the_drop_in(self):
        if OPTIONS.mpi.name in ("openmpi", "openmpi5", "mpich5"):
            self.expect_fine("no_thread", 2, program="nonblocking")

    def test_a_mismatch_is_an_error_of_the_wait(self):
        done = self.expect_fine("mismatch", program="nonblocking")
        self.assertIn("rank 1 called allreduce(count 8, int32, sum)", done.stderr)


class Persistent(Running):
    def test_programs_that_end_well(self):
        for said in self.expect_all_fine(("order", "inactive", "inactive_again", "freed", "many",
                                          "misaligned", "blocked", "between", "threads", "statuses",
                                          "beside", "neighbours", "after_messages",
                                          "looked_at", "partitioned", "at_end"),
                                         "persistent"):
            self.assertNotIn("the host MPI does a persistent collective", said)

    def test_a_mismatch_is_an_error_of_the_start_or_the_wait(self):
        done = self.expect_fine("mismatch", program="persistent")
        self.assertIn("rank 1 called allreduce(count 8, int32, sum)", done.stderr)


class EdgeCases(Running):
    def test_programs_that_end_well(self):
        self.expect_all_fine(("signatures", "uneven", "in_place", "bottom", "freed_early", "orders",
                              "null_requests", "wrong", "no_memory", "plain", "aliased", "looks",
                              "asked_together", "far_blocks", "shared_places"), "edge_cases")

    def test_a_message_that_fails_beside_collectives(self):
        if OPTIONS.mpi.name.startswith("openmpi"):
            self.skipTest("this MPI alone hangs after a message that fails, too")
        self.expect_all_fine(("truncated",), "edge_cases")

    def test_an_exception_of_an_error_handler_reaches_the_program(self):
        self.expect_fine("unlike", program="throwing")

    def test_an_exception_for_an_error_of_the_mpi_reaches_the_program(self):
        bare = mpirun(2, [compiled("throwing"), "invalid"], drop_in=False)
        if (bare.returncode, bare.stdout) != (0, "fine\n"):
            self.skipTest("this MPI alone ends the program there")
        self.expect_fine("invalid", 2, program="throwing")

    def test_an_operator_that_throws_is_an_error_of_all_ranks(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                self.expect_fine("in_operator", ranks, program="throwing")

    def test_more_programs_that_end_well(self):
        self.expect_all_fine(("made_meanwhile", "attributes_that_call", "asked_first",
                              "insignificant", "in_place_with_gaps", "many_types", "in_order",
                              "nothing", "handlers", "between_groups", "whole_types", "cancelled",
                              "freed_too_early", "no_place", "bad_place", "sparse",
                              "long_blocks", "huge_type", "in_turns", "one_difference"),
                             "more_cases")

    def test_ten_thousand_communicators_leave_nothing(self):
        self.expect_fine("ten_thousand", 2, program="more_cases")

    def test_a_communicator_costs_one_allgather_of_the_mpi(self):
        """Those after the first one, in the same order at all ranks."""
        done = mpirun(2, [compiled("more_cases"), "in_turns"], {"UNISONO_LOG": "info"})
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
        numbers = [int(number) for number in re.findall(
            r"Unisono does the collectives of a communicator \((\d+) allgathers", done.stderr)]
        self.assertGreater(len(numbers), 20, done.stderr)
        self.assertEqual(numbers.count(1), len(numbers) - 2, done.stderr)

    def test_windows_between_collectives(self):
        for ranks in OPTIONS.ranks:
            bare = mpirun(ranks, [compiled("more_cases"), "windows"], drop_in=False)
            if bare.returncode != 0:
                self.skipTest("windows do not work with the bare MPI")
            with self.subTest(ranks=ranks):
                self.expect_fine("windows", ranks, program="more_cases")

    def test_an_invalid_argument_at_one_rank_lets_no_other_rank_wait(self):
        bare = mpirun(3, [compiled("scenarios"), "invalid"], drop_in=False)
        if bare.returncode != 0:
            self.skipTest("this MPI does not check arguments")
        self.expect_fine("not_committed,misplaced,invalid_at_one", program="edge_cases")

    def test_blocks_without_a_buffer_are_the_bare_mpis_business(self):
        bare = mpirun(2, [compiled("edge_cases"), "no_buffer"], drop_in=False)
        if (bare.returncode, bare.stdout) != (0, "fine\n"):
            self.skipTest("this MPI does not check for null buffers")
        self.expect_fine("no_buffer", 2, program="edge_cases")

    def test_ranks_may_have_different_settings(self):
        """Unisono does what all want. A rank that wants nothing of it holds up no other."""
        edge_cases = compiled("edge_cases")
        for value, does in (("off", False), ("allreduce", True)):
            program = OPTIONS.folder / f"unlike_{value}"
            program.write_text(
                '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && '
                f'export UNISONO_MPI={value}\nexec {edge_cases} "$@"\n')
            program.chmod(0o755)
            with self.subTest(value=value):
                done = mpirun(3, [program, "plain"], {"UNISONO_LOG": "info"})
                self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
                self.assertEqual("rank 0 of 3: Unisono does the collectives" in done.stderr, does)


STANDARD_CASES = ("empty_statuses", "untouched", "made_in_every_way", "groups_merged",
                  "attributes_copied", "made_types", "strange_extents", "places_with_gaps",
                  "places_below", "read_only", "padding_kept", "own_operator", "types_left_alone",
                  "ended_early", "disconnected", "operators", "one_rank", "invalid_everywhere",
                  "freed_before", "files", "repeated", "collective_at_end")


class StandardCases(Running):
    """The promises of the MPI standard. Some MPIs break some of them themselves."""

    def kept_by_the_bare_mpi(self):
        def is_kept(names):
            words = [compiled("standard_cases"), ",".join(names)]
            bare = mpirun(2, words, drop_in=False)
            return (bare.returncode, bare.stdout) == (0, "fine\n")
        if is_kept(STANDARD_CASES):
            return STANDARD_CASES
        return tuple(name for name in STANDARD_CASES if is_kept([name]))

    def test_the_drop_in_keeps_what_the_bare_mpi_keeps(self):
        kept = self.kept_by_the_bare_mpi()
        self.assertGreaterEqual(len(kept), len(STANDARD_CASES) - 4, kept)
        self.expect_all_fine(kept, "standard_cases")

    def test_operators_take_the_types_that_the_bare_mpi_lets_them_take(self):
        """MPI_LAND of Fortran's integers, for instance: some MPIs compute it, others refuse it."""
        program = compiled("operators")
        bare = mpirun(2, [program], drop_in=False)
        if bare.returncode != 0:
            self.skipTest("the bare MPI ends the program: MPICH 4.0 for MPI_LAND of MPI_FLOAT")
        self.assertGreater(bare.stdout.count("MPI_ERR_OP"), 500)
        ours = mpirun(2, [program])
        self.assertEqual(ours.returncode, 0, ours.stderr)
        different = set(ours.stdout.splitlines()) ^ set(bare.stdout.splitlines())
        self.assertEqual(sorted(different), [])

    def test_a_collective_before_or_after_mpi_ends_the_rank_as_with_the_bare_mpi(self):
        for name in ("before_init", "after_finalize"):
            with self.subTest(name=name):
                bare = mpirun(2, [compiled("standard_cases"), name], drop_in=False)
                self.assertNotIn(bare.returncode, (0, 124), bare.stderr)
                ours = mpirun(2, [compiled("standard_cases"), name])
                self.assertNotIn(ours.returncode, (0, 124), ours.stderr)
                self.assertNotIn("fine", ours.stdout)


class TrialCalls(Running):
    """UNISONO_MPI=trial: the host MPI does calls that it is found to do faster."""

    def decisions(self, ranks, more, scenario="repeated"):
        """For each rank, who does which calls."""
        done = self.expect_fine(scenario, ranks, {"UNISONO_LOG": "info", **more},
                                "standard_cases")
        found = re.findall(r"rank (\d+) of \d+: tried: (.*?) \(Unisono", done.stderr)
        return [sorted(what for rank, what in found if rank == str(own)) for own in range(ranks)]

    def test_all_ranks_decide_alike(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                first, *others = self.decisions(ranks, {"UNISONO_MPI": "trial"})
                names = {re.search(r"does (\w+) of", what)[1] for what in first}
                self.assertLessEqual({"barrier", "bcast", "reduce", "allreduce", "allgather",
                                      "gather", "scatter", "scan"}, names)
                self.assertEqual("alltoallv" in names, ranks == 2)  # more do not know the bytes
                self.assertTrue(all(other == first for other in others))

    def test_the_mpi_does_calls_that_it_does_faster(self):
        of_rank = self.decisions(2, {"UNISONO_MPI": "trial"}, "slow_by_turns")
        self.assertEqual(of_rank, 2 * [["the host MPI does allgather of about 4 bytes"]])

    def test_a_call_that_fails_at_one_rank_lets_no_rank_wait(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                of_rank = self.decisions(ranks, {"UNISONO_MPI": "trial"}, "fails_at_one")
                only = ["the host MPI does allgather of about 4 bytes"]
                self.assertEqual(of_rank, ranks * [only])

    def test_communicators_may_end_in_a_trial(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                first, *others = self.decisions(ranks, {"UNISONO_MPI": "trial"}, "freed_in_trial")
                # One communicator ends after a trial, three more at or after its first round.
                self.assertIn(len(first), range(1, 5), first)
                for what in first:
                    self.assertIn(" does allreduce of about 4 bytes", what)
                self.assertTrue(all(other == first for other in others))

    def test_nonblocking_calls_may_be_pending_in_a_trial(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                first, *others = self.decisions(ranks, {"UNISONO_MPI": "trial"}, "pending_in_trial")
                self.assertIn(" does allgather of about 4 bytes", " ".join(first))
                self.assertTrue(all(other == first for other in others))

    def test_calls_that_names_leave_to_the_mpi_are_not_tried(self):
        first, second = self.decisions(2, {"UNISONO_MPI": "trial,allreduce"})
        self.assertEqual(first, second)
        self.assertIn("bcast", " ".join(first))
        self.assertNotIn("allreduce", " ".join(first))

    def test_auto_tries_calls_whose_bits_cannot_change(self):
        moves = {"bcast", "allgather", "gather", "scatter"}
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                first, *others = self.decisions(ranks, {"UNISONO_MPI": "auto"})
                names = {re.search(r"does (\w+) of", what)[1] for what in first}
                of_two = {"reduce", "allreduce", "scan", "alltoallv"}
                self.assertEqual(names, moves | of_two if ranks == 2 else moves)
                self.assertTrue(all(other == first for other in others))

    def test_with_auto_the_mpi_does_calls_that_it_does_faster(self):
        of_rank = self.decisions(2, {"UNISONO_MPI": "auto"}, "slow_by_turns")
        self.assertEqual(of_rank, 2 * [["the host MPI does allgather of about 4 bytes"]])

    def test_without_the_word_or_with_reproducible_sums_nothing_is_tried(self):
        for more in ({}, {"UNISONO_MPI": "on"},
                     {"UNISONO_MPI": "auto", "UNISONO_REPRODUCIBLE": "1"},
                     {"UNISONO_MPI": "trial", "UNISONO_REPRODUCIBLE": "1"},
                     {"UNISONO_MPI": "auto", "UNISONO_HETEROGENEOUS": "on"},
                     {"UNISONO_MPI": "trial", "UNISONO_HETEROGENEOUS": "on"}):
            with self.subTest(more=more):
                self.assertEqual(self.decisions(2, more), [[], []])


COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "scan", "exscan", "reduce_scatter_block",
               "reduce_scatter", "allgather", "allgatherv", "gather", "gatherv", "scatter",
               "scatterv", "alltoall", "alltoallv", "alltoallw")


class HostRanges(Running):
    """Calls that the machine file leaves to the host MPI."""

    def setUp(self):
        cache = tempfile.TemporaryDirectory()
        self.addCleanup(cache.cleanup)
        self.more = {"XDG_CACHE_HOME": cache.name, "UNISONO_LOG": "debug"}
        self.machine = pathlib.Path(cache.name) / "unisono/machine.json"

    def tune(self, ranks, only=None):
        """Measures all collectives, or a single one."""
        more = dict(self.more)
        if only is not None:
            more["UNISONO_MPI"] = ",".join(name for name in COLLECTIVES if name != only)
        return subprocess.run(
            [OPTIONS.bin / "unisono", "mpirun", "--tune", "-n", str(ranks), compiled("scenarios"),
             "attributes"], env=environment(more), capture_output=True, text=True)

    def set_ranges(self, ranks, ranges):
        """Those of the MPI for so many ranks, as if measured. A file without fingerprint counts
        wherever it was made."""
        if not self.machine.exists():
            self.tune(2, "barrier")  # says how the MPI calls itself
        machine = json.loads(self.machine.read_text())
        machine.pop("fingerprint", None)
        [measured] = machine["host_mpis"]
        measured["ranks"] = ranks
        measured["faster"] = [{"collective": name, "from_bytes": first, "up_to_bytes": last}
                              for name, first, last in ranges]
        self.machine.write_text(json.dumps(machine))
        self.more["UNISONO_MACHINE"] = str(self.machine)

    def plans(self, text):
        """The collectives of which Unisono has made a plan, by its log."""
        return set(re.findall(r"\[select\] ([a-z_]+)\(", text))

    def test_a_measurement_reaches_the_machine_file(self):
        done = self.tune(2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("fine\n"), done.stdout)
        self.assertIn(f"wrote {self.machine}\n", done.stdout)
        [measured] = json.loads(self.machine.read_text())["host_mpis"]
        self.assertEqual((measured["ranks"], measured["hosts"]), (2, 1))
        self.assertIn(f'{measured["library"]}, 2 ranks on 1 host: of 177 cells', done.stdout)

    def test_three_ranks_measure_all_lengths_of_local_counts_as_one(self):
        if "openmpi" not in OPTIONS.mpi.name:
            return  # its ranks never yield, so three of them would take minutes
        done = self.tune(3, "gatherv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 ranks on 1 host: of 1 cells", done.stdout)

    def test_without_a_collective_of_all_ranks_nothing_is_measured(self):
        done = self.tune(1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing was measured", done.stderr)
        self.assertFalse(self.machine.exists())

    def test_calls_in_the_ranges_go_to_the_host_mpi_with_the_same_results(self):
        for ranks in (2, 3):
            sometimes = [(name, 9, 300) for name in COLLECTIVES if name != "barrier"]
            for ranges in (sometimes, [(name, 0, 0) for name, _, _ in sometimes]):
                self.set_ranges(ranks, ranges)
                words = [compiled("random_program"), 700 + ranks, 80, 1, "plain"]
                bare = mpirun(ranks, words, drop_in=False)
                done = mpirun(ranks, words, self.more)
                with self.subTest(ranks=ranks, ranges=ranges[0]):
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(sorted(done.stdout.split("\n")),
                                     sorted(bare.stdout.split("\n")))
                    self.assertIn("measured to be faster, the host MPI does", done.stderr)

    def test_a_range_of_local_counts_holds_for_two_ranks_and_all_lengths_for_more(self):
        # Rank 1 gives or gets 80 bytes. In alltoallv, it sends 8 bytes and gets 12.
        own, pair = ("gatherv", "scatterv"), ("alltoallv", "alltoallw")
        everything = {"gatherv", "scatterv", "alltoallv"}
        of_two = {"broadcast", "alltoallv"}  # the first two go as broadcasts between two ranks
        for ranks, of_own, of_pair, plans in ((2, (80, 80), (10, 10), set()),
                                              (2, (81, 0), (0, 9), of_two),
                                              (3, (0, 1 << 30), (0, 1 << 30), everything),
                                              (3, (0, 0), (0, 0), set())):
            self.set_ranges(ranks, [(name, *of_own) for name in own] +
                            [(name, *of_pair) for name in pair])
            with self.subTest(ranks=ranks, of_own=of_own):
                done = self.expect_fine("local_counts", ranks, self.more)
                self.assertEqual(self.plans(done.stderr), plans)

    def test_the_other_calls_stay_with_unisono(self):
        for ranges, theirs in (([], set()), ([("allreduce", 0, 0)], {"allreduce"}),
                               ([("allreduce", 0, 3), ("allreduce", 5, 0)], set())):
            self.set_ranges(2, ranges)
            with self.subTest(ranges=ranges):
                # It calls a barrier, and an allreduce of 4 bytes.
                done = self.expect_fine("attributes", 2, self.more)
                self.assertEqual(self.plans(done.stderr), {"barrier", "allreduce"} - theirs)


class LargeCounts(Running):
    def test_all_functions(self):
        bare = mpirun(2, [compiled("large_counts")], drop_in=False)
        if bare.stdout == "none\n":
            self.skipTest("this MPI has no functions with large counts")
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.expect_fine("all", ranks, program="large_counts")


class LargeMessages(Running):
    def test_more_than_two_gib(self):
        """The program checks itself: the bare MPIs fail in several of its calls."""
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        [free] = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        if not OPTIONS.large or free < 12 << 20:
            self.skipTest("only with --large, and with 12 GiB of free memory")
        for name in ("one_count", "long_types", "one_element", "gaps", "sums", "scattered_sums",
                     "blocks", "exchange", "large_counts"):
            with self.subTest(name=name):
                self.expect_fine(name, 2, program="large_messages")


class FoundCounts(Running):
    """The drop-in has functions with large counts, so a program finds them with an older MPI, too.
    """

    def test_calls_between_groups(self):
        for ranks in (2, 3, 5):
            with self.subTest(ranks=ranks):
                self.expect_fine("between", ranks, program="found_counts")

    def test_calls_that_are_left_to_the_mpi(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.expect_fine("own", ranks, {"UNISONO_MPI": "off"}, program="found_counts")

    def test_persistent_collectives_of_neighbours(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.expect_fine("neighbours", ranks, program="found_counts")

    def test_a_function_that_the_mpi_lacks_and_the_drop_in_cannot_do_is_missing(self):
        bare = mpirun(2, [compiled("found_counts"), "names"], drop_in=False)
        ours = mpirun(2, [compiled("found_counts"), "names"])
        self.assertEqual(ours.returncode, 0, ours.stderr)
        found = re.findall(r"^has .*$", bare.stdout, re.M)
        self.assertEqual(re.findall(r"^has .*$", ours.stdout, re.M), found)
        self.assertIn("has MPI_Comm_dup", found)

    def test_functions_that_ask_for_several_requests(self):
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                self.expect_fine("statuses", ranks, program="found_counts")


class Sessions(Running):
    def run_both(self, name):
        """The lines of the drop-in, for each number of ranks."""
        bare = mpirun(2, [compiled("sessions"), name], drop_in=False)
        if bare.stdout == "none\n":
            self.skipTest("this MPI has no sessions")
        if "Cannot call MPI_INIT" in bare.stderr:
            self.skipTest("this MPI has no MPI_Init after sessions")
        self.assertEqual((bare.returncode, bare.stdout), (0, "fine\n"), bare.stderr)
        said = []
        for ranks in OPTIONS.ranks:
            with self.subTest(ranks=ranks):
                more = {"UNISONO_LOG": "info"}
                said.append(self.expect_fine(name, ranks, more, program="sessions").stderr)
        return said

    def test_without_mpi_init_the_host_mpi_does_the_collectives(self):
        for said in self.run_both("alone"):
            self.assertNotIn("Unisono does the collectives", said)

    def test_beside_and_around_the_world(self):
        for name in ("beside", "around"):
            with self.subTest(name=name):
                for said in self.run_both(name):
                    self.assertIn("Unisono does the collectives", said)
                    self.assertNotIn("has ended", said)


class Extensions(Running):
    """Some MPIs have functions beyond the standard."""

    def test_ranks_that_are_threads(self):
        program = compiled("thread_ranks")
        bare = mpirun(2, [program], drop_in=False)
        if "none" in bare.stdout:
            self.skipTest("this MPI has no communicators of threads")
        done = mpirun(2, [program])
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_a_revoked_communicator_ends_the_calls_of_all_ranks(self):
        if OPTIONS.mpi.name != "openmpi5":
            self.skipTest("only Open MPI 5 tells which communicators are revoked")
        program = compiled("revoked")
        for ranks in (2, 3):
            for form in ("blocking", "nonblocking", "persistent"):
                with self.subTest(ranks=ranks, form=form):
                    done = mpirun(ranks, ["--with-ft", "ulfm", program, form])
                    self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)


class Profiles(unittest.TestCase):
    def rows(self, program, ranks, more=None, words=()):
        """Those of each rank."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        profile = pathlib.Path(folder.name) / "p"
        done = subprocess.run(["timeout", str(MOST_SECONDS), OPTIONS.bin / "unisono", "mpirun",
                               f"--profile={profile}", "-n", str(ranks), program, *words],
                              env=environment(more or {}), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"\n{ranks} of {ranks} ranks, predicted with the machine file ", done.stderr)
        self.assertNotIn(" ranks, predicted", done.stdout)
        result = []
        for rank in range(ranks):
            lines = [json.loads(line) for line in
                     profile.with_name(f"p.{rank}").read_text().splitlines()]
            self.assertEqual((lines[0]["rank"], lines[0]["ranks"]), (rank, ranks))
            self.assertEqual(lines[-1], {"end": True, "rows": len(lines) - 2})
            result.append(lines[1:-1])
        return result

    def test_calls_that_are_left_to_the_mpi_are_in_it_with_the_reason(self):
        program = compiled("left_calls")
        words = ("collective", "form", "operator", "type", "ranks", "reason", "calls",
                 "least_bytes", "most_bytes")
        for ranks in (2, 3):
            for rank, rows in enumerate(self.rows(program, ranks)):
                group = ranks // 2 if rank < ranks // 2 else ranks - ranks // 2
                gathered = 4 if rank >= ranks // 2 else 0
                left = [tuple(row[word] for word in words) for row in rows if row["reason"]]
                self.assertCountEqual(left, [
                    ("allreduce", "started", "sum", "int32", ranks,
                     "no blocking collective before", 2, 16, 16),
                    ("allreduce", "started", "other", "other", ranks, "its type or operator", 3,
                     48, 48),
                    ("broadcast", "blocking", "", "", 1, "one rank", 4, 12, 12),
                    ("gather", "blocking", "", "", group, "between groups", 1, gathered,
                     gathered)])
                for row in rows:
                    if row["reason"]:
                        self.assertTrue(row["engine"].startswith(OPTIONS.mpi.title.split()[0]), row)
                        self.assertGreater(row["ns"], 0)
                        self.assertEqual(row["unpredicted"], row["calls"])
                own = [(row["collective"], row["calls"]) for row in rows if not row["reason"]]
                self.assertIn(("allreduce", 1), own)

    def test_calls_that_the_mpi_does_after_a_trial_are_in_it(self):
        more = {"UNISONO_MPI": "trial"}
        for rows in self.rows(compiled("standard_cases"), 2, more, ["slow_by_turns"]):
            calls = {row["reason"]: row["calls"] for row in rows
                     if row["collective"] == "allgather" and row["most_bytes"] == 4}
            # 100 calls: 50 before, then 4 and 20 by turns.
            self.assertEqual(calls, {"": 62, "tried": 12, "tried, and faster": 26})

    def test_without_unisono_all_calls_are_in_it(self):
        program = compiled("left_calls")
        for rows in self.rows(program, 2, {"UNISONO_MPI": "off"}):
            self.assertTrue(all(row["reason"] for row in rows), rows)
            blocking = [(row["reason"], row["calls"]) for row in rows
                        if row["collective"] == "allreduce" and row["form"] == "blocking"]
            self.assertEqual(blocking, [("UNISONO_MPI", 1)])


    def test_a_killed_rank_leaves_its_calls(self):
        program = compiled("killed_rank")
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "p"
            done = subprocess.run(["timeout", str(MOST_SECONDS), OPTIONS.bin / "unisono", "mpirun",
                                   f"--profile={profile}", "-n", "3", program, profile],
                                  env=environment({}), capture_output=True, text=True)
            self.assertNotIn(done.returncode, (0, 124), done.stderr)
            self.assertIn("unisono mpirun: without its last calls: ", done.stderr)
            shown = subprocess.run([OPTIONS.bin / "unisono", "profile", "--json",
                                    *sorted(pathlib.Path(folder).glob("p.*"))],
                                   capture_output=True, text=True)
        self.assertEqual(shown.returncode, 1, shown.stderr)
        self.assertIn("rank 1 was killed", shown.stderr)
        merged = json.loads(shown.stdout)
        self.assertEqual(merged["left_out"], [])
        calls = [row["calls"] for row in merged["rows"] if row["collective"] == "allreduce"]
        self.assertEqual(sum(calls), 15)


    def test_the_table_is_that_of_this_job(self):
        """Though an earlier one had more ranks, whose files are still there."""
        program = compiled("left_calls")
        with tempfile.TemporaryDirectory() as folder:
            for words, ranks in ((("-n", "3", program), 3), (("-n", "2", program), 2),
                                 (("-n", "2", "true"), 0)):
                tool = (OPTIONS.bin / "unisono").resolve()
                done = subprocess.run(["timeout", str(MOST_SECONDS), tool, "mpirun",
                                       "--profile=p", *words], cwd=folder,
                                      env=environment({}), capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                table = done.stderr.split(" ranks, predicted with the machine file ")
                if ranks == 0:
                    self.assertEqual(len(table), 1, done.stderr)
                    self.assertIn("no rank has written p.RANK here", done.stderr)
                    continue
                self.assertEqual(table[0].splitlines()[-1], f"{ranks} of {ranks}")
                self.assertIn("allreduce", table[1])
                self.assertNotIn("not in the profile", done.stderr)
            self.assertEqual(len(list(pathlib.Path(folder).glob("p.*"))), 3)

    def test_a_rank_that_ends_early_leaves_its_calls(self):
        program = compiled("early_end")
        for way in ("abort", "pmpi_abort", "exit"):
            with self.subTest(way=way), tempfile.TemporaryDirectory() as folder:
                profile = pathlib.Path(folder) / "p"
                done = subprocess.run(["timeout", str(MOST_SECONDS), OPTIONS.bin / "unisono",
                                       "mpirun", f"--profile={profile}", "-n", "2", program, way],
                                      env=environment({}), capture_output=True, text=True)
                self.assertNotEqual(done.returncode, 124, done.stderr)
                lines = [json.loads(line) for line in
                         profile.with_name("p.0").read_text().splitlines()]
                calls = [line["calls"] for line in lines
                         if line.get("collective") == "allreduce"]
                self.assertEqual((calls, "end" in lines[-1]), ([3], True), done.stderr)


class Others(unittest.TestCase):
    def test_the_tool_says_which_mpi_it_found(self):
        done = mpirun(2, [compiled("scenarios"), "kinds"])
        self.assertIn(f"unisono mpirun: {OPTIONS.mpi.title}", done.stderr)

    def test_fortran(self):
        if not OPTIONS.mpi.fortran:
            self.skipTest("no Fortran compiler")
        for interface in OPTIONS.mpi.interfaces:
            program = compile_program("wrappers.F90", interface,
                                      ["-fallow-argument-mismatch", f"-D{interface}"], fortran=True)
            for ranks in (2, 3):
                with self.subTest(interface=interface, ranks=ranks):
                    done = mpirun(ranks, [program], {"UNISONO_LOG": "info"})
                    self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
                    self.assertIn("Unisono does the collectives", done.stderr)

    def test_a_profiling_tool_sees_the_calls(self):
        """Linked into the program, or preloaded behind the drop-in."""
        linked = compile_program("scenarios.c", "profiled", words=[str(HERE / "profiler.c")])
        tool = compile_program("profiler.c", "profiler.so", words=["-shared", "-fPIC"])
        for words, more in (([linked, "many"], {}),
                            ([compiled("scenarios"), "many"], {"LD_PRELOAD": str(tool)})):
            with self.subTest(words=words):
                done = mpirun(2, words, {**more, "UNISONO_LOG": "info"})
                self.assertEqual(done.returncode, 0, done.stderr)
                # Rank 0 alone is in the communicators of a group.
                for count in (600, 400):
                    self.assertEqual(done.stdout.count(f"profiler: {count} allreduces"), 1,
                                     done.stdout)
                self.assertIn("Unisono does the collectives", done.stderr)

    def test_each_rank_of_the_world_writes_its_profile(self):
        profile = OPTIONS.folder / "profile"
        program = compiled("split_first")
        done = subprocess.run([str(OPTIONS.bin / "unisono"), "mpirun", f"--profile={profile}",
                               "-n", "4", str(program)],
                              env=environment({}), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 of 4 ranks, predicted with", done.stderr)
        for rank in range(4):
            lines = [json.loads(line) for line in
                     (OPTIONS.folder / f"profile.{rank}").read_text().splitlines()]
            self.assertEqual((lines[0]["rank"], lines[0]["ranks"]), (rank, 4))
            self.assertEqual(lines[-1], {"end": True, "rows": len(lines) - 2})
            ranks = [row["ranks"] for row in lines[1:-1] if row["collective"] == "allreduce"]
            self.assertEqual(sorted(ranks), [2, 4])

    def test_mpi_is_used_after_main(self):
        program = compiled("at_exit")
        for way in ("atexit", "destructor"):
            with self.subTest(way=way):
                done = mpirun(2, [program, way])
                self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)

    def test_a_program_without_mpi_loads_nothing(self):
        done = subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True,
                              check=True, env=environment({"LD_PRELOAD": str(OPTIONS.drop_in)}))
        self.assertIn("libunisono_mpi.so", done.stdout)
        self.assertNotIn("libunisono.so", done.stdout)
        self.assertEqual(done.stderr, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="where the tool is")
    parser.add_argument("--drop-in", required=True, type=pathlib.Path, help="libunisono_mpi.so")
    parser.add_argument("--seeds", type=int, default=2,
                        help="random programs of two ranks; a tenth of them with more")
    parser.add_argument("--most-ranks", type=int, default=9, help="of random programs")
    parser.add_argument("--ranks", type=lambda text: list(map(int, text.split(","))),
                        default=[2, 3, 5], help="of other programs; default: 2,3,5")
    parser.add_argument("--large", action="store_true", help="messages of more than 2 GiB, too")
    parser.add_argument("--environments", type=pathlib.Path, default=host_mpi.ENVIRONMENTS,
                        help="folder of scripts/mpi_environments.py")
    parser.add_argument("mpi", choices=host_mpi.NAMES)
    parser.add_argument("tests", nargs="*", help="names of tests")
    parser.parse_args(namespace=OPTIONS)
    try:
        OPTIONS.mpi = host_mpi.find(OPTIONS.mpi, OPTIONS.environments)
    except host_mpi.Missing as error:
        print(f"skipped: {error}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        OPTIONS.folder = pathlib.Path(folder)
        OPTIONS.mpi.write_launchers(OPTIONS.folder)
        result = unittest.main(argv=[sys.argv[0], *OPTIONS.tests], exit=False, verbosity=2).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

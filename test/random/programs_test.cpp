// SPDX-License-Identifier: BSD-3-Clause
// Random programs on the C API: collectives of all kinds on several communicators, in all forms,
// with ranks that come late and settings drawn, too. Every byte of every buffer is compared. Ranks
// are threads of a process, or processes. A failure prints the program and its seed; `--seed N`
// runs that one alone, and `--seeds N` (label slow) many.
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>

#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "harness/temporary_folder.hpp"
#include "harness/threads.hpp"
#include "process/ranks.hpp"
#include "random/program.hpp"
#include "random/rank_run.hpp"
#include "random/settings.hpp"

namespace unisono::test::programs::programs_test {
namespace {

using harness::ProcessJob;
using harness::ProcessRank;

Seeds seeds;

int count_of(int usual) {
  return seeds.count > 0 ? seeds.count : static_cast<int>(harness::scaled(usual));
}

// The settings are read once in a process, so each program has one of its own.
ProcessJob::Options options_of(const Program& program, bool joins, const TemporaryFolder& folder) {
  ProcessJob::Options options;
  options.environment = program.settings;
  if (!program.constants.empty()) {
    options.environment["UNISONO_MACHINE"] = write_machine(program.constants, folder.path());
  }
  options.joins = joins;
  return options;
}

void run_rank(const Program& program, int rank, unisono_comm_t world) {
  RankRun(program, rank, world).run();
}

void run_on_threads(const Program& program) {
  const TemporaryFolder folder;
  ProcessJob job(
      1,
      [&program](ProcessRank&) {
        harness::run_threads(program.ranks, [&program](harness::ThreadRank& self) {
          run_rank(program, self.rank, self.world);
        });
      },
      options_of(program, false, folder));
  job.expect_all_clean();
}

void run_on_processes(const Program& program) {
  const TemporaryFolder folder;
  ProcessJob job(
      program.ranks, [&program](ProcessRank& self) { run_rank(program, self.rank, self.world); },
      options_of(program, true, folder));
  job.expect_all_clean();
}

void run_seeds(const char* test, int usual, void (*run)(const Program&)) {
  const std::uint64_t end = seeds.first + static_cast<std::uint64_t>(count_of(usual));
  for (std::uint64_t seed = seeds.first; seed < end; ++seed) {
    const Program program = Program::draw(seed, {});
    run(program);
    if (testing::Test::HasFailure()) {
      FAIL() << "run it again: random_programs --gtest_filter=RandomPrograms." << test << " --seed "
             << seed << "\n"
             << listing(program);
    }
  }
}

TEST(RandomPrograms, OnThreads) { run_seeds("OnThreads", 200, run_on_threads); }

TEST(RandomPrograms, OnProcesses) { run_seeds("OnProcesses", 100, run_on_processes); }

}  // namespace
}  // namespace unisono::test::programs::programs_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::test::programs::programs_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}

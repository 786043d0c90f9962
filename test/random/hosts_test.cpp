// SPDX-License-Identifier: BSD-3-Clause
// Random programs on several test hosts, each with a network and a memory of its own: the same as
// programs_test.cpp, with settings of the network drawn, too. Needs root, and says so otherwise.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <vector>

#include "harness/hosts.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "harness/seeds.hpp"
#include "harness/temporary_folder.hpp"
#include "random/program.hpp"
#include "random/rank_run.hpp"
#include "random/settings.hpp"

namespace unisono::test::programs::hosts_test {
namespace {

using harness::HostProcess;
using harness::Line;
using harness::succeeded;
using harness::TestHosts;

constexpr int kHosts = 3;
constexpr Limits kLimits{.most_ranks = 6, .hosts = true};
// A rank that lives longer hangs.
constexpr unsigned kHangSeconds = 120;

Seeds seeds;

void set_environment(const Program& program, int rank, const std::string& machine) {
  setenv("UNISONO_RANK", std::to_string(rank).c_str(), 1);
  setenv("UNISONO_SIZE", std::to_string(program.ranks).c_str(), 1);
  setenv("UNISONO_RENDEZVOUS", "tcp:10.77.0.1:7000", 1);
  setenv("UNISONO_JOB_KEY", "the key of a random program", 1);
  setenv("UNISONO_START_TIMEOUT", "60s", 1);
  for (const auto& [name, value] : program.settings) setenv(name.c_str(), value.c_str(), 1);
  if (!machine.empty()) setenv("UNISONO_MACHINE", machine.c_str(), 1);
}

void run_rank(const Program& program, int rank, const std::string& machine) {
  SCOPED_TRACE("rank " + std::to_string(rank));
  alarm(kHangSeconds);
  set_environment(program, rank, machine);
  unisono_comm_t world = nullptr;
  ASSERT_TRUE(succeeded(unisono_init(&world)));
  try {
    RankRun(program, rank, world).run();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the body threw: " << error.what();
  }
  unisono_finalize(world);
}

// Rank 0 is on the host of the rendezvous.
std::vector<int> draw_hosts(const Program& program) {
  base::Prng prng(program.seed);
  std::vector<int> hosts{0};
  while (std::ssize(hosts) < program.ranks) hosts.push_back(static_cast<int>(prng.below(kHosts)));
  return hosts;
}

void run_on_hosts(const TestHosts& hosts, const Program& program) {
  const std::vector<int> places = draw_hosts(program);
  const TemporaryFolder folder;
  const std::string machine =
      program.constants.empty() ? "" : write_machine(program.constants, folder.path());
  std::vector<HostProcess> processes;
  for (int rank = 0; rank < program.ranks; ++rank) {
    const auto run = [&program, rank, &machine](const Line&) { run_rank(program, rank, machine); };
    processes.push_back(hosts.start(places[static_cast<std::size_t>(rank)], run));
  }
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    EXPECT_EQ(processes[rank].wait(), 0) << "rank " << rank << " on host " << places[rank];
  }
}

TEST(RandomPrograms, OnHosts) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto count = seeds.count > 0 ? seeds.count : static_cast<int>(harness::scaled(60));
  const std::uint64_t end = seeds.first + static_cast<std::uint64_t>(count);
  for (std::uint64_t seed = seeds.first; seed < end; ++seed) {
    const Program program = Program::draw(seed, kLimits);
    run_on_hosts(hosts, program);
    if (HasFailure()) {
      FAIL() << "run it again: random_programs_of_hosts --seed " << seed << "\n"
             << listing(program);
    }
  }
}

}  // namespace
}  // namespace unisono::test::programs::hosts_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::test::programs::hosts_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}

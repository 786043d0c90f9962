// SPDX-License-Identifier: BSD-3-Clause
// kill -9 at random moments of whole jobs in the NIC path, by the C API: ranks and daemons die
// during each kind of operation, with one rank on each host and with several, with multicast and
// without. Every call that succeeds has the right result. All ranks that are left get an error
// which says what was lost, and go on without it if a rank was lost. A failure prints its seed;
// `--seed N` runs that one alone, and `--seeds N` (label slow) many.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "harness/seeds.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/job/shared_counts.hpp"
#include "nic/port/vector_limit.hpp"

namespace unisono::harness::kill_job_test {
namespace {

constexpr int kCallsAfter = 20;  // of the ranks that are left
constexpr int kMostCalls = 1'000'000;

// The members of a communicator, and which call of it this is.
struct Members {
  unisono_comm_t comm = nullptr;
  int rank = 0;
  int ranks = 0;
  static Members of(unisono_comm_t comm) {
    Members members = {.comm = comm};
    EXPECT_TRUE(succeeded(unisono_comm_rank(comm, &members.rank)));
    EXPECT_TRUE(succeeded(unisono_comm_size(comm, &members.ranks)));
    return members;
  }
  std::int64_t sum(int call) const {
    return std::int64_t{ranks} * (ranks - 1) / 2 + std::int64_t{ranks} * call;
  }
};

// They return the call's error. After a success the result is right.
using Kind = int (*)(const Members&, int call);

int barrier(const Members& all, int) { return unisono_barrier(all.comm); }

template <std::size_t kCount>
int allreduce(const Members& all, int call) {
  std::array<double, kCount> vector;
  vector.fill(all.rank + call);
  const int error = unisono_allreduce(UNISONO_IN_PLACE, vector.data(), kCount, UNISONO_FLOAT64,
                                      UNISONO_SUM, all.comm);
  if (error != UNISONO_OK) return error;
  for (const double sum : vector) EXPECT_EQ(sum, static_cast<double>(all.sum(call))) << call;
  return error;
}

int reduce(const Members& all, int call) {
  const std::int64_t own = all.rank + call;
  std::int64_t sum = -1;
  const int root = call % all.ranks;
  const int error = unisono_reduce(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, root, all.comm);
  if (error == UNISONO_OK) {
    EXPECT_EQ(sum, all.rank == root ? all.sum(call) : -1) << call;
  }
  return error;
}

int broadcast(const Members& all, int call) {
  std::array<std::int64_t, 100> buffer;
  const int root = call % all.ranks;
  buffer.fill(all.rank == root ? call : -1);
  const int error = unisono_broadcast(buffer.data(), static_cast<std::int64_t>(buffer.size()),
                                      UNISONO_INT64, root, all.comm);
  if (error != UNISONO_OK) return error;
  for (const std::int64_t word : buffer) EXPECT_EQ(word, call);
  return error;
}

int allgather_of(const Members& all, int call, std::size_t words) {
  const std::vector<std::int64_t> own(words, all.rank + call);
  std::vector<std::int64_t> blocks(words * static_cast<std::size_t>(all.ranks), -1);
  const int error = unisono_allgather(own.data(), blocks.data(), static_cast<std::int64_t>(words),
                                      UNISONO_INT64, all.comm);
  if (error != UNISONO_OK) return error;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i], static_cast<std::int64_t>(i / words) + call) << i;
  }
  return error;
}
int allgather(const Members& all, int call) { return allgather_of(all, call, 1); }
// Two packets of each host with two ranks, or with one where no host has more.
int long_allgather(const Members& all, int call) {
  constexpr std::size_t kTwoPackets = 2 * UNISONO_NIC_WORDS_MAX;
  return allgather_of(all, call, all.ranks > kHosts ? kTwoPackets / 2 : kTwoPackets);
}

// As many as may be in flight, collected in another order by every other rank. One of them is an
// allgather.
int at_once(const Members& all, int call) {
  constexpr std::size_t kMost = nic::kInFlightMax;
  std::array<std::int64_t, kMost> sums{};
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(all.ranks), -1);
  const std::int64_t own = all.rank + call;
  std::array<unisono_request_t, kMost> requests{};
  int first_error = UNISONO_OK;
  std::array<int, kMost> errors{};
  for (std::size_t i = 0; i < kMost; ++i) {
    errors[i] = i == 1 ? unisono_allgather_start(&own, blocks.data(), 1, UNISONO_INT64, all.comm,
                                                 &requests[i])
                       : unisono_allreduce_start(&own, &sums[i], 1, UNISONO_INT64, UNISONO_SUM,
                                                 all.comm, &requests[i]);
  }
  for (std::size_t turn = 0; turn < kMost; ++turn) {
    const std::size_t i = all.rank % 2 == 0 ? turn : kMost - 1 - turn;
    if (errors[i] == UNISONO_OK) errors[i] = unisono_wait(&requests[i]);
    if (errors[i] != UNISONO_OK) {
      first_error = errors[i];
    } else if (i != 1) {
      EXPECT_EQ(sums[i], all.sum(call)) << i;
    }
  }
  for (int rank = 0; errors[1] == UNISONO_OK && rank < all.ranks; ++rank) {
    EXPECT_EQ(blocks[static_cast<std::size_t>(rank)], rank + call);
  }
  return first_error;
}

// A persistent plan of each call, which is one operation.
int persistent(const Members& all, int call) {
  std::int64_t own = all.rank + call;
  std::int64_t sum = 0;
  unisono_plan_t plan = nullptr;
  int error = unisono_allreduce_plan(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, all.comm, &plan);
  if (error != UNISONO_OK) return error;
  error = unisono_plan_start(plan);
  if (error == UNISONO_OK) error = unisono_plan_wait(plan);
  if (error == UNISONO_OK) {
    EXPECT_EQ(sum, all.sum(call));
    EXPECT_TRUE(succeeded(unisono_plan_free(plan)));
  }
  return error;
}

struct NamedKind {
  const char* name;
  Kind call;
};
constexpr NamedKind kKinds[] = {
    {"barrier", barrier},
    {"allreduce", allreduce<3>},
    {"allreduce of two packets", allreduce<300>},
    {"reduce", reduce},
    {"broadcast", broadcast},
    {"allgather", allgather},
    {"allgather of two packets", long_allgather},
    {"split-phase calls", at_once},
    {"persistent calls", persistent},
};
// One after another. All ranks take the same turns.
int mixture(const Members& all, int call) {
  return kKinds[static_cast<std::size_t>(call) % std::size(kKinds)].call(all, call);
}

constexpr std::size_t kKindCount = std::size(kKinds) + 1;
NamedKind kind_of(std::uint64_t seed) {
  const std::size_t kind = seed % kKindCount;
  return kind < std::size(kKinds) ? kKinds[kind] : NamedKind{"a mixture", mixture};
}

unisono::test::Seeds seeds{.count = 2 * static_cast<int>(kKindCount)};

// Less than half of the hosts lose anything, so that the survivors have a majority.
struct Scenario {
  explicit Scenario(std::uint64_t seed) : random(seed), kind(kind_of(seed)) {
    if (seed / kKindCount % 2 == 0) host_of = {0, 0, 1, 1, 2, 2, 3};
    const auto ranks = static_cast<int>(host_of.size());
    const std::uint64_t what = random.below(10);
    if (what < 8) victims.push_back(static_cast<int>(random.below(static_cast<unsigned>(ranks))));
    // All ranks of its host.
    for (int rank = 0; what == 7 && rank < ranks; ++rank) {
      if (rank != victims[0] && host(rank) == host(victims[0])) victims.push_back(rank);
    }
    if (what >= 6 && what != 7) daemon = static_cast<int>(random.below(kHosts));
    step = static_cast<int>(random.below(static_cast<unsigned>(100 * ranks)));
    if (random.below(2) == 0) environment.emplace_back("UNISONO_ALGORITHM", "barrier:test-and-set");
    if (random.below(3) == 0) environment.emplace_back("UNISONO_MULTICAST", "off");
  }
  int host(int rank) const { return host_of[static_cast<std::size_t>(rank)]; }
  bool is_victim(int rank) const { return std::ranges::find(victims, rank) != victims.end(); }

  base::Prng random;
  NamedKind kind;
  std::vector<int> host_of = {0, 1, 2, 3};
  std::vector<int> victims;  // ranks
  int daemon = -1;           // the host of one that is killed
  int step = 0;              // calls of all ranks together, until then
  Environment environment;
};

class NicKillJob : public NicJob {
 protected:
  void run_scenario(std::uint64_t seed);
};

// Calls until something is lost.
void call_until_error(const NicRank& self, const Scenario& scenario, std::atomic<int>& steps) {
  const Members all = Members::of(self.world);
  int error = UNISONO_OK;
  for (int call = 0; call < kMostCalls && error == UNISONO_OK; ++call) {
    ++steps;
    error = scenario.kind.call(all, call);
  }
  std::vector<int> allowed;
  if (!scenario.victims.empty()) allowed.push_back(UNISONO_ERROR_RANK_LOST);
  if (scenario.daemon >= 0) allowed.push_back(UNISONO_ERROR_SYSTEM);
  EXPECT_TRUE(failed_with_any(error, allowed));
  int cause = -1;
  EXPECT_TRUE(succeeded(unisono_comm_failed_rank(self.world, &cause)));
  EXPECT_TRUE(cause < 0 || scenario.daemon >= 0 || scenario.is_victim(cause)) << cause;
}

// A communicator of those that are left does the same calls.
void go_on(const NicRank& self, const Scenario& scenario) {
  unisono_comm_t rest = nullptr;
  ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
  const Members left = Members::of(rest);
  ASSERT_EQ(left.ranks, self.ranks - static_cast<int>(scenario.victims.size()));
  for (int call = 0; call < kCallsAfter; ++call) {
    ASSERT_TRUE(succeeded(scenario.kind.call(left, call))) << call;
  }
}

void NicKillJob::run_scenario(std::uint64_t seed) {
  Scenario scenario(seed);
  SCOPED_TRACE(std::string(scenario.kind.name) + " with " +
               std::to_string(scenario.host_of.size()) + " ranks");
  host_of_ = scenario.host_of;
  start_daemons();
  ASSERT_FALSE(HasFatalFailure());
  const SharedCounts counts(1);
  const auto body = [&scenario, &counts](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    self.line.say("ready");
    self.line.hear();
    ASSERT_NO_FATAL_FAILURE(call_until_error(self, scenario, counts[0]));
    self.line.say("failed");
    self.line.hear();  // until all victims are dead
    ASSERT_NO_FATAL_FAILURE(go_on(self, scenario));
    unisono_finalize(self.world);
  };
  auto processes = start_job(body, scenario.environment);
  for (const auto& process : processes) ASSERT_EQ(process.line().hear(), "ready");
  std::vector<pid_t> doomed;
  for (const int rank : scenario.victims) {
    doomed.push_back(nic::test::child_of(processes[static_cast<std::size_t>(rank)].pid()));
    ASSERT_GT(doomed.back(), 0);
  }
  for (const auto& process : processes) process.line().say("go");
  while (counts[0] < scenario.step) std::this_thread::yield();
  for (std::uint64_t spins = scenario.random.below(200'000); spins > 0; --spins) counts[0].load();
  for (const pid_t process : doomed) kill(process, SIGKILL);
  if (scenario.daemon >= 0) kill_daemon(scenario.daemon);
  for (const int rank : scenario.victims) {
    EXPECT_NE(processes[static_cast<std::size_t>(rank)].wait(), 0);
  }
  for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
    const auto& process = processes[static_cast<std::size_t>(rank)];
    if (scenario.is_victim(rank)) continue;
    EXPECT_EQ(process.line().hear(), "failed") << "rank " << rank;
    process.line().say("go on");
  }
  for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
    if (scenario.is_victim(rank)) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
  }
  // Calls before and after went by the NIC path.
  if (scenario.daemon < 0) {
    EXPECT_GT(operations() + counted(UNISONO_NIC_BLOCK_SENT), std::uint64_t{kCallsAfter});
  }
  // A daemon that is left has nothing of the job any more.
  for (int host = 0; host < kHosts; ++host) {
    if (host == scenario.daemon) continue;
    while (!HasFailure() && status(host).groups != 0) std::this_thread::yield();
  }
}

TEST_F(NicKillJob, AtRandomMomentsOfEachKindOfOperation) {
  for (int i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: nic_kill_job --seed " + std::to_string(seed));
    run_scenario(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace unisono::harness::kill_job_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::harness::kill_job_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}

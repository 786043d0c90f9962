// SPDX-License-Identifier: BSD-3-Clause
// Several operations of a communicator are in flight in the NIC path at the same time, as
// split-phase calls start them: their contributions are at other hosts before any of them is done.
// How far a rank runs ahead is bounded. Results have the bits of the host engine's, in whatever
// order they are collected. A death, the end of a daemon and a call that differs are errors for the
// operations that need them.
#include <signal.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "nic/job/allreduce_bits.hpp"
#include "nic/job/nic_job.hpp"
#include "nic/port/vector_limit.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::harness::in_flight_job_test {
namespace {

constexpr auto kMost = static_cast<int>(nic::kInFlightMax);

class NicInFlight : public NicJob {
 protected:
  // Contributions that hosts have sent to their parents.
  std::uint64_t sent_up() const { return counted(UNISONO_NIC_SENT_UP); }
};

// A sum in place, of one word.
struct Sum {
  std::int64_t value = 0;
  unisono_request_t request = nullptr;

  int start(unisono_comm_t comm, std::int64_t own) {
    value = own;
    return unisono_allreduce_start(UNISONO_IN_PLACE, &value, 1, UNISONO_INT64, UNISONO_SUM, comm,
                                   &request);
  }
};

// The root of the tree is late, so nothing can end. The others have started more than a rank may
// have in flight, and their processes do nothing meanwhile.
TEST_F(NicInFlight, ContributionsAreOnTheirWayTogetherAndTheirNumberIsBounded) {
  constexpr int kAtOnce = 3 * kMost;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    self.line.say("ready");
    self.line.hear();
    std::array<Sum, kAtOnce> sums;
    for (int i = 0; i < kAtOnce; ++i) {
      ASSERT_TRUE(succeeded(sums[static_cast<std::size_t>(i)].start(self.world, self.rank + i)));
    }
    self.line.say("started");
    self.line.hear();
    for (int i = 0; i < kAtOnce; ++i) {
      const int index = self.rank % 2 == 1 ? kAtOnce - 1 - i : i;
      Sum& sum = sums[static_cast<std::size_t>(index)];
      ASSERT_TRUE(succeeded(unisono_wait(&sum.request)));
      ASSERT_EQ(sum.value, 6 + 4 * index);
    }
    leave(self);
  });
  for (const HostProcess& rank : processes) ASSERT_EQ(rank.line().hear(), "ready");
  const std::uint64_t before = sent_up();
  for (int rank = 1; rank < kHosts; ++rank) {
    const Line& line = processes[static_cast<std::size_t>(rank)].line();
    line.say("start");
    ASSERT_EQ(line.hear(), "started");
  }
  EXPECT_EQ(sent_up() - before, std::uint64_t{kMost * (kHosts - 1)})
      << "of each rank but the root, as many as may be in flight";
  processes[0].line().say("start");
  ASSERT_EQ(processes[0].line().hear(), "started");
  for (const HostProcess& rank : processes) rank.line().say("collect");
  expect_all_clean(processes);
  EXPECT_EQ(sent_up() - before, std::uint64_t{kAtOnce * (kHosts - 1)}) << "and each once";
  EXPECT_EQ(operations(), kAtOnce + 2U) << "and the trial and the barrier";
}

// Rank 0 waits for the NIC path only, while its long messages still need it to carry them on.
TEST_F(NicInFlight, LongMessagesGoOnWhileARankWaitsForTheNicPath) {
  const std::string carrier = transport::ofi_description();
  if (!carrier.starts_with("libfabric ")) GTEST_SKIP() << carrier;
  constexpr std::int64_t kLong = 20'000, kShort = 60;
  start_daemons();
  auto processes = start_job(
      [](const NicRank& self) {
        const std::vector<float> own(kLong, 1), block(kShort, static_cast<float>(self.rank));
        std::vector<float> before(kLong), all(kShort * static_cast<std::size_t>(self.ranks));
        for (int round = 0; round < scaled(100); ++round) {
          unisono_request_t scan = nullptr, gather = nullptr;
          ASSERT_TRUE(succeeded(unisono_exscan_start(
              own.data(), before.data(), kLong, UNISONO_FLOAT32, UNISONO_SUM, self.world, &scan)));
          ASSERT_TRUE(succeeded(unisono_allgather_start(block.data(), all.data(), kShort,
                                                        UNISONO_FLOAT32, self.world, &gather)));
          const bool is_first = self.rank == 0;
          ASSERT_TRUE(succeeded(unisono_wait(is_first ? &gather : &scan)));
          ASSERT_TRUE(succeeded(unisono_wait(is_first ? &scan : &gather)));
          ASSERT_EQ(all.back(), static_cast<float>(self.ranks - 1));
          ASSERT_EQ(before.back(), is_first ? 0 : static_cast<float>(self.rank));
        }
        leave(self);
      },
      {{"UNISONO_BULK", "ofi"}});
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), (static_cast<std::uint64_t>(scaled(100)) + 1) * kHosts)
      << "the allgathers, and the trial";
}

// Sums of floating-point numbers, allgathers and barriers, of one packet and several. The ranks
// collect them in different orders, and the bits are those of the host engine.
std::uint64_t mixed_results(const NicRank& self) {
  Bits bits;
  base::Prng together(11);
  base::Prng apart(static_cast<std::uint64_t>(self.rank) + 1);
  for (int round = 0; round < 60; ++round) {
    constexpr std::size_t kAtOnce = 7;
    std::vector<std::vector<double>> inputs(kAtOnce), outputs(kAtOnce);
    std::vector<unisono_request_t> requests(kAtOnce);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::uint64_t kind = together.below(5);
      const std::size_t most = kind == 0 ? 300 : 350;
      const std::size_t count = 1 + together.below(together.below(2) == 0 ? 4 : most);
      inputs[i] = numbers_of<double>(round, self.rank, count);
      const auto n = static_cast<std::int64_t>(count);
      int error = UNISONO_OK;
      if (kind == 0) {
        outputs[i].resize(count * static_cast<std::size_t>(self.ranks));
        error = unisono_allgather_start(inputs[i].data(), outputs[i].data(), n, UNISONO_FLOAT64,
                                        self.world, &requests[i]);
      } else if (kind == 1) {
        error = unisono_barrier_start(self.world, &requests[i]);
      } else {
        outputs[i].resize(count);
        error = unisono_allreduce_start(inputs[i].data(), outputs[i].data(), n, UNISONO_FLOAT64,
                                        UNISONO_SUM, self.world, &requests[i]);
      }
      EXPECT_TRUE(succeeded(error));
    }
    std::vector<std::size_t> order(kAtOnce);
    for (std::size_t i = 0; i < kAtOnce; ++i) order[i] = i;
    for (std::size_t i = kAtOnce - 1; i > 0; --i) std::swap(order[i], order[apart.below(i + 1)]);
    for (const std::size_t i : order) EXPECT_TRUE(succeeded(unisono_wait(&requests[i])));
    for (const auto& output : outputs) bits.add(output);
  }
  return bits.hash;
}

struct Case {
  const char* name;
  std::vector<int> host_of;
  Environment environment;
  const char* algorithm;  // with the same bits in the host engine
};

class NicInFlightOnHosts : public NicInFlight, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    NicJob::SetUp();
    host_of_ = GetParam().host_of;
    environment_ = GetParam().environment;
  }
  std::vector<std::string> results(const Environment& environment) const {
    auto processes = start_job(
        [](const NicRank& self) {
          const std::uint64_t hash = mixed_results(self);
          self.line.say(std::to_string(hash));
          leave(self);
        },
        environment);
    std::vector<std::string> said;
    for (const HostProcess& rank : processes) said.push_back(rank.line().hear());
    expect_all_clean(processes);
    return said;
  }
};

TEST_P(NicInFlightOnHosts, HaveTheBitsOfTheHostEngine) {
  start_daemons();
  const auto by_nic = results({});
  const std::uint64_t there = operations();
  EXPECT_GT(there, 200U);
  const auto by_host =
      results({{"UNISONO_NIC", "off"}, {"UNISONO_ALGORITHM", GetParam().algorithm}});
  EXPECT_EQ(operations(), there);
  EXPECT_EQ(by_nic, by_host);
}

INSTANTIATE_TEST_SUITE_P(
    , NicInFlightOnHosts,
    testing::Values(Case{"OneRankOnAHost", {0, 1, 2, 3}, {}, "allreduce:gather-release"},
                    Case{"SeveralRanksOnAHost",
                         {0, 0, 1, 1, 2, 2, 3},
                         {},
                         "allreduce:two-level(gather-release)"},
                    Case{"InPieces",
                         {0, 1, 2, 3},
                         {{"UNISONO_NIC_SPLITS", "1"}},
                         "allreduce:gather-release@0-9; split-release(1)"},
                    Case{"WithoutMulticast",
                         {0, 1, 2, 3},
                         {{"UNISONO_MULTICAST", "off"}},
                         "allreduce:reduce-broadcast"}),
    [](const auto& tested) { return std::string(tested.param.name); });

// Starts as many sums as may be in flight, and collects them from the last to the first. The first
// error, by the order of their starts; `ended` of them were right.
int add_up_at_once(const NicRank& self, unisono_comm_t comm, int& ended) {
  std::array<Sum, kMost> sums;
  std::array<int, kMost> errors{};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    errors[i] = sums[i].start(comm, self.rank + static_cast<int>(i));
  }
  int ranks = 0;
  unisono_comm_size(comm, &ranks);
  for (std::size_t i = sums.size(); i-- > 0;) {
    if (errors[i] == UNISONO_OK) errors[i] = unisono_wait(&sums[i].request);
  }
  ended = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (errors[i] != UNISONO_OK) return errors[i];
    if (ranks == self.ranks) {
      EXPECT_EQ(sums[i].value, ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i));
    }
    ++ended;
  }
  return UNISONO_OK;
}

// The victim has taken part in the first operation only. That one ends well; the others do not, and
// their error names the victim.
TEST_F(NicInFlight, ADeathEndsThoseThatNeedTheRank) {
  for (const int victim : {2, 0}) {
    start_daemons();
    auto processes = start_job([victim](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      if (self.rank == victim) {
        Sum first;
        ASSERT_TRUE(succeeded(first.start(self.world, self.rank)));
        ASSERT_TRUE(succeeded(unisono_wait(&first.request)));
        raise(SIGKILL);
      }
      int ended = 0;
      const std::string name = "rank " + std::to_string(victim);
      EXPECT_TRUE(failed(add_up_at_once(self, self.world, ended), UNISONO_ERROR_RANK_LOST, {name}));
      EXPECT_EQ(ended, 1);
      unisono_comm_t rest = nullptr;
      ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(succeeded(add_up_at_once(self, rest, ended)));
      EXPECT_EQ(ended, kMost);
      leave(self);
    });
    expect_all_clean(processes, victim);
    spoil();
  }
}

// Rank 1 makes another call after two equal ones, which end well.
TEST_F(NicInFlight, ACallThatDiffersEndsThatOneAndThoseAfterIt) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    constexpr std::size_t kOdd = 2;
    std::array<std::array<std::int64_t, 3>, kMost> sums{};
    std::array<unisono_request_t, kMost> requests{};
    std::array<int, kMost> errors{};
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].fill(self.rank);
      const std::int64_t count = i == kOdd && self.rank == 1 ? 3 : 2;
      errors[i] = unisono_allreduce_start(UNISONO_IN_PLACE, sums[i].data(), count, UNISONO_INT64,
                                          UNISONO_SUM, self.world, &requests[i]);
    }
    for (std::size_t i = sums.size(); i-- > 0;) {
      if (errors[i] == UNISONO_OK) errors[i] = unisono_wait(&requests[i]);
      if (i < kOdd) continue;
      EXPECT_TRUE(failed(errors[i], UNISONO_ERROR_MISMATCH, {"differ"})) << i;
    }
    for (std::size_t i = 0; i < kOdd; ++i) {
      EXPECT_EQ(errors[i], UNISONO_OK) << i;
      EXPECT_EQ(sums[i], (std::array<std::int64_t, 3>{6, 6, self.rank})) << i;
    }
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

TEST_F(NicInFlight, TheEndOfADaemonIsAnErrorForAll) {
  start_daemons();
  expect_told_of_daemon(1, [](const NicRank& self) {
    int ended = 0;
    return add_up_at_once(self, self.world, ended);
  });
}

}  // namespace
}  // namespace unisono::harness::in_flight_job_test

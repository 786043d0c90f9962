// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are ahead of others by more operations than there are slot indexes (size_queue): how
// far they get, and what they hear of a call that differs so far back (remote_calls, call_check).
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "comm/communicator.hpp"
#include "harness/calls.hpp"
#include "harness/world.hpp"
#include "plan/plan_cache.hpp"

namespace unisono::comm::far_ahead_test {
namespace {

using schedule::Collective;
using test::World;
using test::WorldOptions;

constexpr int kRanks = 6;
constexpr int kSlotIndexes = 64;
constexpr int kMost = engine::kFarTurns * kSlotIndexes;

// Each rank sends to the next one.
plan::Call scan() {
  plan::Call call = test::allreduce(1);
  call.collective = Collective::scan;
  return call;
}

class Chain {
 public:
  explicit Chain(const char* engine) : world_(options(engine)), calls_(kRanks) {
    world_.override_with(*algorithm::find(Collective::scan, "linear"), {});
  }

  World& world() { return world_; }
  Communicator& at(int rank) { return world_.at(rank); }
  // The rank's next call. The input is its rank and the number of the call.
  void start(int rank, const plan::Call& call) {
    std::deque<Made>& calls = calls_[static_cast<std::size_t>(rank)];
    Made& made = calls.emplace_back();
    made.input = value(rank, std::ssize(calls) - 1);
    EXPECT_TRUE(
        at(rank).start(**at(rank).plan(call), &made.input, &made.output, made.pending).ok());
  }
  // As many scans as the rank can do now, and one that it has begun; `most` in all.
  int scan_on(int rank, int most) {
    const std::deque<Made>& calls = calls_[static_cast<std::size_t>(rank)];
    at(rank).progress();
    while (std::cmp_less(calls.size(), most) && (calls.empty() || is_complete(calls.back()))) {
      start(rank, scan());
      at(rank).progress();
    }
    return static_cast<int>(std::ranges::count_if(calls, is_complete));
  }
  void expect_right(int rank) const {
    const std::deque<Made>& calls = calls_[static_cast<std::size_t>(rank)];
    for (std::int64_t n = 0; n < std::ssize(calls); ++n) {
      double sum = 0;
      for (int r = 0; r <= rank; ++r) sum += value(r, n);
      ASSERT_EQ(calls[static_cast<std::size_t>(n)].output, sum) << rank << ", call " << n;
    }
  }

 private:
  struct Made {
    double input = 0, output = 0;
    Pending pending;
  };
  static bool is_complete(const Made& made) {
    return made.pending.state == Pending::State::complete;
  }
  static double value(int rank, std::int64_t call) {
    return static_cast<double>(1000 * rank + call);
  }
  static WorldOptions options(const char* engine) {
    WorldOptions options;
    options.ranks = kRanks;
    options.settings = {{"UNISONO_ENGINE", engine},
                        {"UNISONO_CHANNELS", std::to_string(kSlotIndexes)}};
    return options;
  }

  World world_;
  std::vector<std::deque<Made>> calls_;  // by rank
};

// The last rank makes no call.
void run_ahead(Chain& chain) {
  std::vector<int> done(kRanks);
  for (int turn = 0; turn < kRanks; ++turn) {
    for (int r = 0; r + 1 < kRanks; ++r) {
      done[static_cast<std::size_t>(r)] = chain.scan_on(r, 2 * kMost);
    }
  }
  for (int r = 0; r + 1 < kRanks; ++r) {
    EXPECT_EQ(done[static_cast<std::size_t>(r)], std::min(kMost, (kRanks - 1 - r) * kSlotIndexes))
        << "rank " << r
        << " is ahead of its receiver by the slot indexes, and of all by four times "
        << "as many";
  }
}

TEST(FarAhead, ARankOfAChainGetsAsFarAsItsReceiverAllows) {
  for (const char* engine : {"inline", "helping"}) {
    Chain chain(engine);
    run_ahead(chain);
    int done = 0;
    for (int turn = 0; turn < 1000 && done < kRanks * 2 * kMost; ++turn) {
      done = 0;
      for (int r = kRanks - 1; r >= 0; --r) done += chain.scan_on(r, 2 * kMost);
    }
    EXPECT_EQ(done, kRanks * 2 * kMost);
    for (int r = 0; r < kRanks; ++r) chain.expect_right(r);
  }
}

// The first rank has made 256 calls when the 41st of the last one differs. Most ranks have no
// record of theirs any more.
TEST(FarAhead, ACallThatDiffersIsReportedThoughItIsFarBack) {
  for (const char* engine : {"inline", "helping"}) {
    constexpr int kSame = 40;
    Chain chain(engine);
    run_ahead(chain);
    ASSERT_EQ(chain.scan_on(kRanks - 1, kSame), kSame);
    for (int r = kRanks - 2; r >= 0; --r) chain.scan_on(r, 2 * kMost);
    plan::Call other = scan();
    other.collective = Collective::reduce;
    other.root = kRanks - 1;
    chain.start(kRanks - 1, other);
    const auto all_have_failed = [&chain] {
      for (int r = 0; r < kRanks; ++r) {
        if (!chain.at(r).failures().has_failed()) return false;
      }
      return true;
    };
    for (int step = 0; step < 100'000 && !all_have_failed(); ++step) {
      const int rank = chain.world().random_rank();
      if (!chain.at(rank).failures().has_failed()) chain.at(rank).progress();
      chain.at(rank).watchdog().examine(true);
    }
    ASSERT_TRUE(all_have_failed()) << engine;
    for (int r = 0; r < kRanks; ++r) {
      const base::Error error = chain.at(r).failures().tell();
      EXPECT_EQ(error.code, base::Code::mismatch);
      EXPECT_NE(error.message.find("operation 40 of"), std::string::npos) << error.message;
      EXPECT_NE(error.message.find("rank 5"), std::string::npos) << error.message;
    }
  }
}

}  // namespace
}  // namespace unisono::comm::far_ahead_test

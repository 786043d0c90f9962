// SPDX-License-Identifier: BSD-3-Clause
// Looking ahead: while a message is late, everything that does not need it is done. Ranks run by
// hand over a transport that keeps each message until the test delivers it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "plan/bind/bind.hpp"
#include "unit/engine/ranks_by_hand.hpp"

namespace unisono::engine::look_ahead_test {
namespace {

using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;
using test::Bytes;

// Keeps what is put until it is delivered.
class Courier : public transport::Transport {
 public:
  struct Message {
    int target;
    Bytes bytes;
    std::byte* place;
    std::uint64_t* flag;
    std::uint64_t flag_value;
  };

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& put) override {
    kept.push_back({put.target, Bytes(put.source, put.source + put.bytes), put.place, put.flag,
                    put.flag_value});
  }
  int progress() override { return 0; }

  void deliver(std::size_t index) {
    const Message message = kept[index];
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(index));
    std::ranges::copy(message.bytes, message.place);
    if (message.flag != nullptr) *message.flag = message.flag_value;
  }

  std::vector<Message> kept;

 private:
  transport::Capabilities capabilities_{.name = "courier"};
};

struct Ranks : Courier, test::RanksByHand {
  explicit Ranks(std::vector<Schedule> set)
      : test::RanksByHand(std::move(set), static_cast<Courier&>(*this)) {}
  Courier& courier() { return *this; }
};

using test::build_set;

std::vector<Schedule> build_set(std::string_view name, const Shape& shape) {
  return test::build_set(*algorithm::find(shape.collective, name), shape);
}

// Every piece but one comes to rank 0. It has passed on its share of the others before the late one
// comes, and has its own share of them in its output.
TEST(LookAhead, ALatePieceDoesNotDelayTheForwardingOfOthers) {
  constexpr int kRanks = 8;
  const Shape shape{Collective::allgather, kRanks, 0, 3, false};
  for (int late = 1; late < kRanks; ++late) {
    SCOPED_TRACE("the piece of the rank " + std::to_string(late) + " below comes last");
    Ranks ranks(build_set("concurrent-broadcast", shape));
    ASSERT_TRUE(ranks.program(0).looks_ahead);
    Courier& courier = ranks.courier();
    // The others do all they can without rank 0 before it begins; its messages wait.
    const std::size_t late_origin = kRanks - static_cast<std::size_t>(late);
    const std::uint64_t* late_flag = ranks.awaited_flag(0, late - 1);
    EXPECT_EQ(ranks.run(0), Outcome::blocked);
    const auto deliver_all_but_late = [&] {
      bool any = false;
      for (std::size_t i = 0; i < courier.kept.size();) {
        if (courier.kept[i].flag == late_flag) {
          ++i;
          continue;
        }
        courier.deliver(i);
        any = true;
      }
      return any;
    };
    do {
      for (int r = 0; r < kRanks; ++r) ranks.run(r);
    } while (deliver_all_but_late());
    // Everyone else has everything but what rank 0 has to pass on of the late piece.
    ASSERT_EQ(courier.kept.size(), 1U);
    EXPECT_EQ(ranks.run(0), Outcome::blocked);
    const Bytes expected = ranks.expected(0);
    const std::size_t block = expected.size() / kRanks;
    for (std::size_t origin = 0; origin < kRanks; ++origin) {
      const auto begin = static_cast<std::ptrdiff_t>(origin * block);
      const auto end = begin + static_cast<std::ptrdiff_t>(block);
      const bool there = std::equal(expected.begin() + begin, expected.begin() + end,
                                    ranks.output(0).begin() + begin);
      EXPECT_EQ(there, origin != late_origin) << "block " << origin;
    }
    courier.deliver(0);
    EXPECT_EQ(ranks.run(0), Outcome::finished);
    while (!courier.kept.empty()) {
      courier.deliver(0);
      for (int r = 0; r < kRanks; ++r) ranks.run(r);
    }
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(ranks.output(r), ranks.expected(r)) << "rank " << r;
  }
}

// A sum in the order of ranks needs what came before, so a message that is early waits.
TEST(LookAhead, WhatNeedsALateMessageWaitsForIt) {
  Ranks ranks(build_set("serial", {Collective::reduce, 4, 0, 2, true}));
  EXPECT_FALSE(ranks.program(0).looks_ahead);
  for (int r = 1; r < 4; ++r) EXPECT_EQ(ranks.run(r), Outcome::finished);
  Courier& courier = ranks.courier();
  ASSERT_EQ(courier.kept.size(), 3U);
  courier.deliver(2);
  EXPECT_EQ(ranks.run(0), Outcome::blocked);
  courier.deliver(1);
  EXPECT_EQ(ranks.run(0), Outcome::blocked);
  courier.deliver(0);
  EXPECT_EQ(ranks.run(0), Outcome::finished);
  EXPECT_EQ(ranks.output(0), ranks.expected(0));
}

// Two ranks that wait for one message each have nothing to look ahead to.
TEST(LookAhead, AProgramWithOneWaitIsRunInOrder) {
  const Ranks ranks(build_set("pairwise", {Collective::allreduce, 2, 0, 1, false}));
  EXPECT_EQ(ranks.program(0).wait_segments.size(), 1U);
  EXPECT_FALSE(ranks.program(0).looks_ahead);
}

TEST(LookAhead, NotWherePullsAre) {
  plan::BindOptions options{.element_bytes = 8, .input = {}, .output = {}, .geometry = {}};
  options.geometry = {.ranks = 5, .slot_indexes = 2, .lines = 64, .data_bytes = 1 << 18};
  const auto set = build_set("direct", {Collective::allgather, 5, 0, 1000, false});
  EXPECT_TRUE(bind_schedules(set, 0, options)[0].looks_ahead);
  options.pull_from = 64;
  EXPECT_FALSE(bind_schedules(set, 0, options)[0].looks_ahead);
}

// The value: how many ranks.
class LookAheadOf : public testing::TestWithParam<int> {};

// Whatever comes when, every message is put once and every result is right.
TEST_P(LookAheadOf, EveryOrderOfArrivalGivesTheSameResult) {
  const int count_of_ranks = GetParam();
  int looking = 0;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    const Shape shape{row.collective, count_of_ranks, 0,
                      row.collective == Collective::barrier ? 0 : 2, false};
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
    SCOPED_TRACE(std::string(schedule::collective_name(row.collective)) + " " +
                 std::string(row.name));
    Ranks ranks(build_set(row, shape));
    for (int r = 0; r < count_of_ranks; ++r) looking += ranks.program(r).looks_ahead ? 1 : 0;
    base::Prng prng(static_cast<std::uint64_t>(count_of_ranks));
    std::vector<Outcome> outcomes(static_cast<std::size_t>(count_of_ranks), Outcome::blocked);
    for (int r = 0; r < count_of_ranks; ++r) outcomes[static_cast<std::size_t>(r)] = ranks.run(r);
    Courier& courier = ranks.courier();
    while (!courier.kept.empty()) {
      const std::size_t next = prng.below(courier.kept.size());
      const auto target = static_cast<std::size_t>(courier.kept[next].target);
      courier.deliver(next);
      if (outcomes[target] == Outcome::blocked) {
        outcomes[target] = ranks.run(static_cast<int>(target));
      }
    }
    for (int r = 0; r < count_of_ranks; ++r) {
      ASSERT_EQ(outcomes[static_cast<std::size_t>(r)], Outcome::finished) << "rank " << r;
      ASSERT_EQ(ranks.output(r), ranks.expected(r)) << "rank " << r;
    }
  }
  EXPECT_GT(looking, 10 * count_of_ranks) << "of the ranks of all rows";
}

// With 70 ranks, a rank looks ahead at fewer messages than are under way.
INSTANTIATE_TEST_SUITE_P(Ranks, LookAheadOf, testing::Values(5, 8, 70),
                         [](const auto& value) { return "P" + std::to_string(value.param); });

}  // namespace
}  // namespace unisono::engine::look_ahead_test

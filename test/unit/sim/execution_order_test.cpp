// SPDX-License-Identifier: BSD-3-Clause
// One schedule, executed and simulated. The engine executes it over a transport whose messages take
// the time of a machine; the simulator replays it on that machine. Ranks complete at the same times
// and so in the same order. A program that looks ahead may be earlier, and never is later.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "machines.hpp"
#include "sim/sweep.hpp"
#include "unit/engine/ranks_by_hand.hpp"

namespace unisono::sim::execution_order_test {
namespace {

using engine::test::Bytes;

constexpr double kLatencyNs = 1000;

// Only messages take time, which the engine's transport has, too.
model::Machine machine_of_messages(double ns_per_byte) {
  using model::Unit;
  model::PathParameters path;
  path.level = model::Level::memory;
  path.latency = value_of(kLatencyNs);
  path.overhead = path.gap = value_of(0);
  path.overhead_per_byte = path.copy_per_byte = value_of(0, Unit::ns_per_byte);
  path.gap_per_byte = value_of(ns_per_byte, Unit::ns_per_byte);
  path.reception.points = {{0, value_of(0)}};
  path.start_up = {{std::nullopt, value_of(0)}};
  model::Machine machine;
  machine.name = "messages";
  machine.cores_per_host = 64;
  machine.paths = {path};
  return machine;
}

// A clock, and messages by the time of their arrival.
class Timed : public transport::Transport {
 public:
  struct Message {
    int target;
    Bytes bytes;
    std::byte* place;
    std::uint64_t* flag;
    std::uint64_t flag_value;
  };

  Timed(int ranks, double ns_per_byte)
      : ns_per_byte_(ns_per_byte), port_(static_cast<std::size_t>(ranks), 0) {}

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& put) override {
    const Time gap = to_time(ns_per_byte_ * static_cast<double>(put.bytes));
    Time& port = port_[static_cast<std::size_t>(sender)];
    const Time left = std::max(now, port);
    port = left + gap;
    under_way.emplace(left + to_time(kLatencyNs) + gap,
                      Message{put.target, Bytes(put.source, put.source + put.bytes), put.place,
                              put.flag, put.flag_value});
  }
  int progress() override { return 0; }

  Time now = 0;
  int sender = 0;  // the rank that makes steps
  std::multimap<Time, Message> under_way;

 private:
  double ns_per_byte_;
  std::vector<Time> port_;  // when a rank's next message may leave
  transport::Capabilities capabilities_{.name = "timed"};
};

struct Executed {
  std::vector<Time> by_rank;
  bool looks_ahead = false;  // some rank
  bool is_right = true;      // all outputs
};

// Each rank begins at its time, and goes on at each message that it gets.
Executed execute(const std::vector<schedule::Schedule>& set, const std::vector<Time>& begin,
                 double ns_per_byte) {
  const auto ranks = static_cast<int>(set.size());
  Timed transport(ranks, ns_per_byte);
  engine::test::RanksByHand by_hand(set, transport);
  Executed done{.by_rank = std::vector<Time>(set.size(), -1)};
  const auto run = [&](int rank) {
    Time& end = done.by_rank[static_cast<std::size_t>(rank)];
    if (end >= 0 || transport.now < begin[static_cast<std::size_t>(rank)]) return;
    transport.sender = rank;
    if (by_hand.run(rank) == engine::Outcome::finished) end = transport.now;
  };
  std::multimap<Time, int> begins;
  for (int rank = 0; rank < ranks; ++rank) {
    begins.emplace(begin[static_cast<std::size_t>(rank)], rank);
    done.looks_ahead |= by_hand.program(rank).looks_ahead;
  }
  while (!begins.empty() || !transport.under_way.empty()) {
    const auto message = transport.under_way.begin();
    if (message == transport.under_way.end() ||
        (!begins.empty() && begins.begin()->first <= message->first)) {
      const auto [at, rank] = *begins.begin();
      begins.erase(begins.begin());
      transport.now = at;
      run(rank);
      continue;
    }
    transport.now = message->first;
    const Timed::Message arrived = std::move(message->second);
    transport.under_way.erase(message);
    std::ranges::copy(arrived.bytes, arrived.place);
    if (arrived.flag != nullptr) *arrived.flag = arrived.flag_value;
    run(arrived.target);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    done.is_right &= by_hand.output(rank) == by_hand.expected(rank);
  }
  return done;
}

std::vector<int> order_of(const std::vector<Time>& ends) {
  std::vector<int> ranks(ends.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  std::ranges::stable_sort(ranks, {},
                           [&](int rank) { return ends[static_cast<std::size_t>(rank)]; });
  return ranks;
}

struct Counted {
  int equal = 0, ahead = 0;
};

// A rank that looks ahead sends other messages first, and the others then wait for its port.
// Without a time per byte, no port is busy.
void compare(const std::vector<schedule::Schedule>& set, const std::vector<Time>& begin,
             double ns_per_byte, Counted& counted) {
  const auto programs = ProgramSet::compile(
      static_cast<int>(set.size()),
      [&](int rank) {
        return base::Result<schedule::Schedule>(set[static_cast<std::size_t>(rank)]);
      },
      machine_of_messages(ns_per_byte), {.engine = model::Engine::any, .type = arith::Type::int32});
  ASSERT_TRUE(programs.ok());
  const std::vector<Time> simulated = sweep_ranks(*programs, begin).by_rank;
  const Executed executed = execute(set, begin, ns_per_byte);
  EXPECT_TRUE(executed.is_right);
  if (!executed.looks_ahead) {
    EXPECT_EQ(executed.by_rank, simulated);
    EXPECT_EQ(order_of(executed.by_rank), order_of(simulated));
    ++counted.equal;
    return;
  }
  ++counted.ahead;
  if (ns_per_byte > 0) return;
  for (std::size_t rank = 0; rank < simulated.size(); ++rank) {
    EXPECT_LE(executed.by_rank[rank], simulated[rank]) << "rank " << rank;
  }
}

TEST(ExecutionOrder, OfAnExecutionIsThatOfTheSimulation) {
  base::Prng random(11);
  Counted counted;
  for (const algorithm::Algorithm& row : algorithm::table()) {
    if (row.uses_hosts || row.sums_exactly ||
        row.collective == schedule::Collective::many_to_many) {
      continue;
    }
    for (const int ranks : {2, 3, 5, 8, 13}) {
      const bool is_barrier = row.collective == schedule::Collective::barrier;
      const schedule::Shape shape{row.collective, ranks, 0, is_barrier ? 0 : 24};
      const auto parameters = algorithm::default_parameters(row, shape);
      if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
      SCOPED_TRACE(std::string(schedule::collective_name(row.collective)) + " " +
                   std::string(row.name) + " " + std::to_string(ranks));
      std::vector<Time> begin;
      for (int rank = 0; rank < ranks; ++rank) {
        begin.push_back(static_cast<Time>(random.below(3'000'000)));
      }
      for (const double ns_per_byte : {0, 3})
        compare(set_of(row, shape), begin, ns_per_byte, counted);
    }
  }
  EXPECT_GT(counted.equal, 200);
  EXPECT_GT(counted.ahead, 20);
}

}  // namespace
}  // namespace unisono::sim::execution_order_test

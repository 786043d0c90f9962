// SPDX-License-Identifier: BSD-3-Clause
// Without loss, a collective between hosts sends the packets of its schedule and no others: one for
// each message to a rank of another host, nothing to acknowledge, to ask or to say that one lives.
// Every algorithm, on several placements of ranks; what the network counts against the schedules.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "harness/collective_data.hpp"
#include "harness/world.hpp"
#include "schedule/schedule.hpp"

namespace unisono::test::packets_test {
namespace {

using algorithm::Algorithm;
using schedule::Shape;

constexpr arith::Type kType = arith::Type::float64;
constexpr std::int64_t kElements = 3;  // a block of every rank fits into one packet

WorldOptions on(const std::vector<int>& hosts) {
  WorldOptions options;
  options.ranks = static_cast<int>(hosts.size());
  options.hosts = hosts;
  options.virtual_datagrams = true;
  // An operation is over long before anybody asks where a message is.
  options.datagrams.delay_min_ns = 1'000;
  options.datagrams.delay_max_ns = 5'000;
  // The first operation needs no credit, and tells nobody of any.
  options.settings = {{"UNISONO_CHANNELS", "64"}, {"UNISONO_BUFFERS", "8M"}};
  return options;
}

// Messages to ranks of other hosts, at all ranks.
std::int64_t messages_between_hosts(const Algorithm& row, const Shape& shape,
                                    const algorithm::Parameters& parameters) {
  std::int64_t messages = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto schedule = algorithm::build(row, shape, parameters, rank);
    EXPECT_TRUE(schedule.ok());
    for (const schedule::Op& op : schedule->ops) {
      for (const schedule::Target& target : schedule->targets_of(op)) {
        messages += shape.hosts.of(target.peer) != shape.hosts.of(rank) ? 1 : 0;
      }
    }
  }
  return messages;
}

plan::Call call_of(const Shape& shape) {
  plan::Call call;
  call.collective = shape.collective;
  call.count = shape.count;
  call.type = static_cast<int>(kType);
  call.op = schedule::is_reduction(call.collective) ? static_cast<int>(arith::Operator::sum) : -1;
  call.root = shape.root;
  call.element_bytes = 8;
  return call;
}

// All ranks in turn, time moving on only when nobody can do anything without it.
void run_in_turns(World& world, const Shape& shape) {
  const auto n = static_cast<std::size_t>(shape.ranks);
  std::vector<Bytes> inputs, outputs;
  std::vector<comm::Pending> pending(n);
  for (int r = 0; r < shape.ranks; ++r) {
    inputs.push_back(make_input(kType, false, r, schedule::input_count(shape, r)));
    outputs.emplace_back(static_cast<std::size_t>(schedule::output_count(shape, r)) * 8);
  }
  for (std::size_t r = 0; r < n; ++r) {
    auto plan = world.at(static_cast<int>(r)).plan(call_of(shape));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(world.at(static_cast<int>(r))
                    .start(**plan, inputs[r].data(), outputs[r].data(), pending[r])
                    .ok());
  }
  const auto all_complete = [&] {
    return std::ranges::all_of(
        pending, [](const auto& p) { return p.state == comm::Pending::State::complete; });
  };
  constexpr int kMostRounds = 100'000;
  for (int round = 0; round < kMostRounds && !all_complete(); ++round) {
    for (int r = 0; r < shape.ranks; ++r) world.at(r).progress();
    world.datagrams()->advance();
  }
  ASSERT_TRUE(all_complete());
  while (world.datagrams()->advance()) {
  }
  for (int r = 0; r < shape.ranks; ++r) {
    world.at(r).progress();
    EXPECT_EQ(outputs[static_cast<std::size_t>(r)],
              expected_output(shape, material(kType, arith::Operator::sum), r));
  }
}

// The rows of one collective; gives how many there were.
int check_rows(schedule::Collective collective, const std::vector<int>& hosts) {
  int rows = 0;
  for (const Algorithm& row : algorithm::table()) {
    if (row.collective != collective) continue;
    Shape shape{.collective = collective,
                .ranks = static_cast<int>(hosts.size()),
                .root = schedule::is_rooted(collective) ? 1 : 0,
                .count = collective == schedule::Collective::barrier ? 0 : kElements,
                .hosts = topology::HostMap::of_labels(hosts)};
    const auto parameters = algorithm::default_parameters(row, shape);
    if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
    SCOPED_TRACE(std::string(schedule::collective_name(collective)) + ": " +
                 algorithm::describe(row, parameters));
    World world(on(hosts));
    world.override_with(row, parameters);
    const std::int64_t before = world.datagrams()->sent();
    run_in_turns(world, shape);
    if (testing::Test::HasFatalFailure()) return rows;
    EXPECT_EQ(world.datagrams()->sent() - before, messages_between_hosts(row, shape, parameters));
    ++rows;
  }
  return rows;
}

TEST(Packets, AreThoseOfTheScheduleWithoutLoss) {
  const std::vector<std::vector<int>> placements = {
      {0, 1}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 1, 1, 2, 2}, {0, 1, 0, 2, 1, 0, 2}};
  int rows = 0;
  for (const std::vector<int>& hosts : placements) {
    SCOPED_TRACE(std::to_string(hosts.size()) + " ranks on " +
                 std::to_string(std::ranges::max(hosts) + 1) + " hosts");
    for (int c = 0; c < schedule::kCollectiveCount; ++c) {
      rows += check_rows(static_cast<schedule::Collective>(c), hosts);
    }
  }
  EXPECT_GT(rows, 100);
}

}  // namespace
}  // namespace unisono::test::packets_test

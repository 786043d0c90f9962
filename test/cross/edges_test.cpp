// SPDX-License-Identifier: BSD-3-Clause
// Messages one byte around every edge of their ways: the payload of a line beside its flag, a
// packet between hosts, the longest block of a call with local counts that goes through a receive
// buffer, and each length from which on a call is planned otherwise: by the other size class, in
// one more segment, in a single copy, or by another algorithm. The latter edges are found by asking
// for plans. Every result is compared.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cross/trial.hpp"
#include "engine/size_queue.hpp"
#include "harness/collective_data.hpp"
#include "harness/world.hpp"
#include "plan/bind/bind_local.hpp"
#include "plan/plan_cache.hpp"
#include "wire/packet.h"

namespace unisono::test::edges_test {
namespace {

using schedule::Collective;

constexpr std::size_t kPacket = 1472;

struct Placing {
  std::string name;
  std::string engine;
  std::vector<int> hosts;  // empty: one
  int ranks = 0;
};

WorldOptions options_of(const Placing& setup) {
  WorldOptions options;
  options.ranks = setup.ranks;
  options.settings = {{"UNISONO_ENGINE", setup.engine},
                      {"UNISONO_BUFFERS", "1M"},
                      {"UNISONO_SINGLE_COPY_FROM", "96K"}};
  if (setup.hosts.empty()) return options;
  options.hosts = setup.hosts;
  options.virtual_datagrams = true;
  options.datagrams.max_payload = kPacket;
  return options;
}

plan::Call call_of(Collective collective, std::int64_t bytes) {
  plan::Call call;
  call.collective = collective;
  call.count = bytes;
  call.type = static_cast<std::int32_t>(arith::Type::uint8);
  call.element_bytes = 1;
  if (schedule::is_reduction(collective)) {
    call.op = static_cast<std::int32_t>(arith::Operator::max);
  }
  return call;
}

// The property in which a plan differs from one edge to the next.
using Way = std::tuple<plan::SizeClass, std::int64_t, bool, std::string>;
Way way_of(World& world, Collective collective, std::int64_t bytes) {
  const plan::Plan* plan = *world.at(0).plan(call_of(collective, bytes));
  return {plan->size, plan->segments, plan->single_copy, plan->algorithm};
}

// Lengths up to `most` at which the way changes: the first of the new one. `kinds` counts, of those
// of one collective, changes of size class, segments and single copy.
std::vector<std::int64_t> find_edges(World& world, Collective collective, std::int64_t most,
                                     std::array<int, 3>& kinds) {
  constexpr std::size_t kMostEdges = 8;
  std::vector<std::int64_t> edges;
  std::int64_t low = 1;
  for (std::int64_t high = 2; high <= most && edges.size() < kMostEdges;) {
    const Way before = way_of(world, collective, low);
    if (way_of(world, collective, high) == before) {
      low = high;
      high = std::min(2 * high, high < most ? most : most + 1);
      continue;
    }
    std::int64_t same = low, other = high;
    while (other - same > 1) {
      const std::int64_t middle = same + (other - same) / 2;
      (way_of(world, collective, middle) == before ? same : other) = middle;
    }
    const Way after = way_of(world, collective, other);
    kinds[0] += std::get<0>(before) != std::get<0>(after) ? 1 : 0;
    kinds[1] += std::get<1>(before) != std::get<1>(after) ? 1 : 0;
    kinds[2] += std::get<2>(before) != std::get<2>(after) ? 1 : 0;
    edges.push_back(other);
    low = other;
  }
  return edges;
}

void expect_right(World& world, Collective collective, std::int64_t bytes) {
  const plan::Call call = call_of(collective, bytes);
  schedule::Shape shape;
  shape.collective = collective;
  shape.ranks = world.ranks();
  shape.count = bytes;
  std::vector<Bytes> in, out;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (int r = 0; r < shape.ranks; ++r) {
    in.push_back(make_input(arith::Type::uint8, false, r, schedule::input_count(shape, r)));
    out.emplace_back(static_cast<std::size_t>(schedule::output_count(shape, r)));
  }
  for (std::size_t r = 0; r < in.size(); ++r) {
    inputs.push_back(in[r].data());
    outputs.push_back(out[r].data());
  }
  ASSERT_TRUE(world.run(call, inputs, outputs)) << "did not complete";
  const Material data = material(arith::Type::uint8, arith::Operator::max);
  for (int r = 0; r < shape.ranks; ++r) {
    ASSERT_TRUE(same_bytes(out[static_cast<std::size_t>(r)], expected_output(shape, data, r)))
        << "rank " << r;
  }
}

class Edges : public testing::TestWithParam<Placing> {};

TEST_P(Edges, OneByteAroundEachTheResultsAreRight) {
  const Placing& setup = GetParam();
  World world(options_of(setup));
  const bool has_hosts = !setup.hosts.empty();
  std::array<int, 3> kinds{};
  for (const Collective collective :
       {Collective::broadcast, Collective::allreduce, Collective::allgather, Collective::alltoall,
        Collective::reduce, Collective::scatter}) {
    const std::int64_t most = 256 * 1024;
    std::vector<std::int64_t> edges = find_edges(world, collective, most, kinds);
    edges.insert(edges.end(), {plan::kLinePayload, plan::kLineBytes});
    if (has_hosts) {
      const auto payload = static_cast<std::int64_t>(kPacket - UNISONO_PACKET_BYTES);
      edges.insert(edges.end(), {payload, 2 * payload});
    }
    std::set<std::int64_t> lengths;
    for (const std::int64_t edge : edges) {
      for (const std::int64_t by : {-1, 0, 1}) lengths.insert(edge + by);
    }
    for (const std::int64_t bytes : lengths) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", schedule::collective_name(collective), bytes));
      expect_right(world, collective, bytes);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(kinds[0], 0) << "no edge between the size classes was met";
  EXPECT_GT(kinds[1], 0) << "no edge of a segment was met";
  if (!has_hosts && setup.engine == "inline") {
    EXPECT_GT(kinds[2], 0) << "no edge of the single copy was met";
  }
}

// Blocks of about that many bytes each, of calls whose ranks know their own counts only.
schedule::Shape shape_of_local(Collective collective, int ranks, std::int64_t bytes) {
  schedule::Shape shape;
  shape.collective = collective;
  shape.ranks = ranks;
  shape.root = schedule::is_rooted(collective) ? ranks - 1 : 0;
  std::vector<std::int64_t> counts;
  for (int i = 0; i < (schedule::has_pairs(collective) ? ranks * ranks : ranks); ++i) {
    counts.push_back(bytes + (i + i / ranks) % 3 - 1);
  }
  shape.blocks = schedule::has_pairs(collective) ? *schedule::Blocks::of_pairs(ranks, counts)
                                                 : *schedule::Blocks::of_ranks(counts);
  return shape;
}

// In its line such a message has its length beside it; one longer than the receive buffers is
// advertised.
TEST_P(Edges, OneByteAroundThoseOfCallsWithLocalCountsTheResultsAreRight) {
  const Placing& setup = GetParam();
  World world(options_of(setup));
  const comm::SegmentLayout layout =
      comm::plan_segment(setup.ranks, world.at(0).members().job().settings(),
                         setup.hosts.empty() ? comm::Links::none : comm::Links::datagrams);
  std::vector<std::int64_t> lengths = {plan::kLinePayload - 8, plan::kLinePayload,
                                       plan::kLineBytes};
  for (const plan::ReceiveGeometry& geometry : layout.receive_buffers) {
    if (!geometry.given()) continue;
    plan::LocalOptions options;
    options.geometry = geometry;
    lengths.push_back(plan::longest_block(options));
  }
  if (!setup.hosts.empty()) {
    const auto payload = static_cast<std::int64_t>(kPacket - UNISONO_PACKET_BYTES);
    lengths.insert(lengths.end(), {payload, 2 * payload});
  }
  for (const Collective collective :
       {Collective::alltoall, Collective::gather, Collective::scatter}) {
    for (const std::int64_t bytes : lengths) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", schedule::collective_name(collective), bytes));
      const schedule::Shape shape = shape_of_local(collective, setup.ranks, bytes);
      const Material bytes_of_max = material(arith::Type::uint8, arith::Operator::max);
      Trial(shape, bytes_of_max, {.local_counts = true}).run(world);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Edges,
    testing::Values(Placing{"inline_2", "inline", {}, 2}, Placing{"inline_3", "inline", {}, 3},
                    Placing{"inline_5", "inline", {}, 5}, Placing{"helping_2", "helping", {}, 2},
                    Placing{"helping_3", "helping", {}, 3}, Placing{"helping_5", "helping", {}, 5},
                    Placing{"hosts_2", "inline", {0, 1}, 2},
                    Placing{"hosts_3", "inline", {0, 1, 1}, 3},
                    Placing{"hosts_5", "inline", {0, 1, 2, 1, 0}, 5}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace unisono::test::edges_test

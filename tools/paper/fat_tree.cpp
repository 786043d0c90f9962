// SPDX-License-Identifier: BSD-3-Clause
// Kumar and Kalé, ICPADS 2004, table 1: all-to-all multicast of 256 KiB on Lemieux, with and
// without missing nodes. Messages share links, a barrier follows each message (section 4.6), and
// nothing is fitted: where the paper has no number, the parameter is left out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "algorithm/algorithm.hpp"
#include "paper/claim.hpp"
#include "sim/events.hpp"

namespace unisono::tools {
namespace {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

constexpr double kMegabyte = 1 << 20;  // 400 million bytes/s are 382 of the paper's MB/s
constexpr std::int64_t kBlock = 256 * 1024;
constexpr double kTolerancePercent = 20;

struct Strategy {
  const char* name;
  const char* row;
  int k;  // 0: has none
};
constexpr std::array<Strategy, 3> kStrategies{
    {{"kShift", "kshift", 8}, {"kPrefix", "kprefix", 8}, {"prefix-send", "prefix-send", 0}}};

struct Row {
  int nodes;
  int holes;
  std::array<int, 3> published;  // MB/s a node, by strategy; 0: none
};
constexpr Row kRows[] = {
    Row{64, 0, {507, 531, 520}}, Row{128, 0, {432, 519, 428}}, Row{144, 0, {433, 521, 0}},
    Row{192, 0, {416, 516, 0}},  Row{256, 0, {405, 511, 429}}, Row{128, 1, {392, 338, 316}},
    Row{128, 2, {399, 373, 0}},  Row{240, 1, {394, 346, 0}},
};

// The paper does not say which nodes were missing: the mean over some places.
constexpr int kPlaces = 8;

// Section 4.1: the bandwidth at distances above 16 and 64, of prefix-send; a byte costs as much
// more.
std::vector<double> far_costs() {
  const auto more = [](double megabytes) {
    return 2e9 / (megabytes * kMegabyte) - 2e9 / (610 * kMegabyte);
  };
  return {0, 0, 0, more(534), more(470)};
}

base::Result<double> bandwidth(const model::Machine& machine, const Strategy& strategy,
                               const Placement& placement, std::uint64_t seed) {
  const auto* row = algorithm::find(schedule::Collective::allgather, strategy.row);
  const int ranks = placement.ranks();
  const schedule::Shape shape{schedule::Collective::allgather, ranks, 0, kBlock};
  algorithm::Parameters parameters = algorithm::default_parameters(*row, shape);
  if (strategy.k > 0) parameters.values[0] = strategy.k;
  const model::Work work{model::Engine::any, arith::Type::byte, std::nullopt, true};
  UNISONO_ASSIGN(
      const sim::ProgramSet programs,
      sim::ProgramSet::compile(
          ranks, [&](int rank) { return build(*row, shape, parameters, rank); }, machine, work));
  sim::EventOptions options;
  options.placement = &placement;
  options.network.contention = sim::Contention::sharing;
  options.network.link_ns_per_byte = machine.tree->link_per_byte.ns();
  options.network.far_ns_per_byte = far_costs();
  options.barrier_after = 1;
  options.barrier = sim::to_time(machine.hardware_barrier->ns());
  options.seed = seed;
  UNISONO_ASSIGN(const sim::EventOutcome simulated, sim::simulate_events(programs, options));
  const double seconds = sim::to_ns(simulated.outcome.finish) * 1e-9;
  // Both directions of a node count.
  return 2.0 * (ranks - 1) * static_cast<double>(kBlock) / seconds / kMegabyte;
}

base::Result<double> mean_bandwidth(const model::Machine& machine, const Strategy& strategy,
                                    const Row& row) {
  const int nodes = row.nodes + row.holes;
  UNISONO_ASSIGN(const Tree tree, Tree::make(4, nodes <= 64 ? 3 : (nodes <= 256 ? 4 : 5)));
  const int places = row.holes > 0 ? kPlaces : 1;
  base::Prng random(1);
  double sum = 0;
  for (int i = 0; i < places; ++i) {
    std::vector<int> holes;
    while (static_cast<int>(holes.size()) < row.holes) {
      const int hole = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(nodes - 2)));
      if (std::ranges::find(holes, hole) == holes.end()) holes.push_back(hole);
    }
    UNISONO_ASSIGN(const Placement placement, place_around(tree, holes, row.nodes));
    UNISONO_ASSIGN(const double one,
                   bandwidth(machine, strategy, placement, static_cast<std::uint64_t>(i) + 1));
    sum += one;
  }
  return sum / places;
}

std::string name_of(const Row& row) {
  if (row.holes == 0) return fmt::format("{} nodes", row.nodes);
  return fmt::format("{} nodes, {} missing", row.nodes, row.holes);
}

void add_orders(const Row& row, const std::array<double, 3>& simulated, PaperReport& report) {
  for (std::size_t a = 0; a < kStrategies.size(); ++a) {
    for (std::size_t b = 0; b < kStrategies.size(); ++b) {
      if (row.published[a] <= row.published[b] || row.published[b] == 0) continue;
      report.orders.push_back(
          {fmt::format("{}: {} before {}", name_of(row), kStrategies[a].name, kStrategies[b].name),
           (1.0 * row.published[a] / row.published[b] - 1) * 100, simulated[a] > simulated[b]});
    }
  }
}

}  // namespace

base::Result<PaperReport> report_fat_tree(const model::Machine& lemieux) {
  if (!lemieux.tree || !lemieux.hardware_barrier) {
    return base::Error{base::Code::argument, "the machine file lacks tree or hardware_barrier"};
  }
  PaperReport report{
      "fat-tree", "Kumar, Kalé: Scaling All-to-All Multicast on Fat-tree Networks", {}, {}, {}};
  report.parameters = {
      "published: alpha, beta of Elan memory, delta, 400 MB/s a link (sections 2 to 4)",
      "published: bandwidth beyond distances 16 and 64 (section 4.1)",
      "published elsewhere: barrier of 10 us (asci-q, section 5)",
      "left out: copies of received blocks; equations 8 to 10 have none",
      "assumed: places of the missing nodes; the mean over 8 random ones",
      "fitted: nothing"};
  model::Machine machine = lemieux;
  for (model::PathParameters& path : machine.paths) path.copy_per_byte.number = 0;
  for (const Row& row : kRows) {
    std::array<double, 3> simulated{};
    for (std::size_t i = 0; i < kStrategies.size(); ++i) {
      if (row.published[i] == 0) continue;
      UNISONO_ASSIGN(simulated[i], mean_bandwidth(machine, kStrategies[i], row));
      report.claims.push_back({fmt::format("{}: {}", name_of(row), kStrategies[i].name), "MB/s",
                               static_cast<double>(row.published[i]), simulated[i],
                               kTolerancePercent});
    }
    add_orders(row, simulated, report);
  }
  return report;
}

}  // namespace unisono::tools

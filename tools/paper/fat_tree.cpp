// SPDX-License-Identifier: BSD-3-Clause
// Kumar and Kalé, ICPADS 2004: all-to-all multicast of 256 KiB on Lemieux, with and without missing
// nodes (table 1), and cyclic shifts (section 4.1). Messages share links. A barrier follows each
// message of a multicast (section 4.6). Nothing is fitted: where the paper has no number, the
// parameter is left out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "paper/claim.hpp"
#include "paper/simulate.hpp"
#include "sim/events.hpp"

namespace unisono::tools {
namespace {

using topology::fat_tree::Placement;
using topology::fat_tree::Tree;

constexpr double kMegabyte = 1 << 20;  // 400 million bytes/s are 382 of the paper's MB/s
constexpr std::int64_t kBlock = 256 * 1024;
constexpr double kTreeTolerancePercent = 20;

struct Strategy {
  const char* name;
  const char* row;
  int k;       // 0: has none
  int column;  // of table 1
};
constexpr std::array<Strategy, 3> kStrategies{{{"kShift", "kshift", 8, 1},
                                               {"kPrefix", "kprefix", 8, 2},
                                               {"prefix-send", "prefix-send", 0, 3}}};

struct Row {
  int nodes;
  int holes;
  const char* name;  // in numbers.json
};
constexpr Row kRows[] = {
    {64, 0, "64"},   {128, 0, "128"},        {144, 0, "144"},         {192, 0, "192"},
    {256, 0, "256"}, {128, 1, "128_1_hole"}, {128, 2, "128_2_holes"}, {240, 1, "240_1_hole"},
};

// The paper does not say which nodes were missing: the mean over some places.
constexpr int kPlaces = 8;

struct Setting {
  model::Machine machine;
  sim::NetworkParameters network;
};

base::Result<Setting> find_setting(Inputs& inputs) {
  Setting setting;
  UNISONO_ASSIGN(setting.machine, inputs.machine("lemieux"));
  if (!setting.machine.tree || !setting.machine.hardware_barrier) {
    return base::Error{base::Code::argument, "lemieux.json lacks tree or hardware_barrier"};
  }
  for (model::PathParameters& path : setting.machine.paths) path.copy_per_byte.number = 0;
  // Section 4.1: the bandwidth of prefix-send at distances above 16 and 64; a byte costs as much
  // more.
  const auto ns_per_byte = [&](const char* name) {
    return 2e9 / (inputs.published().at(std::string("/fat-tree/prefix_send_drop_MBps/") + name) *
                  kMegabyte);
  };
  const double near = ns_per_byte("k_up_to_16");
  setting.network.contention = sim::Contention::sharing;
  setting.network.link_ns_per_byte = setting.machine.tree->link_per_byte.ns();
  setting.network.far_ns_per_byte = {0, 0, 0, ns_per_byte("k_above_16") - near,
                                     ns_per_byte("k_above_64") - near};
  return setting;
}

base::Result<Tree> tree_of(int nodes) {
  return Tree::make(4, nodes <= 64 ? 3 : (nodes <= 256 ? 4 : 5));
}

// MB/s a node, both directions.
double bandwidth(double bytes, sim::Time time) {
  return 2 * bytes / (sim::to_ns(time) * 1e-9) / kMegabyte;
}

base::Result<double> multicast_bandwidth(const Setting& setting, const Strategy& strategy,
                                         const Placement& placement, std::uint64_t seed) {
  Operation operation;
  operation.shape = {schedule::Collective::allgather, placement.ranks(), 0, kBlock};
  operation.algorithm = strategy.row;
  const auto* row = algorithm::find(operation.shape.collective, strategy.row);
  operation.parameters = algorithm::default_parameters(*row, operation.shape);
  if (strategy.k > 0) operation.parameters.values[0] = strategy.k;
  UNISONO_ASSIGN(const sim::ProgramSet programs, compile(setting.machine, operation));
  sim::EventOptions options;
  options.placement = &placement;
  options.network = setting.network;
  options.barrier_after = 1;
  options.barrier = sim::to_time(setting.machine.hardware_barrier->ns());
  options.seed = seed;
  UNISONO_ASSIGN(const sim::EventOutcome simulated, sim::simulate_events(programs, options));
  return bandwidth((placement.ranks() - 1) * static_cast<double>(kBlock), simulated.outcome.finish);
}

base::Result<double> mean_bandwidth(const Setting& setting, const Strategy& strategy,
                                    const Row& row) {
  const int nodes = row.nodes + row.holes;
  UNISONO_ASSIGN(const Tree tree, tree_of(nodes));
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
    UNISONO_ASSIGN(const double one, multicast_bandwidth(setting, strategy, placement,
                                                         static_cast<std::uint64_t>(i) + 1));
    sum += one;
  }
  return sum / places;
}

std::string name_of(const Row& row) {
  if (row.holes == 0) return fmt::format("{} nodes", row.nodes);
  return fmt::format("{} nodes, {} missing", row.nodes, row.holes);
}

using Bandwidths = std::array<double, kStrategies.size()>;  // 0: none

void add_orders(const Row& row, const Bandwidths& published, const Bandwidths& simulated,
                PaperReport& report) {
  for (std::size_t a = 0; a < kStrategies.size(); ++a) {
    for (std::size_t b = 0; b < kStrategies.size(); ++b) {
      if (published[a] <= published[b] || published[b] == 0) continue;
      report.orders.push_back(
          {fmt::format("{}: {} before {}", name_of(row), kStrategies[a].name, kStrategies[b].name),
           (published[a] / published[b] - 1) * 100, simulated[a] > simulated[b]});
    }
  }
}

base::Status add_table(Inputs& inputs, const Setting& setting, PaperReport& report) {
  for (const Row& row : kRows) {
    Bandwidths published{}, simulated{};
    for (std::size_t i = 0; i < kStrategies.size(); ++i) {
      published[i] =
          inputs.published()
              .find(fmt::format("/fat-tree/effective_bandwidth_MBps_per_node_256KB/{}/{}", row.name,
                                kStrategies[i].column))
              .value_or(0);
      if (published[i] == 0) continue;
      UNISONO_ASSIGN(simulated[i], mean_bandwidth(setting, kStrategies[i], row));
      report.claims.push_back({fmt::format("{}: {}", name_of(row), kStrategies[i].name), "MB/s",
                               published[i], simulated[i], kTreeTolerancePercent});
    }
    add_orders(row, published, simulated, report);
  }
  return base::success();
}

// Each rank sends to the one `shift` above, once.
base::Result<double> shift_bandwidth(const Setting& setting, const Placement& placement,
                                     int shift) {
  const int ranks = placement.ranks();
  std::vector<sim::Trace> traces;
  for (int rank = 0; rank < ranks; ++rank) {
    traces.push_back({{sim::StepKind::send, (rank + shift) % ranks, 0, kBlock, 0},
                      {sim::StepKind::wait, (rank + ranks - shift) % ranks, 0, kBlock, 0}});
  }
  const sim::ProgramSet programs = sim::ProgramSet::compile_traces(traces, setting.machine);
  sim::EventOptions options;
  options.placement = &placement;
  options.network = setting.network;
  UNISONO_ASSIGN(const sim::EventOutcome simulated, sim::simulate_events(programs, options));
  return bandwidth(static_cast<double>(kBlock), simulated.outcome.finish);
}

// The mean over the shifts without congestion: a 4^j, a = 1, 2, 3 (lemma 6).
base::Result<double> peak_of_shifts(const Setting& setting, int nodes) {
  UNISONO_ASSIGN(const Tree tree, tree_of(nodes));
  UNISONO_ASSIGN(const Placement placement, place_around(tree, {}, nodes));
  double sum = 0;
  int shifts = 0;
  for (int power = 1; power < nodes; power *= 4) {
    for (int a = 1; a <= 3; ++a, ++shifts) {
      UNISONO_ASSIGN(const double one, shift_bandwidth(setting, placement, a * power));
      sum += one;
    }
  }
  return sum / shifts;
}

base::Status add_shifts(Inputs& inputs, const Setting& setting, PaperReport& report) {
  Setting staged = setting;  // messages come from the NIC's memory
  for (model::PathParameters& path : staged.machine.paths) {
    if (path.staged_per_byte) path.overhead_per_byte = *path.staged_per_byte;
  }
  for (const int nodes : {64, 256}) {
    const std::string place = fmt::format("/fat-tree/cyclic_shift_peaks_MBps/{}_nodes/", nodes);
    const double middle =
        (inputs.published().at(place + "0") + inputs.published().at(place + "1")) / 2;
    UNISONO_ASSIGN(const double peak, peak_of_shifts(staged, nodes));
    report.claims.push_back({fmt::format("{} nodes: cyclic shifts without congestion", nodes),
                             "MB/s", middle, peak, kTreeTolerancePercent});
  }
  UNISONO_ASSIGN(const double slow, peak_of_shifts(setting, 64));
  report.claims.push_back(
      {"cyclic shift from main memory", "MB/s",
       inputs.published().at("/fat-tree/cyclic_shift_peaks_MBps/from_main_memory"), slow,
       kTreeTolerancePercent});
  return base::success();
}

}  // namespace

base::Result<PaperReport> report_fat_tree(Inputs& inputs) {
  UNISONO_ASSIGN(const Setting setting, find_setting(inputs));
  PaperReport report{
      "fat-tree", "Kumar, Kalé: Scaling All-to-All Multicast on Fat-tree Networks", {}, {}, {}};
  report.parameters = {
      "published: alpha, beta of Elan memory, delta, 400 MB/s a link (sections 2 to 4)",
      "published: bandwidth beyond distances 16 and 64 (section 4.1)",
      "published elsewhere: barrier of 10 us (asci-q, section 5)",
      "left out: copies of received blocks; equations 8 to 10 have none",
      "assumed: places of the missing nodes; the mean over 8 random ones",
      "fitted: nothing"};
  UNISONO_TRY(add_table(inputs, setting, report));
  UNISONO_TRY(add_shifts(inputs, setting, report));
  return report;
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "select/nic/split_choice.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "algorithm/pattern/cube.hpp"
#include "nic/port/segments.hpp"
#include "select/nic/tree_choice.hpp"

namespace unisono::select {
namespace {

// The computed costs are right within about a tenth.
constexpr double kWorthIt = 0.9;

static_assert(1 << SplitChoice::kMost <= nic::kPiecesMax);

}  // namespace

// The kernel's part of a packet, which the program does not see, is in r: the cost of another level
// of a tree.
NicCosts NicCosts::of(const model::Machine& machine) {
  const auto bytes = static_cast<std::int64_t>(nic::kPacketBytes);
  const model::PathParameters& path = model::remote_path(machine, model::Engine::nic, bytes);
  const double words = UNISONO_NIC_WORDS_MAX;
  const double word_bytes = static_cast<double>(bytes) / words;
  const auto combined = [&](arith::Type type) {
    return model::reduction_ns(path, arith::Operator::sum, type, bytes) / words;
  };
  return {.packet = path.reception.ns(0),
          .packet_word = (path.reception.ns(bytes) - path.reception.ns(0)) / words,
          .send = path.overhead.ns(),
          .send_word = path.overhead_per_byte.ns() * word_bytes,
          .integer = combined(arith::Type::int64),
          .real = combined(arith::Type::float64),
          .doorbell = model::start_up_ns(path, arith::Operator::sum),
          .multicast = path.multicast_latency ? path.multicast_latency->ns() : path.latency.ns()};
}

int processors_of(std::span<const nic::Capabilities> hosts) {
  std::map<std::uint32_t, std::uint32_t> of_machine;
  for (const nic::Capabilities& host : hosts) {
    std::uint32_t& processors = of_machine[host.machine];
    processors = std::max(processors, std::max(host.processors, 1U));
  }
  std::int64_t sum = 0;
  for (const auto& [machine, processors] : of_machine) sum += processors;
  return static_cast<int>(std::min<std::int64_t>(sum, std::numeric_limits<int>::max()));
}

// The longest path has three parts. The first is the deepest leaf's level, where a parent gets all
// its packets at once. Then come further levels, each with the children of those before it. Last
// come the results of all trees, which reach each host one after another.
//
// A leaf sends a doorbell packet for each tree. The busiest host limits the rate of the further
// packets of a piece. It is a leaf that sends doorbell packets, or the root of a tree, which
// receives and combines. The result is at least the cost of all packets divided by all processors.
double split_cost_ns(const SplitWork& work, int splits) {
  const int trees = 1 << splits;
  const int fan_in = std::clamp(work.fan_in, 1, std::max(work.hosts - 1, 1));
  int levels = 0;
  for (int left = work.hosts - 1; left > 0; left /= fan_in + 1) ++levels;
  const std::size_t piece =
      (work.words + static_cast<std::size_t>(trees) - 1) / static_cast<std::size_t>(trees);
  const auto packets = static_cast<double>(nic::Segments::pieces(piece, UNISONO_NIC_WORDS_MAX));
  const double words = static_cast<double>(piece) / packets;
  const NicCosts& costs = work.costs;
  const double taken = costs.packet + words * costs.packet_word;
  const double sent = costs.send + words * costs.send_word;
  const double combined = words * (work.adds_floats ? costs.real : costs.integer);
  const double way = trees * costs.doorbell + (fan_in + levels - 1) * taken + levels * sent +
                     fan_in * levels * (levels + 1) / 2 * combined + trees * taken;
  const double busiest =
      std::max(trees * costs.doorbell, fan_in * levels * (taken + combined) + sent + trees * taken);
  const double work_ns = packets * trees *
                         (work.hosts * costs.doorbell + (work.hosts - 1) * (taken + combined) +
                          work.hosts * (sent + taken));
  return std::max(way + (packets - 1) * busiest, work_ns / work.processors);
}

SplitChoice SplitChoice::computed(SplitWork work, int most) {
  SplitChoice choice;
  for (const bool adds_floats : {false, true}) {
    work.adds_floats = adds_floats;
    for (work.words = 0; work.words <= nic::kWordsMax; ++work.words) {
      double least = kWorthIt * split_cost_ns(work, 0);
      for (int splits = 1; splits <= most && 1 << splits <= work.hosts; ++splits) {
        const double ns = split_cost_ns(work, splits);
        if (ns >= least || work.words >> splits == 0) continue;
        least = ns;
        choice.splits_[adds_floats ? 1 : 0][work.words] = static_cast<std::uint8_t>(splits);
        choice.most_ = std::max(choice.most_, splits);
      }
    }
  }
  return choice;
}

SplitChoice SplitChoice::forced(int splits) {
  SplitChoice choice;
  choice.most_ = splits;
  for (auto& by_words : choice.splits_) {
    for (std::size_t words = std::size_t{1} << splits; words < by_words.size(); ++words) {
      by_words[words] = static_cast<std::uint8_t>(splits);
    }
  }
  return choice;
}

// Where hosts have several ranks each, the trees of hosts are part of another algorithm, which uses
// them with their usual parameters.
SplitChoice choose_splits(std::span<const nic::Capabilities> hosts, bool one_rank_a_host,
                          bool multicasts, const model::Machine& machine) {
  const auto count = static_cast<int>(hosts.size());
  if (!reaches_all(count, multicasts)) return {};
  const int most = std::min(one_rank_a_host ? SplitChoice::kMost : usual_splits(count),
                            algorithm::pattern::FoldedCube(count).dimensions());
  const std::int32_t wanted = hosts[0].preferences.splits;
  if (wanted >= 0) return SplitChoice::forced(std::min(wanted, most));
  return SplitChoice::computed({.hosts = count,
                                .processors = processors_of(hosts),
                                .fan_in = nic_fan_in(count),
                                .costs = NicCosts::of(machine)},
                               most);
}

}  // namespace unisono::select

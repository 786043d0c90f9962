// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "select/select.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

// Each of the degrees up to this one is priced: the best ones of the papers' machines are below.
constexpr int kEachUpTo = 8;
// For a choice, more ranks are priced in a smaller number first; and so many rows in full then.
constexpr int kPricedInFull = 64, kFewRanks = 64, kFewOfHost = 8;
constexpr std::size_t kRowsPricedInFull = 2;
// A set of schedules with more steps is not priced. Where ranks are alike, that is one schedule.
constexpr std::int64_t kMostSteps = 200'000;

std::vector<int> values_to_price(const algorithm::ParameterSpec& spec, int ranks) {
  const int high = spec.high == 0 ? std::max(spec.low, ranks) : spec.high;
  std::vector<int> values;
  for (std::int64_t value = spec.low; value <= high;) {
    values.push_back(static_cast<int>(value));
    value = value < kEachUpTo || !spec.names.empty() ? value + 1 : value * 2;
  }
  if (values.back() != high) values.push_back(high);
  return values;
}

model::Engine priced_engine(EngineKind engine) {
  switch (engine) {
    case EngineKind::inline_:
      return model::Engine::inline_;
    case EngineKind::helping:
      return model::Engine::helping;
    case EngineKind::nic:
      return model::Engine::nic;
  }
  return model::Engine::any;
}

base::Result<std::vector<Schedule>> build_for_price(const Algorithm& row,
                                                    const Parameters& parameters,
                                                    const Shape& shape) {
  std::vector<Schedule> set;
  const int built = one_stands_for_all(row, shape) ? 1 : shape.ranks;
  set.reserve(static_cast<std::size_t>(built));
  UNISONO_ASSIGN(Schedule first, algorithm::build(row, shape, parameters, 0));
  set.push_back(std::move(first));
  // A candidate is legal for all ranks or for none.
  for (int rank = 1; rank < built; ++rank) set.push_back(row.build(shape, parameters, rank));
  return set;
}

// The need of receive buffers, near enough (plan/bind/window_layout). They hold messages in slots,
// scratch, and the multicasts of their rank, which the targets read there. Those of helped ranks
// also hold input and output.
class BufferNeed {
 public:
  BufferNeed(std::span<const Schedule> set, const Pricing& pricing)
      : set_(set), pricing_(pricing), elements_(set.size()) {}

  std::int64_t most_elements() {
    for (std::size_t i = 0; i < set_.size(); ++i) {
      const Schedule& schedule = set_[i];
      elements_[i] += schedule.scratch_count;
      for (const schedule::Slot& slot : schedule.slots) elements_[i] += slot.count;
      if (pricing_.work.staged_multicast) count_multicasts(i);
      if (pricing_.work.engine == model::Engine::helping) {
        elements_[i] += schedule::input_count(schedule.shape, schedule.rank) +
                        schedule::output_count(schedule.shape, schedule.rank);
      }
    }
    return std::ranges::max(elements_);
  }

 private:
  void count_multicasts(std::size_t i) {
    const Schedule& schedule = set_[i];
    for (const schedule::Op& op : schedule.ops) {
      if (op.kind != schedule::OpKind::multicast) continue;
      elements_[i] += op.left.count;
      for (const schedule::Target& target : schedule.targets_of(op)) {
        // If one schedule stands for all, it also receives what it sends.
        elements_[set_.size() == 1 ? 0 : static_cast<std::size_t>(target.peer)] -= op.left.count;
      }
    }
  }

  std::span<const Schedule> set_;
  const Pricing& pricing_;
  std::vector<std::int64_t> elements_;
};

std::int64_t segments_of(std::span<const Schedule> set, const Shape& shape,
                         const Pricing& pricing) {
  if (pricing.window_bytes <= 0 || shape.blocks.given() || shape.count <= 1) return 1;
  const std::int64_t bytes =
      BufferNeed(set, pricing).most_elements() * pricing.work.bytes_of_element();
  const std::int64_t segments = (bytes + pricing.window_bytes - 1) / pricing.window_bytes;
  return std::clamp<std::int64_t>(segments, 1, shape.count);
}

// One of so many, in equal shares of the ranks: then one schedule may stand for all.
Shape segment_of(Shape shape, std::int64_t segments) {
  shape.count = (shape.count + segments - 1) / segments;
  if (shape.count > shape.ranks) shape.count -= shape.count % shape.ranks;
  return shape;
}

// Some of the ranks: up to so many of each of some hosts.
Shape with_few_ranks(Shape shape) {
  const topology::HostMap all = shape.hosts;
  shape.ranks = kFewRanks;
  if (all.given()) {
    const int of_host = std::min(kFewOfHost, static_cast<int>(all.members(0).size()));
    std::vector<int> labels;
    for (int rank = 0; rank < all.ranks(); ++rank) {
      if (all.of(rank) >= kFewRanks / of_host || all.place(rank) >= of_host) continue;
      labels.push_back(all.of(rank));
    }
    shape.ranks = static_cast<int>(labels.size());
    shape.hosts = topology::HostMap::of_labels(labels);
  }
  shape.root = std::min(shape.root, shape.ranks - 1);
  return shape;
}

// The parameters that are cheapest for `priced`, if they are legal for `shape`.
std::optional<Priced> cheapest_of_row(const Algorithm& row, const Shape& shape, const Shape& priced,
                                      const Pricing& pricing) {
  std::optional<Priced> best;
  for (const Parameters& parameters : parameters_to_price(row, priced)) {
    if (!why_not(row, priced, parameters).empty() || !why_not(row, shape, parameters).empty()) {
      continue;
    }
    const auto price = price_of(row, parameters, priced, pricing);
    if (!price || (best && best->price.ns <= price->ns)) continue;
    best = Priced{.row = &row, .parameters = parameters, .price = *price};
  }
  return best;
}

}  // namespace

bool one_stands_for_all(const Algorithm& row, const Shape& shape) {
  return algorithm::ranks_are_alike(row, shape) &&
         (!shape.hosts.given() || shape.hosts.are_alone());
}

// The root and two others stand for all.
bool is_priceable(const Algorithm& row, const Parameters& parameters, const Shape& shape) {
  if (shape.ranks <= kPricedInFull) return true;
  const auto steps = [&](int rank) {
    const Schedule schedule = row.build(shape, parameters, rank % shape.ranks);
    return static_cast<std::int64_t>(schedule.ops.size() + schedule.targets.size());
  };
  if (one_stands_for_all(row, shape)) return steps(0) <= kMostSteps;
  const std::int64_t others = std::max(steps(shape.root + 1), steps(shape.root + shape.ranks / 2));
  return steps(shape.root) + (shape.ranks - 1) * others <= kMostSteps;
}

Pricing pricing_of(const Shape& shape, const Circumstances& now, EngineKind engine) {
  Pricing pricing;
  pricing.machine = &machine_of(now);
  pricing.window_bytes = now.window_bytes;
  model::Work& work = pricing.work;
  work.engine = priced_engine(engine);
  work.type = now.type.value_or(arith::Type::byte);
  if (schedule::is_reduction(shape.collective)) work.op = now.op.value_or(arith::Operator::sum);
  work.element_bytes = now.element_bytes;
  work.staged_multicast = now.staged_multicast;
  work.multicast_between_hosts = now.multicast || now.leaders_multicast;
  // Between hosts, all members plan alike, however many cores their hosts have.
  if (!shape.hosts.given()) {
    const int cores = std::max(1, now.cores);
    work.cores = now.oversubscribed ? std::max(1, std::min(cores, shape.ranks - 1)) : shape.ranks;
  }
  return pricing;
}

std::vector<Parameters> parameters_to_price(const Algorithm& row, const Shape& shape) {
  const Parameters usual = algorithm::default_parameters(row, shape);
  std::vector<Parameters> all = {usual};
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    for (const int value : values_to_price(row.parameters[i], shape.ranks)) {
      if (value == usual.values[i]) continue;
      all.push_back(usual);
      all.back().values[i] = value;
    }
  }
  return all;
}

base::Result<model::Price> price_of(const Algorithm& row, const Parameters& parameters,
                                    const Shape& shape, const Pricing& pricing) {
  UNISONO_ASSIGN(auto set, build_for_price(row, parameters, shape));
  const std::int64_t segments = segments_of(set, shape, pricing);
  if (segments > 1) {
    UNISONO_ASSIGN(set, build_for_price(row, parameters, segment_of(shape, segments)));
  }
  return std::cmp_less(set.size(), shape.ranks)
             ? model::price_of_alike(set.front(), *pricing.machine, pricing.work, segments)
             : model::price(set, *pricing.machine, pricing.work, segments);
}

base::Result<std::vector<Priced>> price_candidates(const Shape& shape, const Pricing& pricing) {
  std::vector<Priced> priced;
  for (const Algorithm& row : algorithm::table()) {
    if (row.collective != shape.collective) continue;
    for (const Parameters& parameters : parameters_to_price(row, shape)) {
      if (!why_not(row, shape, parameters).empty() || !is_priceable(row, parameters, shape))
        continue;
      UNISONO_ASSIGN(const model::Price price, price_of(row, parameters, shape, pricing));
      priced.push_back({.row = &row, .parameters = parameters, .price = price});
    }
  }
  std::ranges::stable_sort(priced, {}, [](const Priced& each) { return each.price.ns; });
  return priced;
}

std::optional<Priced> cheapest_candidate(const Shape& shape, const Pricing& pricing,
                                         const Ruling& ruling) {
  std::vector<Priced> in_few;  // of each row that is not alike, the cheapest
  std::optional<Priced> best;
  const auto consider = [&best](const Priced& one) {
    if (!best || one.price.ns < best->price.ns) best = one;
  };
  const bool are_many = shape.ranks > kPricedInFull;
  const Shape few = are_many ? with_few_ranks(shape) : shape;
  for (const Algorithm& row : algorithm::table()) {
    if (row.collective != shape.collective || ruling.excluded_by(row) != nullptr) continue;
    const bool as_few = are_many && !one_stands_for_all(row, shape);
    const auto cheapest = cheapest_of_row(row, shape, as_few ? few : shape, pricing);
    if (!cheapest) continue;
    if (as_few) {
      in_few.push_back(*cheapest);
    } else {
      consider(*cheapest);
    }
  }
  std::ranges::stable_sort(in_few, {}, [](const Priced& each) { return each.price.ns; });
  if (in_few.size() > kRowsPricedInFull) in_few.resize(kRowsPricedInFull);
  for (Priced& each : in_few) {
    if (is_priceable(*each.row, each.parameters, shape)) {
      const auto price = price_of(*each.row, each.parameters, shape, pricing);
      if (!price) continue;
      each.price = *price;
    } else {
      // So many steps are those of ranks that each have to do with all others.
      each.price.ns *= static_cast<double>(shape.ranks) / few.ranks;
    }
    consider(each);
  }
  return best;
}

}  // namespace unisono::select

// SPDX-License-Identifier: BSD-3-Clause
#include "select/price_book.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "select/few_ranks.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

// 0: all are on one host.
int hosts_of(const Shape& shape) { return shape.hosts.given() ? shape.hosts.hosts() : 0; }

// More cores than ranks are as many.
int cores_of(const Shape& shape, const Pricing& pricing) {
  const int cores = pricing.work.cores;
  return shape.hosts.given() || cores <= 0 ? cores : std::min(cores, shape.ranks);
}

// Whether the outline of a piece is enough.
template <class Candidate>
bool repeats(const Candidate& candidate, const Shape& shape) {
  return candidate.row->repeats && candidate.parameters.values[0] > 1 && !shape.ordered &&
         !shape.hosts.given();
}

model::Scale scale_of(const Algorithm& row, const Shape& shape, std::int64_t segments) {
  if (segments == 1) return {};
  return {.from = shape.count, .to = segment_of(row, shape, segments).count};
}

// Whether the outline of a call is none of one of its segments, as far as `need` knows their
// number.
bool is_useless(const model::Outline& outline, const BufferNeed& need, const Algorithm& row,
                const Shape& shape) {
  const std::int64_t segments = need.calls_of(shape).segments;
  return segments > 1 && !outline.can_scale(shape.count, segment_of(row, shape, segments).count);
}

// Pieces of which no element is left might be none.
bool keeps_steps(const model::Outline& outline, const model::Scale& scale) {
  return scale.from == scale.to || std::ranges::none_of(outline.sizes(), [&](std::int64_t size) {
           return size > 0 && scale.of(size) == 0;
         });
}

}  // namespace

std::size_t PriceBook::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  };
  const Candidate& of = key.candidate;
  add(reinterpret_cast<std::uintptr_t>(of.row));
  for (const int value : of.parameters.values) add(static_cast<std::uint64_t>(value));
  add(static_cast<std::uint64_t>(of.count));
  add(static_cast<std::uint64_t>(of.of_blocks));
  add(static_cast<std::uint64_t>(of.ranks));
  add(static_cast<std::uint64_t>(key.cores));
  return static_cast<std::size_t>(hash);
}

PriceBook::Candidate PriceBook::candidate_of(const Algorithm& row, const Parameters& parameters,
                                             const Shape& shape) {
  return {.row = &row,
          .parameters = algorithm::effective_parameters(row, shape, parameters),
          .count = shape.count,
          .of_blocks = shape.blocks.given() ? shape.blocks.total() : -1,
          .ranks = shape.ranks,
          .root = shape.root,
          .hosts = hosts_of(shape)};
}

PriceBook::Key PriceBook::key_of(const Candidate& candidate, const Shape& shape,
                                 const Pricing& pricing) {
  return {.candidate = candidate,
          .cores = cores_of(shape, pricing),
          .shared_cores = pricing.work.shared_cores};
}

bool PriceBook::has_at_most(std::int64_t most, const Algorithm& row, const Parameters& parameters,
                            const Shape& shape) {
  const Building building(*this);
  return select::has_at_most(most, row, parameters, shape);
}

std::size_t PriceBook::steps_of_one(const Algorithm& row, const Parameters& parameters,
                                    const Shape& shape) {
  const Building building(*this);
  keep_root(candidate_of(row, parameters, shape), row.build(shape, parameters, 0));
  return root_->ops.size() + root_->targets.size();
}

bool PriceBook::costs_at_least(double ns, const Algorithm& row, const Parameters& parameters,
                               const Shape& shape, const Pricing& pricing) {
  if (ns == kAnyPrice || one_stands_for_all(row, shape)) return false;
  if (!is_kept_) return least_ns(row, parameters, shape, pricing) >= ns;
  Known& known = known_[key_of(candidate_of(row, parameters, shape), shape, pricing)];
  if (known.least_ns < 0) known.least_ns = least_ns(row, parameters, shape, pricing);
  return known.least_ns >= ns;
}

double PriceBook::least_ns(const Algorithm& row, const Parameters& parameters, const Shape& shape,
                           const Pricing& pricing) {
  const bool may_need = may_need_segments(shape, pricing);
  if (may_need && is_kept_ && !pricer_of(shape, pricing).shares_cores(shape.root)) return 0;
  const Building building(*this);
  Schedule one = row.build(shape, parameters, shape.root);
  model::Calls calls;
  model::Segments segments = model::Segments::one;
  if (may_need) {
    segments = model::Segments::as_many_or_more;
    calls = calls_of({&one, 1}, shape, pricing, false);
  }
  const auto ns = is_kept_ && !shape.hosts.given()
                      ? least_ns_by_outline(one, row, shape, pricing, calls, segments)
                      : std::nullopt;
  if (ns) {
    keep_root(candidate_of(row, parameters, shape), std::move(one));
    return *ns;
  }
  if (calls.segments > 1) {
    spares_.keep(std::move(one));
    one = row.build(segment_of(row, shape, calls.segments), parameters, shape.root);
  }
  const double by_schedule =
      is_kept_ ? pricer_of(shape, pricing).least_ns(one, calls, segments)
               : model::least_ns(one, *pricing.machine, pricing.work, calls, segments);
  if (calls.segments <= 1) {
    keep_root(candidate_of(row, parameters, shape), std::move(one));
  } else {
    spares_.keep(std::move(one));
  }
  return by_schedule;
}

// nullopt if the schedule of a segment may have other steps than that of the whole call.
std::optional<double> PriceBook::least_ns_by_outline(const Schedule& one, const Algorithm& row,
                                                     const Shape& shape, const Pricing& pricing,
                                                     const model::Calls& calls,
                                                     model::Segments segments) {
  outline_of_root_.clear();
  outline_of_root_.add(one, pricing.work.engine == model::Engine::helping);
  const model::Scale scale = scale_of(row, shape, calls.segments);
  if (!keeps_steps(outline_of_root_, scale)) return std::nullopt;
  model::Pricer& pricer = pricer_of(shape, pricing);
  return pricer.least_ns_of_rank(pricer.work_of(outline_of_root_, 0, scale), one.rank, calls,
                                 segments);
}

void PriceBook::keep_root(const Candidate& candidate, Schedule&& schedule) {
  if (root_) spares_.keep(std::move(*root_));
  root_ = std::move(schedule);
  root_of_ = candidate;
}

void PriceBook::give_back(std::vector<Schedule>& set) { spares_.keep_all(set); }

std::optional<double> PriceBook::ns_below(double most_ns, const Algorithm& row,
                                          const Parameters& parameters, const Shape& shape,
                                          const Pricing& pricing) {
  const auto if_below = [most_ns](double ns) {
    return ns < most_ns ? std::optional(ns) : std::nullopt;
  };
  if (!is_kept_) {
    const auto price = price_of(row, parameters, shape, pricing);
    return price ? if_below(price->ns) : std::nullopt;
  }
  const Candidate candidate = candidate_of(row, parameters, shape);
  Known& known = known_[key_of(candidate, shape, pricing)];
  if (known.ns >= 0) return if_below(known.ns);
  if (known.at_least_ns >= most_ns) return std::nullopt;
  const Set* found = set_of(candidate, shape, pricing, most_ns);
  if (found == nullptr) {
    known.at_least_ns = most_ns;
    return std::nullopt;
  }
  const Set& set = *found;
  model::Pricer& pricer = pricer_of(shape, pricing);
  const auto find_ns = [&]() -> std::optional<double> {
    if (set.are_alike) return pricer.ns_of_alike(set.schedules.front(), set.calls);
    if (set.is_outlined) return pricer.ns_below(most_ns, set.outline, set.calls);
    return pricer.ns_below(most_ns, set.schedules, set.calls);
  };
  const std::optional<double> ns = find_ns();
  if (!ns) {
    known.at_least_ns = most_ns;
    return std::nullopt;
  }
  known.ns = *ns;
  return if_below(*ns);
}

const PriceBook::Set* PriceBook::set_of(const Candidate& candidate, const Shape& shape,
                                        const Pricing& pricing, double most_ns) {
  const auto found = std::ranges::find(sets_, candidate, &Set::candidate);
  ++uses_;
  if (found != sets_.end()) {
    found->last_use = uses_;
    return &*found;
  }
  const Building building(*this);
  // Sets of all of many ranks are priced once only, and their memory serves the next one.
  for (Set& each : sets_) {
    const bool has_many = each.schedules.size() > static_cast<std::size_t>(kPricedInFull) ||
                          each.outline.ranks() > kPricedInFull;
    if (!has_many) continue;
    give_back(each.schedules);
    each.candidate = {};
    each.last_use = 0;
  }
  Set& set = *std::ranges::min_element(sets_, {}, &Set::last_use);
  set.candidate = {};
  set.is_partial = false;
  auto calls = build(candidate, shape, pricing, most_ns, 1, set);
  if (calls && set.is_partial && calls->segments == 1) {
    calls = build(candidate, shape, pricing, most_ns, 1, set);
  }
  if (!calls) return nullptr;
  set.calls = *calls;
  set.calls.slot_indexes = 0;  // no price in a row
  if (!cut(candidate, shape, pricing, most_ns, set)) return nullptr;
  set.candidate = candidate;
  set.last_use = uses_;
  return &set;
}

// Most rows do the same steps at any length, so that a segment seldom needs schedules of its own.
bool PriceBook::cut(const Candidate& candidate, const Shape& shape, const Pricing& pricing,
                    double most_ns, Set& set) {
  const std::int64_t segments = set.calls.segments;
  if (segments == 1) return true;
  const Shape segment = segment_of(*candidate.row, shape, segments);
  if (set.is_outlined && !set.is_partial && !one_stands_for_all(*candidate.row, segment) &&
      set.outline.scale(shape.count, segment.count)) {
    return true;
  }
  return build(candidate, segment, pricing, most_ns, segments, set).has_value();
}

// Where ranks share cores, these need the time for the work of all. So many candidates end before
// the schedules of all ranks are built. A call whose first ranks need segments has the work of
// those. The outline of a call may be of no use for a segment, as that of the first ranks shows.
// Then the schedules of the further ranks only tell the number of segments. A partial set that
// needs none is built again.
std::optional<model::Calls> PriceBook::build(const Candidate& candidate, const Shape& shape,
                                             const Pricing& pricing, double most_ns,
                                             std::int64_t segments, Set& set) {
  give_back(set.schedules);
  if (repeats(candidate, shape)) return build_repeated(candidate, shape, pricing, set);
  const int built = one_stands_for_all(*candidate.row, shape) ? 1 : shape.ranks;
  set.are_alike = built < shape.ranks;
  set.is_outlined = !set.are_alike && !shape.hosts.given();
  const bool helps = pricing.work.engine == model::Engine::helping;
  // The rank of one schedule receives as much as it sends.
  const bool rotates = set.is_outlined && candidate.row->rotates && !shape.blocks.given();
  const int last = rotates ? 1 : built;
  BufferNeed need(static_cast<std::size_t>(last), pricing, set.are_alike || rotates);
  set.outline.clear();
  if (!set.is_outlined) set.schedules.reserve(static_cast<std::size_t>(built));
  const bool has_root = root_ && root_of_ == candidate;
  model::Pricer& pricer = pricer_of(shape, pricing);
  bool is_bounded = set.is_outlined && !rotates && most_ns < kAnyPrice &&
                    pricer.share_all_cores() &&
                    (segments > 1 || !may_need_segments(shape, pricing));
  double work_ns = 0, own_ns = 0;
  const bool may_be_partial =
      std::exchange(set.is_partial, false) == false && set.is_outlined && !rotates && segments == 1;
  std::optional<schedule::Spares::WithoutSteps> without_steps;
  for (int rank = 0; rank < last; ++rank) {
    if (set.is_partial && !without_steps) without_steps.emplace();
    Schedule schedule = has_root && rank == shape.root
                            ? std::move(*root_)
                            : candidate.row->build(shape, candidate.parameters, rank);
    need.add(schedule);
    if (set.is_partial) {
      spares_.keep(std::move(schedule));
    } else if (set.is_outlined) {
      set.outline.add(schedule, helps);
      spares_.keep(std::move(schedule));
      // It asks after each doubling of the ranks, which costs little against all.
      if (may_be_partial && std::has_single_bit(static_cast<unsigned>(rank) + 1)) {
        set.is_partial = is_useless(set.outline, need, *candidate.row, shape);
      }
      if (!is_bounded) continue;
      const double ns = pricer.work_of(set.outline, rank, {});
      work_ns += ns;
      own_ns = std::max(own_ns, ns);
      if (pricer.least_ns_of_work(work_ns, own_ns, {.segments = segments}) < most_ns) continue;
      // A segment has other work than a whole call.
      is_bounded = segments > 1 || need.calls_of(shape).segments == 1;
      if (is_bounded) {
        if (has_root) root_.reset();
        return std::nullopt;
      }
    } else {
      set.schedules.push_back(std::move(schedule));
    }
  }
  if (rotates) set.outline.rotate(built - 1);
  if (has_root) root_.reset();
  return need.calls_of(shape);
}

// Only the schedules of one piece are built, or of two that differ in length by one.
model::Calls PriceBook::build_repeated(const Candidate& candidate, const Shape& shape,
                                       const Pricing& pricing, Set& set) {
  const auto pieces =
      static_cast<int>(std::clamp<std::int64_t>(shape.count, 1, candidate.parameters.values[0]));
  const auto longer_ones = static_cast<int>(shape.count % pieces);
  BufferNeed need(static_cast<std::size_t>(shape.ranks), pricing, false);
  const auto build_piece = [&](std::int64_t count, int times, model::Outline& outline) {
    outline.clear();
    Shape piece = shape;
    piece.count = count;
    Parameters parameters = candidate.parameters;
    parameters.values[0] = 1;
    need.first_rank();
    for (int rank = 0; times > 0 && rank < shape.ranks; ++rank) {
      Schedule schedule = candidate.row->build(piece, parameters, rank);
      need.add_part(schedule, times);
      need.next_rank();
      outline.add(schedule, pricing.work.engine == model::Engine::helping);
      spares_.keep(std::move(schedule));
    }
  };
  build_piece(shape.count / pieces + 1, longer_ones, longer_);
  build_piece(shape.count / pieces, pieces - longer_ones, shorter_);
  set.are_alike = false;
  set.is_outlined = true;
  set.outline.repeat(longer_, longer_ones, shorter_, pieces - longer_ones);
  return need.calls_of(shape);
}

model::Pricer& PriceBook::pricer_of(const Shape& shape, const Pricing& pricing) {
  const int hosts = hosts_of(shape), cores = cores_of(shape, pricing);
  for (PricerOfCores& each : pricers_) {
    if (each.ranks == shape.ranks && each.hosts == hosts && each.cores == cores &&
        each.shared_cores == pricing.work.shared_cores) {
      return each.pricer;
    }
  }
  pricers_.push_back({.ranks = shape.ranks,
                      .hosts = hosts,
                      .cores = cores,
                      .shared_cores = pricing.work.shared_cores,
                      .pricer = {*pricing.machine, pricing.work, shape}});
  return pricers_.back().pricer;
}

}  // namespace unisono::select

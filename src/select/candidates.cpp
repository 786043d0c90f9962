// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "select/few_ranks.hpp"
#include "select/lesson.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

constexpr double kAnyPrice = std::numeric_limits<double>::infinity();
// After so many numbers, each dearer than the one before, no further one is priced.
constexpr int kDearerInRow = 2;
// Rows whose estimates are dearer than the cheapest by more than this are not priced in full. If no
// other is left, the cheapest is not either.
constexpr double kNear = 2;
constexpr std::size_t kStepsOfParameters = 128;
// Where hosts have several ranks each, so many rows are priced in full.
constexpr std::size_t kRowsPricedInFull = 2, kRowsOfSomeRanks = 4;
// A set of schedules with more steps is not priced, or only estimated for a choice if few ranks
// stand for it. Where ranks are alike, that is one schedule.
constexpr std::int64_t kMostSteps = 200'000, kMostStepsOfUniform = 20'000;
// The same up to kPricedInFull ranks. If each has to do with all others, the price grows so evenly
// that few ranks tell it.
constexpr std::int64_t kMostStepsOfSome = 4'000;

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
  // One schedule is that of each rank, or of the only one that counts.
  BufferNeed(std::span<const Schedule> set, const Pricing& pricing, bool are_alike)
      : set_(set), pricing_(pricing), are_alike_(are_alike), elements_(set.size()) {}

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
      if (set_.size() == 1 && !are_alike_) continue;
      for (const schedule::Target& target : schedule.targets_of(op)) {
        // If one schedule stands for all, it also receives what it sends.
        elements_[are_alike_ ? 0 : static_cast<std::size_t>(target.peer)] -= op.left.count;
      }
    }
  }

  std::span<const Schedule> set_;
  const Pricing& pricing_;
  bool are_alike_;
  std::vector<std::int64_t> elements_;
};

model::Calls calls_of(std::span<const Schedule> set, const Shape& shape, const Pricing& pricing,
                      bool are_alike) {
  const auto indexes_of = [&](const Buffers& size) {
    return pricing.in_row ? size.slot_indexes : 0;
  };
  const Buffers& bulk = pricing.buffers.back();
  if (pricing.window_bytes <= 0) return {.slot_indexes = indexes_of(bulk)};
  const std::int64_t bytes =
      BufferNeed(set, pricing, are_alike).most_elements() * pricing.work.bytes_of_element();
  for (const Buffers& size : std::span(pricing.buffers).first<2>()) {
    if (bytes <= size.bytes) return {.slot_indexes = indexes_of(size)};
  }
  model::Calls calls{.slot_indexes = indexes_of(bulk)};
  if (shape.blocks.given() || shape.count <= 1) return calls;
  const std::int64_t segments = (bytes + pricing.window_bytes - 1) / pricing.window_bytes;
  calls.segments = std::clamp<std::int64_t>(segments, 1, shape.count);
  return calls;
}

// One of so many, in equal shares of the ranks: then one schedule may stand for all.
Shape segment_of(Shape shape, std::int64_t segments) {
  shape.count = (shape.count + segments - 1) / segments;
  if (shape.count > shape.ranks) shape.count -= shape.count % shape.ranks;
  return shape;
}

// All ranks on one host, or each on its own: then few of them stand for many in proportion.
bool are_uniform(const Shape& shape) { return !shape.hosts.given() || shape.hosts.are_alone(); }

// Whether a rank may need segments. Its buffer has the caller's data, scratch and a slot for each
// other rank at most, and of blocks not many times all.
bool may_need_segments(const Shape& shape, const Pricing& pricing) {
  if (pricing.window_bytes <= 0) return false;
  const std::int64_t times =
      schedule::has_blocks(shape.collective) ? 4 * std::int64_t{shape.ranks} : shape.ranks + 3;
  return shape.count * pricing.work.bytes_of_element() > pricing.window_bytes / times;
}

// Whether what one rank has to do by itself, the root if there is one, takes so long already. This
// spares the schedules of the others, and most candidates end here: many of them cut the data into
// more pieces than pay.
bool costs_at_least(double ns, const Algorithm& row, const Parameters& parameters,
                    const Shape& shape, const Pricing& pricing) {
  if (ns == kAnyPrice || one_stands_for_all(row, shape)) return false;
  std::vector<Schedule> one;
  one.push_back(row.build(shape, parameters, shape.root));
  if (!may_need_segments(shape, pricing)) {
    return model::least_ns(one.front(), *pricing.machine, pricing.work, {}, model::Segments::one) >=
           ns;
  }
  const model::Calls calls = calls_of(one, shape, pricing, false);
  if (calls.segments > 1) {
    one.front() = row.build(segment_of(shape, calls.segments), parameters, shape.root);
  }
  return model::least_ns(one.front(), *pricing.machine, pricing.work, calls,
                         model::Segments::as_many_or_more) >= ns;
}

// The price of a legal candidate, if that is below so many.
std::optional<model::Price> price_below(double ns, const Algorithm& row,
                                        const Parameters& parameters, const Shape& shape,
                                        const Pricing& pricing) {
  if (costs_at_least(ns, row, parameters, shape, pricing)) return std::nullopt;
  const auto price = price_of(row, parameters, shape, pricing);
  if (!price || price->ns >= ns) return std::nullopt;
  return *price;
}

// The parameters of a row that are cheapest for `priced`, and below so many ns, if they are legal
// for `shape`.
std::optional<Priced> cheapest_of_row(const Algorithm& row, const Shape& shape, const Shape& priced,
                                      const Pricing& pricing, double most_ns);

// The cheapest row of a part, as the mock-up's parameters say it; whether there is one below so
// many ns.
bool set_cheapest_part(const algorithm::Part& part, const Shape& whole, const Pricing& pricing,
                       double most_ns, Parameters& parameters) {
  const Shape shape = algorithm::shape_of_part(part, whole);
  double least_ns = most_ns;
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    const Algorithm& row = *algorithm::find(part.collective, part.rows[i]);
    const auto cheapest = cheapest_of_row(row, shape, shape, pricing, least_ns);
    if (!cheapest) continue;
    least_ns = cheapest->price.ns;
    algorithm::set_part(part, i, cheapest->parameters, parameters);
  }
  return least_ns < most_ns;
}

// Those worth a price on a machine. A mock-up takes its cheapest parts only, because its price is
// theirs, one after the other. None if a part alone costs so many ns.
std::vector<Parameters> parameters_by_parts(const Algorithm& row, const Shape& shape,
                                            const Pricing& pricing, double most_ns = kAnyPrice) {
  if (row.parts.empty()) return parameters_to_price(row, shape);
  Parameters parameters = algorithm::default_parameters(row, shape);
  for (const algorithm::Part& part : row.parts) {
    if (!set_cheapest_part(part, shape, pricing, most_ns, parameters)) return {};
  }
  return {parameters};
}

// Looks for the parameters of a row that are cheapest for `priced`, if they are legal for `shape`.
class CheapestOfRow {
 public:
  // Below so many ns.
  CheapestOfRow(const Algorithm& row, const Shape& shape, const Shape& priced,
                const Pricing& pricing, double most_ns)
      : row_(row),
        shape_(shape),
        priced_(priced),
        pricing_(pricing),
        most_ns_(most_ns),
        most_of_some_ns_(most_ns) {
    if (!row.parts.empty()) {
      for (const Parameters& each : parameters_by_parts(row, priced, pricing, most_ns)) look(each);
      return;
    }
    const Parameters usual = algorithm::default_parameters(row, priced);
    const auto usual_ns = look(usual);
    for (std::size_t i = 0; i < row.parameters.size(); ++i) compare_values(i, usual, usual_ns);
  }

  const std::optional<Priced>& best() const { return best_; }
  // The same without numbers that stand for all ranks.
  const std::optional<Priced>& best_of_some() const { return best_of_some_; }

 private:
  // If few ranks stand for many: all names, and of numbers those above the usual one and then those
  // below it, until they get dearer. Else all values, and of pieces those until they get dearer.
  void compare_values(std::size_t parameter, const Parameters& usual,
                      std::optional<double> usual_ns) {
    const algorithm::ParameterSpec& spec = row_.parameters[parameter];
    const std::vector<int> values = values_to_price(spec, priced_.ranks);
    const int usual_value = usual.values[parameter];
    const auto go = [&](auto from, auto to, std::optional<double> last_ns, bool stops) {
      int dearer = 0;
      for (; from != to; ++from) {
        Parameters parameters = usual;
        parameters.values[parameter] = *from;
        const auto ns = *from == usual_value ? usual_ns : look(parameters);
        if (!stops || !ns) continue;
        if (last_ns && *ns < *last_ns) dearer = 0;
        if (last_ns && *ns > *last_ns && ++dearer == kDearerInRow) return;
        last_ns = ns;
      }
    };
    if (shape_.ranks <= kRanksOfParameters || !spec.names.empty()) {
      go(values.begin(), values.end(), std::nullopt, spec.is_pieces);
      return;
    }
    const auto above = std::ranges::upper_bound(values, usual_value);
    const auto below = std::make_reverse_iterator(std::ranges::lower_bound(values, usual_value));
    go(above, values.end(), usual_ns, true);
    go(below, values.rend(), usual_ns, true);
  }

  // The price, if it was computed: not if a bound is enough, or if they are not legal.
  std::optional<double> look(const Parameters& parameters) {
    const bool is_of_all = stands_for_all(parameters, row_, priced_.ranks);
    if (!why_not(row_, priced_, parameters).empty() || !why_not(row_, shape_, parameters).empty() ||
        !is_priceable(row_, parameters, priced_) ||
        costs_at_least(is_of_all ? most_ns_ : most_of_some_ns_, row_, parameters, priced_,
                       pricing_)) {
      return std::nullopt;
    }
    const auto price = price_of(row_, parameters, priced_, pricing_);
    if (!price) return std::nullopt;
    const Priced priced{.row = &row_, .parameters = parameters, .price = *price};
    if (price->ns < most_ns_) {
      most_ns_ = price->ns;
      best_ = priced;
    }
    if (!is_of_all && price->ns < most_of_some_ns_) {
      most_of_some_ns_ = price->ns;
      best_of_some_ = priced;
    }
    return price->ns;
  }

  const Algorithm& row_;
  const Shape& shape_;
  const Shape& priced_;
  const Pricing& pricing_;
  double most_ns_, most_of_some_ns_;
  std::optional<Priced> best_, best_of_some_;
};

std::optional<Priced> cheapest_of_row(const Algorithm& row, const Shape& shape, const Shape& priced,
                                      const Pricing& pricing, double most_ns) {
  return CheapestOfRow(row, shape, priced, pricing, most_ns).best();
}

// Whether the schedule of one rank has so few steps that all parameters can be compared.
bool has_few_steps(const Algorithm& row, const Shape& shape) {
  const Schedule any = row.build(shape, algorithm::default_parameters(row, shape), 0);
  return any.ops.size() + any.targets.size() <= kStepsOfParameters;
}

// Whether many ranks may need segments where few do not. Then few say little of the price.
bool many_need_segments(const Shape& shape, const Pricing& pricing) {
  const std::int64_t bytes = shape.count * pricing.work.bytes_of_element();
  return pricing.window_bytes > 0 && shape.ranks > kPricedInFull &&
         bytes > pricing.window_bytes / shape.ranks;
}

// From these prices on, a row is not needed: with all ranks, and with as few as its parameters are
// compared with.
struct Bounds {
  double all_ns = kAnyPrice, few_ns = kAnyPrice;
};

// The cheapest parameters of a row, and their price with all ranks; none, or one. Two where numbers
// that stand for all ranks are the cheapest of few: other numbers may be cheaper for more.
std::vector<Priced> cheapest_of_uniform(const Algorithm& row, const Shape& shape,
                                        const Pricing& pricing, Bounds& bounds) {
  std::vector<Priced> found;
  const bool are_alike = one_stands_for_all(row, shape);
  if (shape.ranks <= kRanksOfParameters || (are_alike && has_few_steps(row, shape))) {
    const auto best = cheapest_of_row(row, shape, shape, pricing, bounds.all_ns);
    if (best) found.push_back(*best);
    return found;
  }
  const Shape few = with_few_ranks(shape, few_of(shape.ranks, kRanksOfParameters));
  const CheapestOfRow of_few(row, shape, few, with_few_ranks(pricing, shape, few.ranks),
                             bounds.few_ns);
  if (!of_few.best()) return found;
  found.push_back(*of_few.best());
  const Priced best = found.front();
  // With more ranks, the longest path grows as their number at most. The work of shared cores grows
  // as that number at least, and as its square at most. So one row grows by no more than that
  // number faster than another.
  const double growth = static_cast<double>(shape.ranks) / few.ranks;
  bounds.few_ns = std::min(bounds.few_ns, best.price.ns * growth);
  const auto& other = of_few.best_of_some();
  if (other && other->parameters != best.parameters) found.push_back(*other);
  for (Priced& each : found) each.parameters = for_all(each.parameters, row, few.ranks, shape);
  if (are_alike) {
    std::erase_if(found, [&](Priced& each) {
      const auto price = price_below(bounds.all_ns, row, each.parameters, shape, pricing);
      if (price) each.price = *price;
      return !price;
    });
    return found;
  }
  for (Priced& each : found) {
    // If other parameters are legal for fewer ranks, the price grows as far as it may.
    const double most_growth = share_cores(shape, pricing) ? growth * growth : growth;
    each.price.ns =
        extrapolated_ns(row, each.parameters, shape, pricing).value_or(each.price.ns * most_growth);
    each.is_estimate = true;
  }
  return found;
}

// Whether schedules of at most so many steps give the price. The root and two others stand for all.
bool has_at_most(std::int64_t most, const Algorithm& row, const Parameters& parameters,
                 const Shape& shape) {
  // Without hosts that are shared, it has the schedules of those that it combines.
  if (row.uses_hosts && are_uniform(shape)) return false;
  const auto steps = [&](int rank) {
    const Schedule schedule = row.build(shape, parameters, rank % shape.ranks);
    return static_cast<std::int64_t>(schedule.ops.size() + schedule.targets.size());
  };
  if (one_stands_for_all(row, shape)) return steps(0) <= most;
  const std::int64_t others = std::max(steps(shape.root + 1), steps(shape.root + shape.ranks / 2));
  return steps(shape.root) + (shape.ranks - 1) * others <= most;
}

// Replaces a price with few ranks; whether there is one.
bool price_in_full(Priced& each, const Shape& few, const Shape& shape, const Pricing& pricing) {
  if (are_uniform(shape) && !each.is_estimate) return true;  // one schedule stood for all
  const std::int64_t most_of_uniform =
      shape.ranks <= kPricedInFull ? kMostStepsOfSome : kMostStepsOfUniform;
  const std::int64_t most = are_uniform(shape) ? most_of_uniform : kMostSteps;
  if (!has_at_most(most, *each.row, each.parameters, shape)) {
    // So many steps are those of ranks that each have to do with all others.
    if (!each.is_estimate) each.price.ns *= static_cast<double>(shape.ranks) / few.ranks;
    each.is_estimate = true;
    return true;
  }
  const auto price = price_of(*each.row, each.parameters, shape, pricing);
  if (!price) return false;
  each.price = *price;
  each.is_estimate = false;
  return true;
}

// Exact rows are candidates of exact shapes only, and no others are.
bool is_offered(const Algorithm& row, const Shape& shape) {
  return row.collective == shape.collective && row.sums_exactly == shape.exact;
}

// Whether a row without hosts is legal and not excluded.
bool has_other_rows(const Shape& shape, const Ruling& ruling) {
  return std::ranges::any_of(algorithm::table(), [&](const Algorithm& other) {
    return is_offered(other, shape) && !other.uses_hosts && ruling.excluded_by(other) == nullptr &&
           why_not(other, shape, algorithm::default_parameters(other, shape)).empty();
  });
}

// So many of each row stay, the first ones, and so many rows.
void leave(std::size_t most_rows, std::size_t most_of_row, std::vector<Priced>& rows) {
  std::vector<const Algorithm*> seen;
  std::erase_if(rows, [&](const Priced& each) {
    const auto of_row = static_cast<std::size_t>(std::ranges::count(seen, each.row));
    const bool is_new = of_row == 0;
    if (is_new && most_rows == 0) return true;
    if (!is_new && of_row >= most_of_row) return true;
    if (is_new) --most_rows;
    seen.push_back(each.row);
    return false;
  });
}

enum class Rows : std::uint8_t { all, cheapest };

// As cheapest_of_rows(). For Rows::cheapest, only the first one has to be that of all rows.
std::vector<Priced> priced_rows(const Shape& shape, Pricing pricing, const Ruling& ruling,
                                Rows wanted) {
  pricing.in_row = false;
  std::vector<Priced> rows;
  const bool is_uniform = are_uniform(shape);
  const Shape few =
      with_few_ranks(shape, is_uniform ? few_of(shape.ranks, kRanksOfParameters) : kPricedInFull);
  const bool is_final = few.ranks == shape.ranks && !many_need_segments(shape, pricing);
  Bounds bounds;
  for (const Algorithm& row : algorithm::table()) {
    if (!is_offered(row, shape) || ruling.excluded_by(row) != nullptr) continue;
    // Without hosts that are shared, such a row has the schedules of those that it combines.
    if (row.uses_hosts && is_uniform && has_other_rows(shape, ruling)) continue;
    if (!is_final) bounds.all_ns = kAnyPrice;
    if (wanted == Rows::all) bounds = {};
    if (is_uniform) {
      std::ranges::move(cheapest_of_uniform(row, shape, pricing, bounds), std::back_inserter(rows));
    } else if (const auto best = cheapest_of_row(row, shape, few, pricing, bounds.all_ns)) {
      rows.push_back(*best);
    }
    for (const Priced& each : rows) bounds.all_ns = std::min(bounds.all_ns, each.price.ns);
  }
  const auto by_price = [](const Priced& each) { return each.price.ns; };
  std::ranges::stable_sort(rows, {}, by_price);
  if (!is_final) {
    const std::size_t most =
        is_uniform && shape.ranks <= kPricedInFull ? kRowsOfSomeRanks : kRowsPricedInFull;
    leave(most, 2, rows);
    if (wanted == Rows::cheapest && is_uniform && rows.size() > 1) {
      const double near = kNear * rows.front().price.ns;
      std::erase_if(rows, [near](const Priced& each) { return each.price.ns > near; });
      if (rows.size() == 1) return rows;
    }
    std::erase_if(rows, [&](Priced& each) { return !price_in_full(each, few, shape, pricing); });
    std::ranges::stable_sort(rows, {}, by_price);
    leave(rows.size(), 1, rows);
  }
  return rows;
}

}  // namespace

bool one_stands_for_all(const Algorithm& row, const Shape& shape) {
  return algorithm::ranks_are_alike(row, shape) &&
         (!shape.hosts.given() || shape.hosts.are_alone());
}

bool is_priceable(const Algorithm& row, const Parameters& parameters, const Shape& shape) {
  return shape.ranks <= kPricedInFull || has_at_most(kMostSteps, row, parameters, shape);
}

Pricing pricing_of(const Shape& shape, const Circumstances& now, EngineKind engine) {
  Pricing pricing;
  pricing.machine = &machine_of(now);
  pricing.window_bytes = now.window_bytes;
  pricing.buffers = now.buffers;
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
  if (shape.hosts.given()) work.shared_cores = now.shared_cores;
  return pricing;
}

std::vector<Parameters> parameters_to_price(const Algorithm& row, const Shape& shape) {
  const Parameters usual = algorithm::default_parameters(row, shape);
  std::vector<Parameters> all = {usual};
  if (!row.parts.empty()) return all;
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
  const auto are_alike = [&] { return std::cmp_less(set.size(), shape.ranks); };
  const model::Calls calls = calls_of(set, shape, pricing, are_alike());
  if (calls.segments > 1) {
    UNISONO_ASSIGN(set, build_for_price(row, parameters, segment_of(shape, calls.segments)));
  }
  // A segment may be such that one stands for all.
  return are_alike() ? model::price_of_alike(set.front(), *pricing.machine, pricing.work, calls)
                     : model::price(set, *pricing.machine, pricing.work, calls);
}

base::Result<std::vector<Priced>> price_candidates(const Shape& shape, const Pricing& pricing) {
  std::vector<Priced> priced;
  for (const Algorithm& row : algorithm::table()) {
    if (!is_offered(row, shape)) continue;
    for (const Parameters& parameters : parameters_by_parts(row, shape, pricing)) {
      if (!why_not(row, shape, parameters).empty() || !is_priceable(row, parameters, shape))
        continue;
      UNISONO_ASSIGN(const model::Price price, price_of(row, parameters, shape, pricing));
      priced.push_back({.row = &row, .parameters = parameters, .price = price});
    }
  }
  std::ranges::stable_sort(priced, {}, [](const Priced& each) { return each.price.ns; });
  return priced;
}

std::vector<Priced> cheapest_of_rows(const Shape& shape, const Pricing& pricing,
                                     const Ruling& ruling) {
  return priced_rows(shape, pricing, ruling, Rows::all);
}

std::optional<Priced> cheapest_candidate(const Shape& shape, const Pricing& pricing,
                                         const Ruling& ruling) {
  auto rows = priced_rows(shape, pricing, ruling, Rows::cheapest);
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

std::vector<Priced> candidates_to_try(const Shape& shape, const Circumstances& now,
                                      const Overrides& overrides, const Choice& choice) {
  if (choice.origin == Origin::override_ || choice.engine == EngineKind::nic || shape.ranks == 1 ||
      shape.blocks.given() || now.local_counts ||
      !is_priceable(*choice.algorithm, choice.parameters, shape)) {
    return {};
  }
  const Pricing pricing = pricing_of(shape, now, choice.engine);
  const auto price = price_of(*choice.algorithm, choice.parameters, shape, pricing);
  if (!price) return {};
  std::vector<Priced> to_try = {
      {.row = choice.algorithm, .parameters = choice.parameters, .price = *price}};
  const Ruling ruling = rule_on(overrides, shape, common_bytes(shape, now));
  for (const Priced& each : cheapest_of_rows(shape, pricing, ruling)) {
    if (to_try.size() == kMostLearned || each.price.ns >= kTimesDearer * price->ns) break;
    if (each.row == choice.algorithm && each.parameters == choice.parameters) continue;
    to_try.push_back(each);
  }
  return to_try;
}

}  // namespace unisono::select

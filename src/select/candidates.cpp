// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "algorithm/mock/slot_counts.hpp"
#include "algorithm/pattern/circulant_turns.hpp"
#include "schedule/spares.hpp"
#include "select/few_ranks.hpp"
#include "select/lesson.hpp"
#include "select/price_book.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Counted;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

// After so many numbers, each dearer than the one before, no further one is priced.
constexpr int kDearerInRow = 2;
// Rows whose estimates are dearer than the cheapest by more than this are not priced in full. If no
// other is left, the cheapest is not either.
constexpr double kNear = 2;
constexpr std::size_t kStepsOfParameters = 128;
// Where hosts have several ranks each, so many rows are priced in full.
constexpr std::size_t kRowsPricedInFull = 2, kRowsOfSomeRanks = 4;
// A set of schedules with more steps is only estimated for a choice if few ranks stand for it.
// Where ranks are alike, that is one schedule.
constexpr std::int64_t kMostStepsOfUniform = 20'000;
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

// Decides when the search among numbers of pieces ends, from the lowest number up. The time is
// about a + b s + c / s for s pieces, and so convex in 1 / s.
class PieceSearch {
 public:
  // turns: of turning pieces, for which only a greater distance counts as clear.
  explicit PieceSearch(bool turns) : turns_(turns) {}

  // Whether none of more pieces than `value` is below `most_ns`, if that many take `ns`.
  bool ends_after(int value, double ns, double most_ns) {
    const double last_ns = std::exchange(last_ns_, ns);
    const int last = std::exchange(last_, value);
    if (last == 0) return false;
    if (ns > last_ns) {
      return ++dearer_ == kDearerInRow || (!turns_ && ns >= most_ns && ns - last_ns > kUneven * ns);
    }
    dearer_ = 0;
    // One piece is a tree, without turns.
    if (turns_ && last == 1) return false;
    const double most_drop = kSafety * (last_ns - ns) * last / (value - last);
    return ns - most_drop - (turns_ ? kUneven * ns : 0) >= most_ns;
  }

 private:
  // Lengths that do not divide evenly, and costs that do not grow evenly, make times differ from
  // that form.
  static constexpr double kSafety = 2, kUneven = 0.05;

  bool turns_;
  int last_ = 0, dearer_ = 0;
  double last_ns_ = 0;
};

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
      for (const Parameters& each : parameters_by_parts(row, priced, pricing, most_ns)) {
        look(each, false);
      }
      return;
    }
    const Parameters usual = algorithm::default_parameters(row, priced);
    if (row.parameters.size() == 1 && !stops_early(row.parameters[0]) &&
        (row.parameters[0].counted == Counted::pieces ||
         (row.parameters[0].counted == Counted::turning_pieces && !priced.hosts.given()))) {
      compare_pieces(usual);
      return;
    }
    const auto usual_ns =
        look(usual, std::ranges::any_of(row.parameters, [&](const algorithm::ParameterSpec& spec) {
               return algorithm::counts_pieces(spec.counted) || stops_early(spec);
             }));
    for (std::size_t i = 0; i < row.parameters.size(); ++i) compare_values(i, usual, usual_ns);
  }

  const std::optional<Priced>& best() const { return best_; }
  // The same without numbers that stand for all ranks.
  const std::optional<Priced>& best_of_some() const { return best_of_some_; }

 private:
  // Whether few ranks stand for many, and the search among a parameter's numbers may end early.
  bool stops_early(const algorithm::ParameterSpec& spec) const {
    return shape_.ranks > kRanksOfParameters && spec.names.empty();
  }

  // Prices numbers of pieces from the lowest up. It ends once no greater number can be cheaper than
  // the cheapest so far.
  void compare_pieces(const Parameters& usual) {
    const bool turns = row_.parameters[0].counted == Counted::turning_pieces;
    if (turns) look(usual, true);
    PieceSearch search(turns);
    for (const int value : values_to_price(row_.parameters[0], priced_.ranks)) {
      Parameters parameters = usual;
      parameters.values[0] = value;
      const auto ns = look(parameters, true);
      if (ns && search.ends_after(value, *ns, most_ns_)) break;
    }
    // Among equal ones the usual one wins.
    if (best_ && best_->parameters != usual && look(usual, true) == best_->price.ns) {
      best_->parameters = usual;
      best_of_some_ = best_;
    }
  }

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
        // If it is dearer than the last one, too, it only matters whether it is the cheapest.
        const bool is_last_look = stops && last_ns && dearer + 1 == kDearerInRow;
        const double most_ns = is_last_look
                                   ? std::max(std::nextafter(*last_ns, kAnyPrice), most_of_some_ns_)
                                   : kAnyPrice;
        bool is_above = false;
        const auto ns =
            *from == usual_value ? usual_ns : look(parameters, stops, most_ns, &is_above);
        if (is_above) return;
        if (!stops || !ns) continue;
        if (last_ns && *ns < *last_ns) dearer = 0;
        if (last_ns && *ns > *last_ns && ++dearer == kDearerInRow) return;
        last_ns = ns;
      }
    };
    if (!stops_early(spec)) {
      go(values.begin(), values.end(), std::nullopt, algorithm::counts_pieces(spec.counted));
      return;
    }
    const auto above = std::ranges::upper_bound(values, usual_value);
    const auto below = std::make_reverse_iterator(std::ranges::lower_bound(values, usual_value));
    if (!are_worse_above(parameter, usual, usual_ns, below, values.rend())) {
      go(above, values.end(), usual_ns, true);
    }
    go(below, values.rend(), usual_ns, true);
  }

  // Whether one piece less is cheaper. The price has one minimum over their number, and the many
  // pieces above the usual number cost the most time to price.
  template <class Below>
  bool are_worse_above(std::size_t parameter, const Parameters& usual,
                       std::optional<double> usual_ns, Below below, Below end) {
    if (row_.parameters[parameter].counted != Counted::pieces || below == end) return false;
    Parameters fewer = usual;
    fewer.values[parameter] = *below;
    const auto fewer_ns = look(fewer, true);
    return fewer_ns && usual_ns && *fewer_ns < *usual_ns;
  }

  // The nanoseconds, if they were computed: not if a bound is enough, or if they are not legal.
  // is_compared: a bound is enough only if one rank alone gives it, or if it is `most_compared`;
  // is_above says that it was this one.
  std::optional<double> look(const Parameters& parameters, bool is_compared,
                             double most_compared = kAnyPrice, bool* is_above = nullptr) {
    const bool is_of_all = stands_for_all(parameters, row_, priced_.ranks);
    const double most_ns = is_of_all ? most_ns_ : most_of_some_ns_;
    PriceBook& book = *pricing_.book;
    if (!can_do(row_, priced_, parameters) || !can_do(row_, shape_, parameters) ||
        !is_priceable(row_, parameters, priced_) ||
        book.costs_at_least(most_ns, row_, parameters, priced_, pricing_)) {
      return std::nullopt;
    }
    const auto ns =
        book.ns_below(is_compared ? most_compared : most_ns, row_, parameters, priced_, pricing_);
    if (!ns && is_compared && is_above != nullptr) *is_above = true;
    if (!ns) return std::nullopt;
    Priced priced{.row = &row_, .parameters = parameters, .price = {}};
    priced.price.ns = *ns;
    if (*ns < most_ns_) {
      most_ns_ = *ns;
      best_ = priced;
    }
    if (!is_of_all && *ns < most_of_some_ns_) {
      most_of_some_ns_ = *ns;
      best_of_some_ = priced;
    }
    return ns;
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
// More ranks do not have fewer steps, and so few ranks say no at less cost.
bool has_few_steps(const Algorithm& row, const Shape& shape, PriceBook& book) {
  const auto has_few = [&](const Shape& of) {
    const Parameters usual = algorithm::default_parameters(row, of);
    return !can_do(row, of, usual) || book.steps_of_one(row, usual, of) <= kStepsOfParameters;
  };
  const bool is_few = shape.ranks <= kPricedInFull;
  return (is_few || has_few(with_few_ranks(shape, kPricedInFull))) && has_few(shape);
}

// Whether many ranks may need segments where few do not. Then few say little of the price.
bool many_need_segments(const Shape& shape, const Pricing& pricing) {
  const std::int64_t bytes = shape.count * pricing.work.bytes_of_element();
  return pricing.receive_buffer_bytes > 0 && shape.ranks > kPricedInFull &&
         bytes > pricing.receive_buffer_bytes / shape.ranks;
}

// From these prices on, a row is not needed: with all ranks, and with as few as its parameters are
// compared with. Nor is it if its estimate is above the last one.
struct Bounds {
  double all_ns = kAnyPrice, few_ns = kAnyPrice, estimate_ns = kAnyPrice;
  bool excludes_estimates = false;  // there was such a one
};

// The cheapest parameters of a row, and their price with all ranks; none, or one. Two where numbers
// that stand for all ranks are the cheapest of few: other numbers may be cheaper for more.
std::vector<Priced> cheapest_of_uniform(const Algorithm& row, const Shape& shape,
                                        const Pricing& pricing, Bounds& bounds) {
  std::vector<Priced> found;
  const bool are_alike = one_stands_for_all(row, shape);
  if (shape.ranks <= kRanksOfParameters ||
      (are_alike && has_few_steps(row, shape, *pricing.book))) {
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
      const auto ns = pricing.book->ns_below(bounds.all_ns, row, each.parameters, shape, pricing);
      if (ns) each.price.ns = *ns;
      return !ns;
    });
    return found;
  }
  for (Priced& each : found) {
    // If other parameters are legal for fewer ranks, the price grows as far as it may.
    const double most_growth = share_cores(shape, pricing) ? growth * growth : growth;
    each.price.ns = extrapolated_ns(row, each.parameters, shape, pricing, bounds.estimate_ns)
                        .value_or(each.price.ns * most_growth);
    each.is_estimate = true;
  }
  if (std::erase_if(found, [](const Priced& each) { return each.price.ns == kAnyPrice; }) > 0) {
    bounds.excludes_estimates = true;
  }
  return found;
}

// Replaces a price with few ranks; whether there is one, below so many ns.
bool price_in_full(Priced& each, const Shape& few, const Shape& shape, const Pricing& pricing,
                   double most_ns) {
  if (are_uniform(shape) && !each.is_estimate) return true;  // one schedule stood for all
  const std::int64_t most_of_uniform =
      shape.ranks <= kPricedInFull ? kMostStepsOfSome : kMostStepsOfUniform;
  const std::int64_t most = are_uniform(shape) ? most_of_uniform : kMostSteps;
  PriceBook& book = *pricing.book;
  if (!book.has_at_most(most, *each.row, each.parameters, shape)) {
    // So many steps are those of ranks that each have to do with all others.
    if (!each.is_estimate) each.price.ns *= static_cast<double>(shape.ranks) / few.ranks;
    each.is_estimate = true;
    return true;
  }
  if (book.costs_at_least(most_ns, *each.row, each.parameters, shape, pricing)) return false;
  const auto ns = book.ns_below(most_ns, *each.row, each.parameters, shape, pricing);
  if (!ns) return false;
  each.price.ns = *ns;
  each.is_estimate = false;
  return true;
}

// Exact rows are candidates of exact shapes only, and no others are. Rows made for shapes `by_one`
// are none of other shapes.
bool is_candidate(const Algorithm& row, const Shape& shape) {
  return row.collective == shape.collective && row.sums_exactly == shape.exact &&
         (shape.by_one || !row.only_for_by_one);
}

// Whether a row without hosts is legal and not excluded.
bool has_other_rows(const Shape& shape, const Ruling& ruling) {
  return std::ranges::any_of(algorithm::table(), [&](const Algorithm& other) {
    return is_candidate(other, shape) && !other.uses_hosts &&
           ruling.excluded_by(other) == nullptr &&
           can_do(other, shape, algorithm::default_parameters(other, shape));
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

// Parameters that do the same have one price.
struct PriceOfEffective {
  Parameters parameters;
  std::optional<model::Price> price;
};

enum class Rows : std::uint8_t { all, cheapest };

// As cheapest_of_rows(). For Rows::cheapest, only the first one has to be that of all rows.
std::vector<Priced> priced_rows(const Shape& shape, Pricing pricing, const Ruling& ruling,
                                Rows wanted) {
  PriceBook book(pricing);
  pricing.in_row = false;
  pricing.book = &book;
  std::vector<Priced> rows;
  const bool is_uniform = are_uniform(shape);
  const Shape few =
      with_few_ranks(shape, is_uniform ? few_of(shape.ranks, kRanksOfParameters) : kPricedInFull);
  const bool is_final = few.ranks == shape.ranks && !many_need_segments(shape, pricing);
  Bounds bounds;
  for (const Algorithm& row : algorithm::table()) {
    if (!is_candidate(row, shape) || ruling.excluded_by(row) != nullptr) continue;
    // Without hosts that are shared, such a row has the schedules of those that it combines.
    if (row.uses_hosts && is_uniform && has_other_rows(shape, ruling)) continue;
    if (!is_final) bounds.all_ns = kAnyPrice;
    if (wanted == Rows::all) bounds = {};
    if (is_uniform) {
      std::ranges::move(cheapest_of_uniform(row, shape, pricing, bounds), std::back_inserter(rows));
    } else if (const auto best = cheapest_of_row(row, shape, few, pricing, bounds.all_ns)) {
      rows.push_back(*best);
    }
    for (const Priced& each : rows) {
      bounds.all_ns = std::min(bounds.all_ns, each.price.ns);
      if (!pricing.in_full)
        bounds.estimate_ns = std::min(bounds.estimate_ns, kNear * each.price.ns);
    }
  }
  const auto by_price = [](const Priced& each) { return each.price.ns; };
  std::ranges::stable_sort(rows, {}, by_price);
  if (!is_final) {
    const std::size_t most =
        is_uniform && shape.ranks <= kPricedInFull ? kRowsOfSomeRanks : kRowsPricedInFull;
    leave(most, 2, rows);
    if (wanted == Rows::cheapest && is_uniform && (rows.size() > 1 || bounds.excludes_estimates)) {
      const double near = kNear * rows.front().price.ns;
      std::erase_if(rows, [near](const Priced& each) { return each.price.ns > near; });
      if (rows.size() == 1) return rows;
    }
    double most_ns = kAnyPrice;
    std::erase_if(rows, [&](Priced& each) {
      if (!price_in_full(each, few, shape, pricing, most_ns)) return true;
      const bool is_enough = wanted == Rows::cheapest && !pricing.in_full;
      if (is_enough) most_ns = std::min(most_ns, each.price.ns);
      return false;
    });
    std::ranges::stable_sort(rows, {}, by_price);
    leave(rows.size(), 1, rows);
  }
  return rows;
}

}  // namespace

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

base::Result<std::vector<Priced>> price_candidates(const Shape& shape, const Pricing& given) {
  PriceBook book(given);
  Pricing pricing = given;
  pricing.book = &book;
  schedule::Spares spares;
  const schedule::Spares::Use use_spares(spares, order_of(pricing));
  algorithm::pattern::CirculantTurns turns;
  const algorithm::pattern::CirculantTurns::Use use_turns(turns);
  algorithm::mock::SlotCounts slots;
  const algorithm::mock::SlotCounts::Use use_slots(slots);
  model::Pricer pricer(*pricing.machine, pricing.work, shape);
  std::vector<Priced> priced;
  for (const Algorithm& row : algorithm::table()) {
    if (!is_candidate(row, shape)) continue;
    std::vector<PriceOfEffective> of_row;
    for (const Parameters& parameters : parameters_by_parts(row, shape, pricing)) {
      if (!can_do(row, shape, parameters)) continue;
      const Parameters effective = algorithm::effective_parameters(row, shape, parameters);
      auto known = std::ranges::find(of_row, effective, &PriceOfEffective::parameters);
      if (known == of_row.end()) {
        const auto price = price_if_priceable(row, effective, shape, pricing, pricer);
        known = of_row.insert(known, {.parameters = effective, .price = price});
      }
      const auto& price = known->price;
      if (price) priced.push_back({.row = &row, .parameters = parameters, .price = *price});
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

Parameters with_cheapest(const Algorithm& row, const Shape& shape, const Pricing& given) {
  Parameters best = algorithm::default_parameters(row, shape);
  if (shape.ranks > kPricedInFull) return best;
  PriceBook book(given);
  Pricing pricing = given;
  pricing.in_row = false;
  pricing.book = &book;
  double least_ns = book.ns_below(kAnyPrice, row, best, shape, pricing).value_or(kAnyPrice);
  const algorithm::ParameterSpec& spec = row.parameters[0];
  const int high = spec.high == 0 ? std::max(spec.low, shape.ranks) : spec.high;
  Parameters parameters = best;
  for (int& value = parameters.values[0] = spec.low; value <= high; ++value) {
    if (!can_do(row, shape, parameters) ||
        book.costs_at_least(least_ns, row, parameters, shape, pricing)) {
      continue;
    }
    const auto ns = book.ns_below(least_ns, row, parameters, shape, pricing);
    if (!ns) continue;
    least_ns = *ns;
    best = parameters;
  }
  return best;
}

std::vector<Priced> candidates_to_try(const Shape& shape, const Circumstances& now,
                                      const Overrides& overrides, const Choice& choice) {
  if (choice.origin == Origin::override_ || choice.engine == EngineKind::nic || shape.ranks == 1 ||
      shape.blocks.given() || now.local_counts) {
    return {};
  }
  const Pricing pricing = pricing_of(shape, now, choice.engine);
  const auto price = price_if_priceable(*choice.algorithm, choice.parameters, shape, pricing);
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

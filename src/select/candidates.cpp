// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "select/lesson.hpp"
#include "select/select.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Schedule;
using schedule::Shape;

// Each of the degrees up to this one is priced: the best ones of the papers' machines are below.
constexpr int kEachUpTo = 8;
constexpr double kAnyPrice = std::numeric_limits<double>::infinity();
// A choice compares all candidates of so many ranks. If there are more, it compares the parameters
// of a row with so many, and extrapolates the prices of rows.
constexpr int kRanksOfParameters = 16;
// With so many ranks, the cheapest rows are priced in full: more of them than of more ranks. Hosts
// with several ranks are compared with so many.
constexpr int kPricedInFull = 64;
// After so many numbers of pieces, each dearer than the one before, no greater number is priced.
constexpr int kDearerPieces = 2;
constexpr std::size_t kStepsOfParameters = 128;
// Where hosts have several ranks each, the few ranks have so many of a host. Then so many rows are
// priced in full.
constexpr int kFewOfHost = 8;
constexpr std::size_t kRowsPricedInFull = 2, kRowsOfSomeRanks = 3;
// A set of schedules with more steps is not priced, or only estimated for a choice if few ranks
// stand for it. Where ranks are alike, that is one schedule.
constexpr std::int64_t kMostSteps = 200'000, kMostStepsOfUniform = 20'000;

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

// So many of the ranks, or fewer; up to some of each of some hosts.
Shape with_few_ranks(Shape shape, int few) {
  if (shape.ranks <= few) return shape;
  const topology::HostMap all = shape.hosts;
  shape.ranks = few;
  if (all.given()) {
    const int of_host = std::min(kFewOfHost, static_cast<int>(all.members(0).size()));
    std::vector<int> labels;
    for (int rank = 0; rank < all.ranks(); ++rank) {
      if (all.of(rank) >= few / of_host || all.place(rank) >= of_host) continue;
      labels.push_back(all.of(rank));
    }
    shape.ranks = static_cast<int>(labels.size());
    shape.hosts = topology::HostMap::of_labels(labels);
  }
  shape.root = std::min(shape.root, shape.ranks - 1);
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
      : row_(row), shape_(shape), priced_(priced), pricing_(pricing), most_ns_(most_ns) {
    if (!row.parts.empty()) {
      for (const Parameters& each : parameters_by_parts(row, priced, pricing, most_ns)) look(each);
      return;
    }
    const Parameters usual = algorithm::default_parameters(row, priced);
    const auto usual_ns = look(usual);
    for (std::size_t i = 0; i < row.parameters.size(); ++i) compare_values(i, usual, usual_ns);
  }

  const std::optional<Priced>& best() const { return best_; }

 private:
  void compare_values(std::size_t parameter, const Parameters& usual,
                      std::optional<double> usual_ns) {
    const algorithm::ParameterSpec& spec = row_.parameters[parameter];
    std::optional<double> last_ns;
    int dearer = 0;
    for (const int value : values_to_price(spec, priced_.ranks)) {
      Parameters parameters = usual;
      parameters.values[parameter] = value;
      const auto ns = parameters == usual ? usual_ns : look(parameters);
      if (!spec.is_pieces || !ns) continue;
      if (last_ns && *ns < *last_ns) dearer = 0;
      if (last_ns && *ns > *last_ns && ++dearer == kDearerPieces) return;
      last_ns = ns;
    }
  }

  // The price, if it was computed: not if a bound is enough, or if they are not legal.
  std::optional<double> look(const Parameters& parameters) {
    if (!why_not(row_, priced_, parameters).empty() || !why_not(row_, shape_, parameters).empty() ||
        !is_priceable(row_, parameters, priced_) ||
        costs_at_least(most_ns_, row_, parameters, priced_, pricing_)) {
      return std::nullopt;
    }
    const auto price = price_of(row_, parameters, priced_, pricing_);
    if (!price) return std::nullopt;
    if (price->ns < most_ns_) {
      most_ns_ = price->ns;
      best_ = Priced{.row = &row_, .parameters = parameters, .price = *price};
    }
    return price->ns;
  }

  const Algorithm& row_;
  const Shape& shape_;
  const Shape& priced_;
  const Pricing& pricing_;
  double most_ns_;
  std::optional<Priced> best_;
};

std::optional<Priced> cheapest_of_row(const Algorithm& row, const Shape& shape, const Shape& priced,
                                      const Pricing& pricing, double most_ns) {
  return CheapestOfRow(row, shape, priced, pricing, most_ns).best();
}

bool share_cores(const Shape& shape, const Pricing& pricing) {
  return pricing.work.cores > 0 && pricing.work.cores < shape.ranks;
}

// Where fewer ranks stand for many that share cores, they have to share them, too.
Pricing with_few_ranks(Pricing pricing, const Shape& shape, int few) {
  int& cores = pricing.work.cores;
  if (!share_cores(shape, pricing) || cores < few) return pricing;
  cores = std::max(1, static_cast<int>(std::int64_t{few} * cores / shape.ranks));
  return pricing;
}

// Extrapolates through the prices with a quarter, half and all of a few ranks. If each rank has a
// core, that is by a + b log P + c P. Trees and rounds take the second term; ranks that have to do
// with all others take the third. Ranks that share cores add up their work: a + b P + c P^2.
std::optional<double> extrapolated_ns(const Algorithm& row, const Parameters& parameters,
                                      const Shape& shape, const Pricing& pricing) {
  // Far from the few, small errors grow.
  const int last = shape.ranks <= kPricedInFull ? kRanksOfParameters : kPricedInFull;
  std::array<double, 3> ns{};
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const Shape few = with_few_ranks(shape, last >> (2 - i));
    if (!why_not(row, few, parameters).empty()) return std::nullopt;
    const auto price = price_of(row, parameters, few, with_few_ranks(pricing, shape, few.ranks));
    if (!price) return std::nullopt;
    ns[i] = price->ns;
  }
  const double most = last, ranks = shape.ranks, first = ns[1] - ns[0], second = ns[2] - ns[1];
  if (share_cores(shape, pricing)) {
    // The differences are b P/4 + 3 c P^2/16 and b P/2 + 3 c P^2/4, P the greatest number.
    const double of_square = std::max(0.0, (second - 2 * first) / (3 * most * most / 8));
    const double of_rank = std::max(0.0, (second - of_square * 3 * most * most / 4) / (most / 2));
    return ns[2] + of_rank * (ranks - most) + of_square * (ranks * ranks - most * most);
  }
  // They are b + c P/4 and b + c P/2.
  const double of_rank = std::max(0.0, (second - first) / (most / 4));
  const double of_doubling = std::max(0.0, second - of_rank * (most / 2));
  double doublings = 0;
  for (std::int64_t number = last; number < shape.ranks; number *= 2) ++doublings;
  return ns[2] + of_doubling * doublings + of_rank * (ranks - most);
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

// The cheapest parameters of a row, and their price with all ranks.
std::optional<Priced> cheapest_of_uniform(const Algorithm& row, const Shape& shape,
                                          const Pricing& pricing, Bounds& bounds) {
  const bool are_alike = one_stands_for_all(row, shape);
  if (shape.ranks <= kRanksOfParameters || (are_alike && has_few_steps(row, shape))) {
    return cheapest_of_row(row, shape, shape, pricing, bounds.all_ns);
  }
  const Shape few = with_few_ranks(shape, kRanksOfParameters);
  auto best =
      cheapest_of_row(row, shape, few, with_few_ranks(pricing, shape, few.ranks), bounds.few_ns);
  if (!best) return best;
  // With more ranks, the longest path grows as their number at most, and the work of a host as its
  // square.
  double growth = static_cast<double>(shape.ranks) / few.ranks;
  if (share_cores(shape, pricing)) growth *= growth;
  bounds.few_ns = std::min(bounds.few_ns, best->price.ns * growth);
  if (are_alike) {
    const auto price = price_below(bounds.all_ns, row, best->parameters, shape, pricing);
    if (!price) return std::nullopt;
    best->price = *price;
    return best;
  }
  const auto ns = extrapolated_ns(row, best->parameters, shape, pricing);
  // Without it, the price grows as that of ranks that have to do with all others.
  best->price.ns = ns.value_or(best->price.ns * shape.ranks / few.ranks);
  best->is_estimate = true;
  return best;
}

// Whether schedules of at most so many steps give the price. The root and two others stand for all.
bool has_at_most(std::int64_t most, const Algorithm& row, const Parameters& parameters,
                 const Shape& shape) {
  if (shape.ranks <= kPricedInFull) return true;
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
  const std::int64_t most = are_uniform(shape) ? kMostStepsOfUniform : kMostSteps;
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

enum class Rows : std::uint8_t { all, cheapest };

// As cheapest_of_rows(). For Rows::cheapest, only the first one has to be that of all rows.
std::vector<Priced> priced_rows(const Shape& shape, Pricing pricing, const Ruling& ruling,
                                Rows wanted) {
  pricing.in_row = false;
  std::vector<Priced> rows;
  const bool is_uniform = are_uniform(shape);
  const Shape few = with_few_ranks(shape, is_uniform ? kRanksOfParameters : kPricedInFull);
  const bool is_final = few.ranks == shape.ranks && !many_need_segments(shape, pricing);
  Bounds bounds;
  for (const Algorithm& row : algorithm::table()) {
    if (!is_offered(row, shape) || ruling.excluded_by(row) != nullptr) continue;
    // Without hosts that are shared, such a row has the schedules of those that it combines.
    if (row.uses_hosts && is_uniform && has_other_rows(shape, ruling)) continue;
    if (!is_final) bounds.all_ns = kAnyPrice;
    if (wanted == Rows::all) bounds = {};
    const auto cheapest = is_uniform ? cheapest_of_uniform(row, shape, pricing, bounds)
                                     : cheapest_of_row(row, shape, few, pricing, bounds.all_ns);
    if (!cheapest) continue;
    rows.push_back(*cheapest);
    bounds.all_ns = std::min(bounds.all_ns, cheapest->price.ns);
  }
  const auto by_price = [](const Priced& each) { return each.price.ns; };
  std::ranges::stable_sort(rows, {}, by_price);
  if (!is_final) {
    const std::size_t most =
        is_uniform && shape.ranks <= kPricedInFull ? kRowsOfSomeRanks : kRowsPricedInFull;
    if (rows.size() > most) rows.resize(most);
    std::erase_if(rows, [&](Priced& each) { return !price_in_full(each, few, shape, pricing); });
    std::ranges::stable_sort(rows, {}, by_price);
  }
  return rows;
}

}  // namespace

bool one_stands_for_all(const Algorithm& row, const Shape& shape) {
  return algorithm::ranks_are_alike(row, shape) &&
         (!shape.hosts.given() || shape.hosts.are_alone());
}

bool is_priceable(const Algorithm& row, const Parameters& parameters, const Shape& shape) {
  return has_at_most(kMostSteps, row, parameters, shape);
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

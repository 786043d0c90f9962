// SPDX-License-Identifier: BSD-3-Clause
#include "select/few_ranks.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "select/override.hpp"
#include "select/price_book.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Shape;

// Where hosts have several ranks each, the few ranks have so many of a host.
constexpr int kFewOfHost = 8;

// The parameter of a row or, for a mock-up, of the row that does the part.
const algorithm::ParameterSpec& spec_of(const Algorithm& row, const Parameters& parameters,
                                        std::size_t number) {
  for (const algorithm::Part& part : row.parts) {
    if (number <= part.first || number > part.first + algorithm::kParametersOfPart) continue;
    const Algorithm& own = algorithm::row_of_part(part, parameters);
    const std::size_t of_own = number - part.first - 1;
    if (of_own < own.parameters.size()) return own.parameters[of_own];
  }
  return row.parameters[number];
}

// Whether it may count ranks, as the degree of a tree does: it is neither a choice nor pieces.
bool counts_ranks(const algorithm::ParameterSpec& spec) {
  return spec.names.empty() && !algorithm::counts_pieces(spec.counted);
}

bool is_number_of_all(const Algorithm& row, const Parameters& parameters, std::size_t number,
                      int ranks) {
  return ranks > kEachUpTo && parameters.values[number] == ranks &&
         counts_ranks(spec_of(row, parameters, number));
}

// The cores that ranks share: those of their host, or of the machine that all hosts are on.
int& cores_of(Pricing& pricing, const Shape& shape) {
  return shape.hosts.given() ? pricing.work.shared_cores : pricing.work.cores;
}
int cores_of(const Pricing& pricing, const Shape& shape) {
  return shape.hosts.given() ? pricing.work.shared_cores : pricing.work.cores;
}

// The parameters of all ranks for few; nullopt if none like them are legal.
std::optional<Parameters> for_few(Parameters parameters, const Algorithm& row, const Shape& few) {
  if (can_do(row, few, parameters)) return parameters;
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    int& value = parameters.values[i];
    if (counts_ranks(spec_of(row, parameters, i))) value = std::min(value, few.ranks);
  }
  if (!can_do(row, few, parameters)) return std::nullopt;
  return parameters;
}

// A quarter, half and all of a few ranks, with which a candidate is priced for more.
struct Few {
  Shape shape;
  Parameters parameters;
};
using Fews = std::array<Few, 3>;

// nullopt if the row has none like these parameters for so few.
std::optional<Fews> fews_of(const Algorithm& row, const Parameters& parameters, const Shape& shape,
                            int most) {
  Fews fews;
  for (std::size_t i = 0; i < fews.size(); ++i) {
    fews[i].shape = with_few_ranks(shape, most >> (2 - i));
    const auto some = for_few(parameters, row, fews[i].shape);
    if (!some) return std::nullopt;
    fews[i].parameters = *some;
  }
  return fews;
}

// The prices with few ranks, by which that of more is extrapolated.
class Extrapolation {
 public:
  // `cores`: of so many ranks. nullopt if the price of the most of them is above `most_ns`. The
  // extrapolated price is above it then, too.
  static std::optional<Extrapolation> of(const Algorithm& row, const Fews& fews, int ranks,
                                         Pricing pricing, double most_ns,
                                         const std::function<int(int)>& cores) {
    // Sums of other order round otherwise.
    constexpr double kRounding = 1 + 1e-9;
    Extrapolation found(fews.back().shape.ranks, ranks);
    for (std::size_t i = fews.size(); i-- > 0;) {
      const Few& few = fews[i];
      cores_of(pricing, few.shape) = cores(few.shape.ranks);
      const double most_of_few = i + 1 == fews.size() ? most_ns * kRounding : kAnyPrice;
      if (pricing.book->costs_at_least(most_of_few, row, few.parameters, few.shape, pricing)) {
        return std::nullopt;
      }
      const auto ns = pricing.book->ns_below(most_of_few, row, few.parameters, few.shape, pricing);
      if (!ns) return std::nullopt;
      found.ns_[i] = *ns;
    }
    return found;
  }

  // By a + b log P + c P. Trees and rounds take the second term; ranks that have to do with all
  // others take the third.
  double of_path() const {
    // The differences are b + c P/4 and b + c P/2, P the greatest number of few.
    const double of_rank = std::max(0.0, (second() - first()) / (most_ / 4));
    const double of_doubling = std::max(0.0, second() - of_rank * (most_ / 2));
    double doublings = 0;
    for (double number = most_; number < ranks_; number *= 2) ++doublings;
    return ns_[2] + of_doubling * doublings + of_rank * (ranks_ - most_);
  }
  // The work of all adds up: by a + b P + c P^2.
  double of_work() const {
    // The differences are b P/4 + 3 c P^2/16 and b P/2 + 3 c P^2/4.
    const double of_square = std::max(0.0, (second() - 2 * first()) / (3 * most_ * most_ / 8));
    const double of_rank =
        std::max(0.0, (second() - of_square * 3 * most_ * most_ / 4) / (most_ / 2));
    return ns_[2] + of_rank * (ranks_ - most_) + of_square * (ranks_ * ranks_ - most_ * most_);
  }

 private:
  Extrapolation(int most, int ranks) : most_(most), ranks_(ranks) {}
  double first() const { return ns_[1] - ns_[0]; }
  double second() const { return ns_[2] - ns_[1]; }

  double most_, ranks_;
  std::array<double, 3> ns_{};
};

}  // namespace

int few_of(int ranks, int most) {
  std::int64_t halves = 1;
  while (ranks > most * halves) halves *= 2;
  return static_cast<int>((ranks + 4 * halves - 1) / (4 * halves) * 4);
}

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

bool share_cores(const Shape& shape, const Pricing& pricing) {
  const int cores = cores_of(pricing, shape);
  return cores > 0 && cores < shape.ranks;
}

Pricing with_few_ranks(Pricing pricing, const Shape& shape, int few) {
  int& cores = cores_of(pricing, shape);
  if (!share_cores(shape, pricing) || cores < few) return pricing;
  cores = std::max(1, static_cast<int>(std::int64_t{few} * cores / shape.ranks));
  return pricing;
}

bool stands_for_all(const Parameters& parameters, const Algorithm& row, int ranks) {
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    if (is_number_of_all(row, parameters, i, ranks)) return true;
  }
  return false;
}

Parameters for_all(const Parameters& parameters, const Algorithm& row, int few,
                   const Shape& shape) {
  Parameters scaled = parameters;
  for (std::size_t i = 0; i < row.parameters.size(); ++i) {
    if (is_number_of_all(row, parameters, i, few)) scaled.values[i] = shape.ranks;
  }
  return can_do(row, shape, scaled) ? scaled : parameters;
}

// On shared cores, the longest path takes one, and all take the rest of the work.
std::optional<double> extrapolated_ns(const Algorithm& row, const Parameters& parameters,
                                      const Shape& shape, const Pricing& given, double most_ns) {
  PriceBook own_book(given);
  Pricing pricing = given;
  if (pricing.book == nullptr) pricing.book = &own_book;
  // Far from the few, small errors grow.
  const int most =
      shape.ranks <= kPricedInFull ? few_of(shape.ranks, kRanksOfParameters) : kPricedInFull;
  const auto fews = fews_of(row, parameters, shape, most);
  if (!fews) return std::nullopt;
  const bool shares = share_cores(shape, pricing);
  // Where a wait hands the core over, it does so on the path, too.
  const bool hands_over = shares && pricing.work.engine != model::Engine::helping;
  const int own_cores = shape.hosts.given() ? 0 : 1;  // of each rank; 0: not shared
  const auto apart = Extrapolation::of(row, *fews, shape.ranks, pricing, most_ns, [&](int ranks) {
    return hands_over ? ranks - 1 : own_cores * ranks;
  });
  if (!apart) return kAnyPrice;
  const auto if_near = [most_ns](double ns) { return ns > most_ns ? kAnyPrice : ns; };
  if (!shares) return if_near(apart->of_path());
  const int cores = cores_of(pricing, shape);
  const auto on_one =
      Extrapolation::of(row, *fews, shape.ranks, pricing, most_ns * cores, [](int) { return 1; });
  if (!on_one) return kAnyPrice;
  const double path = apart->of_path();
  return if_near(path + std::max(0.0, on_one->of_work() - path) / cores);
}

}  // namespace unisono::select

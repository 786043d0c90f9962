// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "select/override.hpp"

namespace unisono::select {
namespace {

using algorithm::Algorithm;
using algorithm::Parameters;
using schedule::Shape;

// Each of the degrees up to this one is priced: the best ones of the papers' machines are below.
constexpr int kEachUpTo = 8;

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

// Where one rank's schedule stands for all, as price_of_alike() wants it.
bool one_stands_for_all(const Algorithm& row, const Shape& shape) {
  return algorithm::ranks_are_alike(row, shape) &&
         (!shape.hosts.given() || shape.hosts.are_alone());
}

}  // namespace

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
                                    const Shape& shape, const model::Machine& machine,
                                    const model::Work& work) {
  std::vector<schedule::Schedule> set;
  const int built = one_stands_for_all(row, shape) ? 1 : shape.ranks;
  set.reserve(static_cast<std::size_t>(built));
  for (int rank = 0; rank < built; ++rank) {
    UNISONO_ASSIGN(schedule::Schedule one, algorithm::build(row, shape, parameters, rank));
    set.push_back(std::move(one));
  }
  return built < shape.ranks ? model::price_of_alike(set.front(), machine, work)
                             : model::price(set, machine, work);
}

base::Result<std::vector<Priced>> price_candidates(const Shape& shape,
                                                   const model::Machine& machine,
                                                   const model::Work& work) {
  std::vector<Priced> priced;
  for (const Algorithm& row : algorithm::table()) {
    if (row.collective != shape.collective) continue;
    for (const Parameters& parameters : parameters_to_price(row, shape)) {
      if (!why_not(row, shape, parameters).empty()) continue;
      UNISONO_ASSIGN(const model::Price price, price_of(row, parameters, shape, machine, work));
      priced.push_back({.row = &row, .parameters = parameters, .price = price});
    }
  }
  std::ranges::stable_sort(priced, {}, [](const Priced& each) { return each.price.ns; });
  return priced;
}

}  // namespace unisono::select

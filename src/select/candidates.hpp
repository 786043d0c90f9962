// SPDX-License-Identifier: BSD-3-Clause
// The candidates of a call, each an algorithm with parameters, by their price on a machine
// (model/price.hpp). Prices of the same machine file and shape are the same on all ranks: they come
// from sums, products and quotients only, which processors round alike. Pure; any thread.
#pragma once

#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"
#include "model/price.hpp"

namespace unisono::select {

// The values that are worth a price: the usual ones first, then those that differ in one parameter.
// They are all choices, and of numbers the small ones, powers of two and the largest. Legal or not.
std::vector<algorithm::Parameters> parameters_to_price(const algorithm::Algorithm& row,
                                                       const schedule::Shape& shape);

// The candidate has to be legal. It builds one schedule where one stands for all, or else those of
// all ranks.
base::Result<model::Price> price_of(const algorithm::Algorithm& row,
                                    const algorithm::Parameters& parameters,
                                    const schedule::Shape& shape, const model::Machine& machine,
                                    const model::Work& work);

struct Priced {
  const algorithm::Algorithm* row = nullptr;
  algorithm::Parameters parameters;
  model::Price price;
};

// All legal candidates, cheapest first; of equal prices, the first in the table.
base::Result<std::vector<Priced>> price_candidates(const schedule::Shape& shape,
                                                   const model::Machine& machine,
                                                   const model::Work& work);

}  // namespace unisono::select

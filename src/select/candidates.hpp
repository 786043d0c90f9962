// SPDX-License-Identifier: BSD-3-Clause
// The candidates of a call, each an algorithm with parameters, by their price on a machine
// (model/price.hpp). Prices of the same machine file and shape are the same on all ranks: they come
// from sums, products and quotients only, which processors round alike. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"
#include "model/price.hpp"
#include "select/override.hpp"
#include "select/pricing.hpp"

namespace unisono::select {

struct Choice;

// The values that are worth a price: the usual ones first, then those that differ in one parameter.
// They are all choices, and of numbers the small ones, powers of two and the largest. Legal or not.
std::vector<algorithm::Parameters> parameters_to_price(const algorithm::Algorithm& row,
                                                       const schedule::Shape& shape);

struct Priced {
  const algorithm::Algorithm* row = nullptr;
  algorithm::Parameters parameters;
  model::Price price;        // of price_candidates(); else its nanoseconds only
  bool is_estimate = false;  // the price is extrapolated from fewer ranks
};

// All legal candidates that can be priced, cheapest first; of equal prices, the first in the table.
base::Result<std::vector<Priced>> price_candidates(const schedule::Shape& shape,
                                                   const Pricing& pricing);

// The cheapest candidate of each row that no rule excludes; cheapest first, and without prices in a
// row. It does not price every candidate: it compares the parameters of a row with few ranks, and
// extrapolates to many. Then it gives the few cheapest rows only, priced with all ranks where that
// takes few steps. If hosts have several ranks each, these are two.
std::vector<Priced> cheapest_of_rows(const schedule::Shape& shape, const Pricing& pricing,
                                     const Ruling& ruling);
// The first of these; nullopt if all are excluded.
std::optional<Priced> cheapest_candidate(const schedule::Shape& shape, const Pricing& pricing,
                                         const Ruling& ruling);

// The usual parameters, but the first one is the cheapest of all its numbers that are legal. The
// usual one wins among equal ones, or else the lowest does. For more ranks than kPricedInFull it is
// the usual one, because a price of all of them takes too long.
algorithm::Parameters with_cheapest(const algorithm::Algorithm& row, const schedule::Shape& shape,
                                    const Pricing& pricing);

// The candidates that calls may try (lesson.hpp): the usual choice, then the cheapest of each row,
// unless they cost several times as much. Empty if a user's rule chose, if the NIC path does it, or
// if the choice has no price.
std::vector<Priced> candidates_to_try(const schedule::Shape& shape,
                                      const Circumstances& circumstances,
                                      const Overrides& overrides, const Choice& choice);

}  // namespace unisono::select

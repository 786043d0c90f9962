// SPDX-License-Identifier: BSD-3-Clause
// Few ranks that stand for many: how a choice among the candidates of many ranks (candidates.hpp)
// spares most of their schedules. It compares parameters with few ranks, and extrapolates prices
// from them. Pure; any thread.
#pragma once

#include <optional>

#include "algorithm/algorithm.hpp"
#include "select/candidates.hpp"

namespace unisono::select {

// Each of the degrees up to this one is priced: the best ones of the papers' machines are below.
inline constexpr int kEachUpTo = 8;
// A choice compares all candidates of so many ranks. If there are more, it compares the parameters
// of a row with so many, and extrapolates the prices of rows.
inline constexpr int kRanksOfParameters = 16;
// With so many ranks, the cheapest rows are priced in full: more of them than of more ranks. Hosts
// with several ranks are compared with so many.
inline constexpr int kPricedInFull = 64;

// The number of ranks is halved until it is at most so many, and raised to a multiple of four. So
// 24 become 12: other algorithms win where many ranks are left over from a power of two.
int few_of(int ranks, int most);

// So many of the ranks, or fewer; up to some of each of some hosts.
schedule::Shape with_few_ranks(schedule::Shape shape, int few);

bool share_cores(const schedule::Shape& shape, const Pricing& pricing);
// Where fewer ranks stand for many that share cores, they have to share them, too.
Pricing with_few_ranks(Pricing pricing, const schedule::Shape& shape, int few);

// Whether a number among the parameters stands for all ranks: such a tree is flat, and such a radix
// takes one step.
bool stands_for_all(const algorithm::Parameters& parameters, const algorithm::Algorithm& row,
                    int ranks);
// The parameters of few ranks for all: a number that stands for all ranks still does.
algorithm::Parameters for_all(const algorithm::Parameters& parameters,
                              const algorithm::Algorithm& row, int few,
                              const schedule::Shape& shape);

// The price, by those of few ranks; nullopt if the row has nothing like these parameters for these.
// Infinite if it is above `most_ns`, which is often clear from fewer of them. The ranks are on one
// host, or each on its own.
std::optional<double> extrapolated_ns(const algorithm::Algorithm& row,
                                      const algorithm::Parameters& parameters,
                                      const schedule::Shape& shape, const Pricing& pricing,
                                      double most_ns = kAnyPrice);

}  // namespace unisono::select

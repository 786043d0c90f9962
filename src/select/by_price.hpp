// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by price: the table of collectives, each with the condition under which its
// cheapest candidate was measured to be as good as the rule's choice. bench/choice/choice.py
// measures both. A row is on if the price's regret is at most the rules' + 0.03 in the geometric
// mean, and no cell beyond 1.5 is new. That holds for the machine file of unisono tune and for the
// default one. Pure, and the same at all ranks; any thread.
#pragma once

#include <span>
#include <string_view>

#include "select/select.hpp"

namespace unisono::select {

// The first call of a shape prices its candidates. With more ranks that takes more than a
// millisecond, as schedules may have steps for each pair of ranks.
constexpr int kMostRanksByPrice = 32;

struct PriceRow {
  schedule::Collective collective;
  // Half a sentence for people; empty: the collective goes by price.
  std::string_view (*why_not)(const Circumstances& now);
};

std::span<const PriceRow> price_rows();

// Why choose() takes the rule's choice for such a call; empty: it takes the cheapest candidate.
std::string_view why_not_by_price(const schedule::Shape& shape, const Circumstances& circumstances);

}  // namespace unisono::select

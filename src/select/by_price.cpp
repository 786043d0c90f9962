// SPDX-License-Identifier: BSD-3-Clause
#include "select/by_price.hpp"

#include <algorithm>
#include <iterator>

#include "base/check.hpp"

namespace unisono::select {
namespace {

using schedule::Collective;
using schedule::Shape;

// Empty: the condition holds.
std::string_view nothing(const Circumstances&) { return {}; }
std::string_view few_ranks_for_cores(const Circumstances& now) {
  if (!now.oversubscribed) return {};
  return "ranks outnumber cores, where measured times of candidates differ more than their prices";
}
std::string_view never(const Circumstances&) {
  return "prices of this collective were not compared with measured times";
}

// clang-format off
constexpr PriceRow kRows[] = {
    {Collective::barrier,        few_ranks_for_cores},
    {Collective::broadcast,      nothing},
    {Collective::reduce,         nothing},
    {Collective::allreduce,      few_ranks_for_cores},
    {Collective::allgather,      nothing},
    {Collective::gather,         nothing},
    {Collective::scatter,        nothing},
    {Collective::alltoall,       nothing},
    {Collective::reduce_scatter, nothing},
    {Collective::scan,           nothing},
    {Collective::exscan,         nothing},
    {Collective::many_to_many,   never},
};
// clang-format on
static_assert(std::size(kRows) == schedule::kCollectiveCount);

}  // namespace

std::span<const PriceRow> price_rows() { return kRows; }

std::string_view why_not_by_price(const Shape& shape, const Circumstances& now) {
  if (shape.ranks == 1) return "there is one rank";
  if (shape.blocks.given() || now.local_counts) return "blocks differ in length";
  if (shape.hosts.given() || !now.staged_multicast) return "ranks do not all share memory";
  if (shape.ranks > kMostRanksByPrice) return "prices of so many ranks take long to compute";
  const auto* row = std::ranges::find(kRows, shape.collective, &PriceRow::collective);
  UNISONO_CHECK(row != std::end(kRows), "a collective without a row");
  return row->why_not(now);
}

}  // namespace unisono::select

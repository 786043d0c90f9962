// SPDX-License-Identifier: BSD-3-Clause
// From which length on choices go by price: the machine file says it for each collective.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "model/default_machine.hpp"
#include "select/select.hpp"

namespace unisono::select::priced_from_test {
namespace {

using schedule::Collective;
using schedule::Shape;

// The machine's key of a collective, by its name.
std::optional<model::Value>& priced_from(model::Machine& machine, Collective collective) {
  std::string key = "priced_from_" + std::string(schedule::collective_name(collective));
  std::ranges::replace(key, '-', '_');
  const auto rows = model::constant_rows();
  const auto row = std::ranges::find(rows, std::string_view(key), &model::ConstantRow::name);
  EXPECT_NE(row, rows.end()) << key;
  return machine.constants[static_cast<std::size_t>(row->id)];
}

TEST(PricedFrom, GoesByPriceFromTheMachinesLengthOnInEachCollective) {
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    const auto collective = static_cast<Collective>(c);
    SCOPED_TRACE(schedule::collective_name(collective));
    model::Machine machine = model::default_machine();
    const bool is_barrier = collective == Collective::barrier;
    const Shape shape{.collective = collective, .ranks = 8, .count = is_barrier ? 0 : 8};
    const Circumstances helped{.element_bytes = 8,
                               .oversubscribed = true,
                               .cores = 2,
                               .multicast = true,
                               .machine = &machine,
                               .op = arith::Operator::sum,
                               .type = arith::Type::float64,
                               .shared_receive_buffers = true};
    const bool of_all_ranks = schedule::has_blocks(collective) || collective == Collective::reduce;
    const std::int64_t all = is_barrier ? 0 : of_all_ranks ? 8 * 8 * 8 : 8 * 8;
    for (const std::int64_t from : {std::int64_t{0}, all, all + 1}) {
      priced_from(machine, collective)->number = static_cast<double>(from);
      EXPECT_EQ(goes_by_price(shape, helped), from <= all) << from;
      EXPECT_EQ(choose(shape, helped).origin, from <= all ? Origin::price : Origin::rule) << from;
    }
  }
}

}  // namespace
}  // namespace unisono::select::priced_from_test

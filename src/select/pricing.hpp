// SPDX-License-Identifier: BSD-3-Clause
// Pricing: how the calls of a shape are priced, and the price of one candidate (candidates.hpp has
// all). The same on all ranks. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/result.hpp"
#include "model/price.hpp"
#include "schedule/spares.hpp"
#include "select/buffers.hpp"
#include "select/engine_kind.hpp"

namespace unisono::select {

struct Circumstances;
class PriceBook;

using model::kAnyPrice;
// A set of schedules with more steps is not priced, or only estimated for a choice if few ranks
// stand for it. Where ranks are alike, that is one schedule.
inline constexpr std::int64_t kMostSteps = 200'000;

// How calls of a shape are priced.
struct Pricing {
  const model::Machine* machine = nullptr;  // outlives it
  model::Work work;
  // The length of a rank's receive buffer; longer calls go in segments. 0: no limit.
  std::int64_t receive_buffer_bytes = 0;
  std::int64_t segment_bytes = 0;  // the most of a vector or block in a segment; 0: no limit
  BuffersBySize buffers = {};
  bool in_row = true;  // also the price in a row, which takes as long again as three others
  // Each candidate of a choice is priced by itself and to the end, unless one rank's own work takes
  // too long already. The choice is the same, which tests compare.
  bool in_full = false;
  PriceBook* book = nullptr;  // of the choice for which it prices; outlives it. Null: none
};
Pricing pricing_of(const schedule::Shape& shape, const Circumstances& circumstances,
                   EngineKind engine);

// Whether prices need the predecessors of each step: only helped ranks look at them.
schedule::Spares::Order order_of(const Pricing& pricing);

// Whether one rank's schedule stands for all, as price_of_alike() wants it.
bool one_stands_for_all(const algorithm::Algorithm& row, const schedule::Shape& shape);

// Whether schedules of at most so many steps give its price, for a legal candidate.
bool has_at_most(std::int64_t most, const algorithm::Algorithm& row,
                 const algorithm::Parameters& parameters, const schedule::Shape& shape);
// Whether its schedules have so few steps that they can be priced, for a legal candidate. It judges
// by a few ranks.
bool is_priceable(const algorithm::Algorithm& row, const algorithm::Parameters& parameters,
                  const schedule::Shape& shape);

// The candidate has to be legal. It builds one schedule where one stands for all, or else those of
// all ranks.
base::Result<model::Price> price_of(const algorithm::Algorithm& row,
                                    const algorithm::Parameters& parameters,
                                    const schedule::Shape& shape, const Pricing& pricing);

// The same of a legal candidate; nullopt if its schedules have too many steps to be priced. It
// counts those of all ranks: a few of them tell little where ranks that are left over do less.
std::optional<model::Price> price_if_priceable(const algorithm::Algorithm& row,
                                               const algorithm::Parameters& parameters,
                                               const schedule::Shape& shape,
                                               const Pricing& pricing);
// The same with a pricer of the shape, which keeps what several candidates have in common.
std::optional<model::Price> price_if_priceable(const algorithm::Algorithm& row,
                                               const algorithm::Parameters& parameters,
                                               const schedule::Shape& shape, const Pricing& pricing,
                                               model::Pricer& pricer);

// The need of receive buffers, near enough (plan/bind/receive_layout). They hold messages in slots,
// scratch, and the multicasts of their rank, which the targets read there. Those of helped ranks
// also hold input and output.
class BufferNeed {
 public:
  // It takes so many schedules. are_alike: one stands for all. One that does not is the only one
  // that counts. `pricing` outlives it.
  BufferNeed(std::size_t schedules, const Pricing& pricing, bool are_alike)
      : pricing_(pricing),
        are_alike_(are_alike),
        many_(schedules > few_.size() ? schedules : 0),
        elements_(schedules > few_.size() ? std::span(many_) : std::span(few_).first(schedules)) {}
  BufferNeed(const BufferNeed&) = delete;
  BufferNeed& operator=(const BufferNeed&) = delete;

  // The schedule of the next rank.
  void add(const schedule::Schedule& schedule) {
    add_part(schedule, 1);
    ++next_;
  }
  // So many parts of the rank's schedule that are alike; next_rank() follows the last ones.
  void add_part(const schedule::Schedule& schedule, std::int64_t times);
  void next_rank() { ++next_; }
  void first_rank() { next_ = 0; }
  // How calls go that need so much.
  model::Calls calls_of(const schedule::Shape& shape) const;

 private:
  void count_multicasts(const schedule::Schedule& schedule, std::int64_t times);

  const Pricing& pricing_;
  bool are_alike_;
  std::size_t next_ = 0;
  std::array<std::int64_t, 16> few_{};
  std::vector<std::int64_t> many_;
  std::span<std::int64_t> elements_;  // by schedule
};
model::Calls calls_of(std::span<const schedule::Schedule> set, const schedule::Shape& shape,
                      const Pricing& pricing, bool are_alike);
// The shape of one of so many segments, as the row is priced.
schedule::Shape segment_of(const algorithm::Algorithm& row, const schedule::Shape& shape,
                           std::int64_t segments);
// Whether a rank may need segments: where not, it does not take its schedules to know it.
bool may_need_segments(const schedule::Shape& shape, const Pricing& pricing);

// All ranks on one host, or each on its own: then few of them stand for many in proportion.
bool are_uniform(const schedule::Shape& shape);

}  // namespace unisono::select

// SPDX-License-Identifier: BSD-3-Clause
#include "plan/choice_table.hpp"

#include <algorithm>
#include <span>

#include "base/clock.hpp"
#include "plan/digest.hpp"
#include "wait/futex.hpp"
#include "wait/wait_until.hpp"

namespace unisono::plan {
namespace {

using select::Priced;
using select::PricedCall;

std::uint64_t number_of(const PricedCall& call) {
  const auto number = [](const auto& kind) {
    return kind ? static_cast<std::uint64_t>(*kind) : ~std::uint64_t{0};
  };
  const std::uint64_t hash =
      hash_of({static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.count),
               static_cast<std::uint64_t>(call.element_bytes), call.ordered ? 1U : 0U,
               number(call.op), number(call.type)});
  return hash == 0 ? 1 : hash;
}

// The entry of a call whose choice this rank makes. Others learn how it went, however it ends.
class Making {
 public:
  explicit Making(ChoiceEntry& entry) : entry_(entry) {}
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making() {
    entry_.state.store(outcome_, std::memory_order_release);
    wait::futex_wake_all(entry_.state);
  }

  void note(const std::optional<Priced>& priced) {
    outcome_ = priced ? ChoiceEntry::made : ChoiceEntry::made_none;
    if (!priced) return;
    entry_.row = static_cast<std::int32_t>(priced->row - algorithm::table().data());
    entry_.parameters = priced->parameters.values;
    entry_.ns = priced->price.ns;
    entry_.is_estimate = priced->is_estimate;
  }

 private:
  ChoiceEntry& entry_;
  ChoiceEntry::State outcome_ = ChoiceEntry::left;
};

// Until another rank has made the choice, or for so long.
std::uint32_t await(ChoiceEntry& entry, std::int64_t longest_ns) {
  const std::int64_t end_ns = base::now_ns() + longest_ns;
  std::uint32_t state = ChoiceEntry::in_the_making;
  wait::CoreContention contention;
  wait::Waiter waiter({.short_slices = wait::ShortSlices::never}, contention);
  wait::wait_until(
      waiter,
      [&] {
        state = entry.state.load(std::memory_order_acquire);
        return state != ChoiceEntry::in_the_making || base::now_ns() > end_ns;
      },
      [] { return true; },
      [&] {
        const std::int64_t left_ns = std::max<std::int64_t>(0, end_ns - base::now_ns());
        wait::futex_wait(entry.state, ChoiceEntry::in_the_making, left_ns);
        return false;
      });
  return state;
}

}  // namespace

std::optional<Priced> ChoiceTable::find_or_make(const PricedCall& call, const MakePriced& make) {
  const std::uint64_t number = number_of(call);
  for (ChoiceEntry& entry : std::span(entries_, kEntries)) {
    std::uint64_t seen = entry.call.load(std::memory_order_relaxed);
    if (seen == 0 && entry.call.compare_exchange_strong(seen, number, std::memory_order_relaxed)) {
      Making making(entry);
      std::optional<Priced> priced = make();
      making.note(priced);
      return priced;
    }
    if (seen != number) continue;
    const std::uint32_t state = await(entry, longest_wait_ns_);
    if (state == ChoiceEntry::made_none) return std::nullopt;
    if (state != ChoiceEntry::made) return make();
    const algorithm::Algorithm& row = algorithm::table()[static_cast<std::size_t>(entry.row)];
    if (row.collective != call.collective) return make();  // two calls have one number
    Priced priced{.row = &row,
                  .parameters = {entry.parameters},
                  .price = {},
                  .is_estimate = entry.is_estimate};
    priced.price.ns = entry.ns;
    return priced;
  }
  return make();
}

}  // namespace unisono::plan

// SPDX-License-Identifier: BSD-3-Clause
// ChoiceTable: the choices by price of a communicator whose ranks share one host, in its shared
// memory. The first rank that makes a call of a class prices the candidates, and the others read
// its choice: else 64 ranks on 2 cores would each compute the same for milliseconds. Every rank
// computes alike, so a rank whose wait is in vain, or which finds no room, prices by itself. The
// table of one rank: one thread at a time; the entries: any rank.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "select/candidates.hpp"
#include "select/select.hpp"

namespace unisono::plan {

// Zero bytes are a table without choices.
struct ChoiceEntry {
  enum State : std::uint32_t { in_the_making, made, made_none, left };

  std::atomic<std::uint64_t> call;   // a number of 64 bits for the call; 0: free
  std::atomic<std::uint32_t> state;  // a futex word
  std::int32_t row;                  // its index in algorithm::table()
  std::array<std::int32_t, algorithm::kMaxParameters> parameters;
  double ns;
  bool is_estimate;
};

class ChoiceTable : public select::SharedChoices {
 public:
  static constexpr int kEntries = 128;
  static constexpr std::int64_t kBytes = kEntries * std::int64_t{sizeof(ChoiceEntry)};

  // The rank that prices may have died or been stopped.
  static constexpr std::int64_t kLongestWaitNs = base::kSecond;

  // `entries`: kEntries of them, which outlive it. After so long a wait a rank prices by itself.
  explicit ChoiceTable(ChoiceEntry* entries, std::int64_t longest_wait_ns = kLongestWaitNs)
      : entries_(entries), longest_wait_ns_(longest_wait_ns) {}

  std::optional<select::Priced> find_or_make(const select::PricedCall& call,
                                             const MakePriced& make) override;

 private:
  ChoiceEntry* entries_;
  std::int64_t longest_wait_ns_;
};

}  // namespace unisono::plan

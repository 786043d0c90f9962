// SPDX-License-Identifier: BSD-3-Clause
#include "tune/copies.hpp"

#include <map>

namespace unisono::tools::tune {
namespace {

// Other collectives gain more or less than a broadcast, so a small gain is not enough.
constexpr double kClearly = 0.9;

}  // namespace

std::optional<SingleCopyFrom> single_copy_from(std::span<const CopyTimes> times) {
  std::map<std::int64_t, bool> is_faster;  // by length, with all numbers of ranks
  for (const CopyTimes& each : times) {
    const bool faster = each.one_ns < kClearly * each.two_ns;
    const auto [at, is_new] = is_faster.emplace(each.bytes, faster);
    if (!is_new) at->second = at->second && faster;
  }
  std::optional<SingleCopyFrom> from;
  for (auto length = is_faster.rbegin(); length != is_faster.rend() && length->second; ++length) {
    const auto lower = std::next(length);
    const std::int64_t below = lower == is_faster.rend() ? 0 : lower->first;
    from = {.bytes = length->first, .plus_minus = (length->first - below) / 2};
  }
  return from;
}

}  // namespace unisono::tools::tune

// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/ends.hpp"

namespace unisono::comm {
namespace {

constexpr std::uint64_t kHasFailed = 1, kHasShrunk = 2;
constexpr unsigned kIndexBit = 2;

}  // namespace

void Ends::tell(int rank, const End& end, std::span<const int> targets, network::Network* network) {
  const std::uint64_t what = end.index << kIndexBit | (end.has_failed ? kHasFailed : 0) |
                             (end.has_shrunk ? kHasShrunk : 0);
  Row& row = rows_[rank];
  row.what.store(what, std::memory_order_relaxed);
  row.mark.store(mark_, std::memory_order_release);
  for (const int target : targets) {
    network->put({.target = target,
                  .source = reinterpret_cast<const std::byte*>(&what),
                  .place = reinterpret_cast<std::byte*>(&row.what),
                  .bytes = sizeof what,
                  .flag = reinterpret_cast<std::uint64_t*>(&row.mark),
                  .flag_value = mark_});
  }
}

std::optional<Ends::End> Ends::of(int rank) const {
  const Row& row = rows_[rank];
  if (row.mark.load(std::memory_order_acquire) != mark_) return std::nullopt;
  const std::uint64_t what = row.what.load(std::memory_order_relaxed);
  return End{.index = what >> kIndexBit,
             .has_failed = (what & kHasFailed) != 0,
             .has_shrunk = (what & kHasShrunk) != 0};
}

}  // namespace unisono::comm

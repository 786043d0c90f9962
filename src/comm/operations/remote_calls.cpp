// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operations/remote_calls.hpp"

#include <atomic>

#include "network/network.hpp"

namespace unisono::comm {
namespace {

// Bits for the number of a communicator's request; a larger number would reach into the next
// communicator's.
constexpr unsigned kCallRequestBits = 24;

}  // namespace

bool RemoteCalls::is_answered() const {
  return std::atomic_ref(row(rank_).number).load(std::memory_order_acquire) ==
         (mark_ << kCallRequestBits) + requests_;
}

void RemoteCalls::ask(network::Network& network, int member, int job_rank) {
  asked_ = member;
  ++requests_;
  Row& own = row(rank_);
  const auto* const wanted = reinterpret_cast<const std::byte*>(row(member).calls.data());
  network.get({.source = job_rank,
               .offset = static_cast<std::uint64_t>(wanted - memory_),
               .place = reinterpret_cast<std::byte*>(own.answer.data()),
               .bytes = sizeof own.answer,
               .flag = &own.number,
               .flag_value = (mark_ << kCallRequestBits) + requests_});
}

std::optional<std::uint64_t> RemoteCalls::find_difference() const {
  return find_difference_with(row(rank_).answer);
}

std::optional<std::uint64_t> RemoteCalls::find_difference_with(int member) const {
  return find_difference_with(row(member).calls);
}

std::optional<std::uint64_t> RemoteCalls::find_difference_with(Words& theirs) const {
  const Words& own = row(rank_).calls;
  std::optional<std::uint64_t> first;
  for (std::size_t i = 0; i < kKept; ++i) {
    if (own[i] == 0) continue;
    const std::uint64_t other = std::atomic_ref(theirs[i]).load(std::memory_order_acquire);
    if (!engine::same_operation(other, own[i]) || other == own[i]) continue;
    const std::uint64_t index = own[i] >> plan::kDigestBits;
    if (!first || index < *first) first = index;
  }
  return first;
}

}  // namespace unisono::comm

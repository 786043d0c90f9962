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
  return std::atomic_ref(*number()).load(std::memory_order_acquire) ==
         (mark_ << kCallRequestBits) + requests_;
}

void RemoteCalls::ask(network::Network& network, int member, int job_rank) {
  asked_ = member;
  ++requests_;
  const auto* const wanted = reinterpret_cast<const std::byte*>(calls_of(member));
  network.get({.source = job_rank,
               .offset = static_cast<std::uint64_t>(wanted - table_.memory),
               .place = reinterpret_cast<std::byte*>(answer()),
               .bytes = kKept * sizeof(std::uint32_t),
               .flag = number(),
               .flag_value = (mark_ << kCallRequestBits) + requests_});
}

std::optional<std::uint64_t> RemoteCalls::find_difference() const {
  return find_difference_with(answer());
}

std::optional<std::uint64_t> RemoteCalls::find_difference_with(int member) const {
  return find_difference_with(calls_of(member));
}

std::optional<std::uint64_t> RemoteCalls::find_difference_with(std::uint32_t* theirs) const {
  std::optional<std::uint64_t> first;
  for (std::uint64_t i = 0; i < kKept; ++i) {
    if (own_[i] == 0) continue;
    const std::uint32_t other = std::atomic_ref(theirs[i]).load(std::memory_order_acquire);
    const bool is_same_call =
        other != 0 && other >> plan::kDigestBits == own_[i] >> plan::kDigestBits;
    if (!is_same_call || other == own_[i]) continue;
    const std::uint64_t index = last_ - ((last_ - i) % kKept);
    if (!first || index < *first) first = index;
  }
  return first;
}

}  // namespace unisono::comm

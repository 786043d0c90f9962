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

void RemoteCalls::note(network::Network& network, std::uint64_t index, std::uint32_t history) {
  const auto held = network.hold();  // another host may be reading it
  row(rank_).calls[index % kKept] = engine::make_tag(index, history);
}

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
  const Row& own = row(rank_);
  std::optional<std::uint64_t> first;
  for (std::size_t i = 0; i < kKept; ++i) {
    if (own.calls[i] == 0) continue;
    const bool are_of_one_call = engine::same_operation(own.answer[i], own.calls[i]);
    if (!are_of_one_call || own.calls[i] == own.answer[i]) continue;
    const std::uint64_t index = own.calls[i] >> plan::kDigestBits;
    if (!first || index < *first) first = index;
  }
  return first;
}

}  // namespace unisono::comm

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/task.hpp"

namespace unisono::engine {

bool Task::claim_or_mark_contended(std::uint64_t sequence) {
  const std::uint64_t free = word(sequence, Claim::free);
  const std::uint64_t of_operation = word(sequence, Claim::none);
  constexpr std::uint64_t kClaimBits = 3;
  std::uint64_t seen = claim_.load(std::memory_order_relaxed);
  for (;;) {
    const bool is_published = (seen & ~kClaimBits) == of_operation && (seen & kClaimBits) != 0;
    if (!is_published) return false;
    const Claim next = seen == free ? Claim::held : Claim::contended;
    if (claim_.compare_exchange_weak(seen, word(sequence, next), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
      return next == Claim::held;
    }
  }
}

bool Task::release(std::uint64_t sequence) {
  std::uint64_t held = word(sequence, Claim::held);
  if (claim_.compare_exchange_strong(held, word(sequence, Claim::free), std::memory_order_release,
                                     std::memory_order_relaxed)) {
    return true;
  }
  claim_.exchange(word(sequence, Claim::held), std::memory_order_acq_rel);
  return false;
}

}  // namespace unisono::engine

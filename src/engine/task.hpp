// SPDX-License-Identifier: BSD-3-Clause
// Task: a rank's program that others may execute, in shared memory. Its owner publishes it when it
// cannot go on by itself. The holder of the claim executes it. Its progress is counted in wait
// segments, not steps.
//
// Claims are those of one operation. A rank may still be in an operation when the owner has
// published a later one in the same slot index (docs/decisions/0092). Such a rank gets no claim,
// so it keeps nobody from the later task. Fixed layout, lock-free atomics; any process.
#pragma once

#include <atomic>
#include <cstdint>

#include "plan/geometry.hpp"

namespace unisono::engine {

// A rank that has made something ready and cannot get the claim marks it contended: the holder
// looks again before it lets go.
enum class Claim : std::uint64_t { none, free, held, contended };

class alignas(plan::kLineBytes) Task {
 public:
  // The owner's: before publish() it says where the program goes on (the fields below). `tag`: the
  // flag word of operation `sequence`. From then on only the holder of the claim may withdraw() it.
  void publish(std::uint64_t sequence, std::uint64_t tag) {
    claim_.store(word(sequence, Claim::free), std::memory_order_relaxed);
    tag_.store(tag, std::memory_order_release);
  }
  void withdraw() {
    tag_.store(0, std::memory_order_relaxed);
    claim_.store(0, std::memory_order_relaxed);
  }
  // Whether the operation of that flag word is published. It may end at any time.
  bool is_published(std::uint64_t tag) const { return tag_.load(std::memory_order_acquire) == tag; }

  // All false if the task is not, or no longer, that of operation `sequence`.
  bool try_claim(std::uint64_t sequence) {
    std::uint64_t free = word(sequence, Claim::free);
    return claim_.load(std::memory_order_relaxed) == free &&
           claim_.compare_exchange_strong(free, word(sequence, Claim::held),
                                          std::memory_order_acquire, std::memory_order_relaxed);
  }
  // False: the holder of the claim will look again, if there is one.
  bool claim_or_mark_contended(std::uint64_t sequence);
  // For the holder. False: another rank has marked it contended. The claim is kept, and the holder
  // looks again.
  bool release(std::uint64_t sequence);

  std::atomic<std::int32_t> wait_segment{0};  // all before it are done
  std::atomic<std::uint64_t> ahead{0};        // and these out of order (Position::ahead)

 private:
  static constexpr std::uint64_t word(std::uint64_t sequence, Claim claim) {
    return sequence << 2 | static_cast<std::uint64_t>(claim);
  }

  std::atomic<std::uint64_t> tag_{0};  // of the operation; 0: not published
  std::atomic<std::uint64_t> claim_{0};
};

}  // namespace unisono::engine

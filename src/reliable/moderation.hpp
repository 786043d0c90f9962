// SPDX-License-Identifier: BSD-3-Clause
// Moderation: how long a rank that sleeps on datagrams lets the packets of a long message gather
// before it polls, as network cards do with interrupts. A wake-up costs as much as several packets,
// and a part of a message is useless. Packets carry the number of those that follow, so the end of
// a message is noticed when it comes. A value; no clock of its own.
#pragma once

#include <algorithm>
#include <cstdint>

namespace unisono::reliable {

class Moderation {
 public:
  static constexpr std::int64_t kPackets = 8;  // to gather, if so many will come
  // A shorter sleep is not worth its timer.
  static constexpr std::int64_t kLeastNs = 40'000;
  static constexpr std::int64_t kMostNs = 500'000;

  // A look at `now_ns` that took so many packets of messages, whether one became whole, and how
  // many packets are known to follow.
  void note(std::int64_t now_ns, std::int64_t packets, bool whole, std::uint64_t following) {
    if (packets == 0) {
      pause_ns_ = 0;
      return;
    }
    const std::int64_t since_ns = now_ns - looked_ns_;
    looked_ns_ = now_ns;
    // The first packets of a message say nothing of its pace.
    const bool in_a_row = since_ns <= 2 * kMostNs;
    const auto to_gather = static_cast<std::int64_t>(std::min<std::uint64_t>(kPackets, following));
    const std::int64_t wanted_ns = in_a_row ? since_ns * to_gather / packets : 0;
    pause_ns_ = whole || wanted_ns < kLeastNs ? 0 : std::min(wanted_ns, kMostNs);
  }
  // 0: poll as soon as something comes.
  std::int64_t pause_ns() const { return pause_ns_; }

 private:
  std::int64_t looked_ns_ = 0;  // when something had come
  std::int64_t pause_ns_ = 0;
};

}  // namespace unisono::reliable

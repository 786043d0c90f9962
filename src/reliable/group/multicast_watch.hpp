// SPDX-License-Identifier: BSD-3-Clause
// MulticastWatch: whether the multicasts of one origin still reach this rank. If its packets
// repeatedly come by unicast alone, the network does not carry its multicasts any more. Multicast
// then counts as lost for the rest of the job. A burst of losses is one occasion, however many
// packets it takes. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <limits>

namespace unisono::reliable {

class MulticastWatch {
 public:
  // So many occasions in a row: at a loss of 10 %, by chance once in 10^16 packets.
  static constexpr int kMostMissed = 16;

  void note_multicast() { missed_ = 0; }
  // A packet has come by unicast that should have come by multicast before. Occasions are
  // `apart_ns` apart at least. True if multicast is lost, and was not before.
  bool note_unicast(std::int64_t now_ns, std::int64_t apart_ns) {
    if (lost_ || now_ns - missed_ns_ < apart_ns) return false;
    missed_ns_ = now_ns;
    lost_ = ++missed_ == kMostMissed;
    return lost_;
  }
  bool is_lost() const { return lost_; }

 private:
  int missed_ = 0;
  bool lost_ = false;
  std::int64_t missed_ns_ = std::numeric_limits<std::int64_t>::min() / 2;
};

}  // namespace unisono::reliable

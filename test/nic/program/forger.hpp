// SPDX-License-Identifier: BSD-3-Clause
// Forger: frames that look like the NIC path's and are none, made from genuine ones without the
// job's key. No frame of it carries a whole packet of those that it was given. The same seed gives
// the same frames. One thread.
#pragma once

#include <vector>

#include "base/prng.hpp"
#include "nic/harness/frames.hpp"

namespace unisono::nic::test {

class Forger {
 public:
  explicit Forger(std::uint64_t seed) : random_(seed) {}

  // A genuine frame; of many, the last kMost are kept.
  void show(Frame genuine);
  bool has_seen() const { return !genuine_.empty(); }
  Frame next();
  // An overheard frame unchanged: for replays.
  const Frame& any() { return genuine_[random_.below(genuine_.size())]; }

 private:
  static constexpr std::size_t kMost = 256;

  std::byte byte() { return static_cast<std::byte>(random_.next()); }
  void change_bytes(Frame& frame, std::size_t from);
  void change_length(Frame& frame);
  void sign_anew(Frame& frame);
  void splice(Frame& frame);
  void fill_with_noise(Frame& frame);

  base::Prng random_;
  std::vector<Frame> genuine_;
  std::size_t oldest_ = 0;
};

// Whether the frame carries the same packet, header and vector, as `genuine` does.
bool carries_packet_of(const Frame& frame, const Frame& genuine);

}  // namespace unisono::nic::test

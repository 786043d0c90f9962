// SPDX-License-Identifier: BSD-3-Clause
// MessageLimit: how long a message may be that the kernel cuts into datagrams. As long as it can,
// as long as the link takes at once what it is given. Where bytes wait at the interface, it is the
// link that limits; longer messages gain nothing there, and a shaper (tbf, htb) cuts up what is
// longer than its burst and then has a timer for each datagram. TCP does alike: a millisecond of
// its rate in one piece. Measured at 200 Mbit/s: a quarter of the processor time
// (docs/decisions/0031). One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::transport {

class MessageLimit {
 public:
  // All segments of a message together are one IP packet inside the kernel; 40 bytes of IPv6 and 8
  // of UDP leave this much, and for IPv4 the 20 more are not worth a case.
  static constexpr std::size_t kLongest = 65535 - 48;
  // 8 full datagrams of Ethernet: half of what a shaper with a burst of a millisecond lets through
  // at 200 Mbit/s. With the whole of it, each time its timer is late the link rests.
  static constexpr std::size_t kShort = std::size_t{8} * 1472;
  // Of Ethernet, shorter batches are the same in both cases, so that nobody need ask for them.
  static constexpr std::size_t kFewDatagrams = 8;
  static constexpr std::int64_t kHoldNs = base::kSecond;

  // `waiting`: bytes that the socket has been given and the interface has not sent.
  std::size_t most(std::size_t waiting, std::int64_t now_ns) {
    if (waiting >= kShort) short_until_ns_ = now_ns + kHoldNs;
    return now_ns < short_until_ns_ ? kShort : kLongest;
  }

 private:
  std::int64_t short_until_ns_ = 0;
};

}  // namespace unisono::transport

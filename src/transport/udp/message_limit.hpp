// SPDX-License-Identifier: BSD-3-Clause
// MessageLimit: the longest message that is handed to the kernel to be cut into datagrams. It is as
// long as possible while the link accepts all bytes at once. If bytes wait at the interface, the
// link is the limit, and longer messages gain nothing. A shaper (tbf, htb) cuts messages longer
// than its burst and then needs a timer for each datagram. TCP does the same: at most a millisecond
// of its rate in one piece. At 200 Mbit/s this saves processor time (docs/decisions/0031). One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace unisono::transport {

class MessageLimit {
 public:
  // All segments of a message together form one IP packet inside the kernel; the headers of IPv6
  // and UDP take 48 bytes. The 20 more of IPv4 are not worth a special case.
  static constexpr std::size_t kLongest = 65535 - 48;
  // 8 full Ethernet datagrams: half of the burst of a shaper with 1 ms at 200 Mbit/s. With the
  // whole burst, the link would idle each time the shaper's timer is late.
  static constexpr std::size_t kShort = std::size_t{8} * 1472;
  // Batches of at most this many Ethernet datagrams are the same in both cases, so the caller need
  // not ask.
  static constexpr std::size_t kFewDatagrams = 8;
  static constexpr std::int64_t kHoldNs = base::kSecond;

  // `waiting`: bytes that the socket has accepted and the interface has not sent.
  std::size_t most(std::size_t waiting, std::int64_t now_ns) {
    if (waiting >= kShort) short_until_ns_ = now_ns + kHoldNs;
    return now_ns < short_until_ns_ ? kShort : kLongest;
  }

 private:
  std::int64_t short_until_ns_ = 0;
};

}  // namespace unisono::transport

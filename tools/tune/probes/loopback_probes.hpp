// SPDX-License-Identifier: BSD-3-Clause
// What datagrams over the loopback interface take: the kernel's part of messages between hosts,
// without a network. No traffic leaves the machine. Main thread.
#pragma once

#include "base/result.hpp"
#include "tune/probes/sample.hpp"

namespace unisono::tools::tune {

// The times of one datagram of so many bytes, at most 1400.
struct DatagramTimes {
  Sample flight;     // half of a round trip: sent, received by a thread that sleeps
  Sample sending;    // the sender's part
  Sample receiving;  // the receiver's, of one that has arrived
};
base::Result<DatagramTimes> datagrams(int bytes, std::int64_t budget_ns);

}  // namespace unisono::tools::tune

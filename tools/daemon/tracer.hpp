// SPDX-License-Identifier: BSD-3-Clause
// Tracer: the one connection, if any, that receives records of packets. It switches the program's
// recording on while there is a listener. It never waits for the listener; records without room are
// counted. One thread.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "nic/loader/device.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// Headers show which users communicate when. So only root, the daemon's user and members of its
// group may trace. `connection`: a Unix socket whose peer the kernel identifies.
base::Status check_may_trace(int connection);

class Tracer {
 public:
  // The device outlives this.
  explicit Tracer(nic::Device& device) : device_(device) {}

  base::Status start(int connection, std::uint32_t every);
  // If it is that connection that traces.
  void stop(int connection);
  int connection() const { return connection_; }  // -1: there is no listener
  // Readable when there are records; -1 without a listener.
  int descriptor() const { return connection_ < 0 ? -1 : device_.trace_descriptor(); }
  // Sends the available records. False: the listener is gone.
  bool hand_out();

 private:
  bool send(nic::Records& records);

  nic::Device& device_;
  int connection_ = -1;
  std::uint64_t lost_ = 0;  // not reported yet
};

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
// Tracer: the one connection, if any, that is sent records of packets, and when the program makes
// them: not while nobody listens. It never waits for who listens; what finds no room is counted.
// One thread.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "nic/loader/device.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// Headers say which users communicate when: root may see them, the user that the daemon runs as,
// and members of its group. `connection`: a Unix socket whose peer the kernel names.
base::Status check_may_trace(int connection);

class Tracer {
 public:
  // The device outlives this.
  explicit Tracer(nic::Device& device) : device_(device) {}

  base::Status start(int connection, std::uint32_t every);
  // If it is that connection that traces.
  void stop(int connection);
  int connection() const { return connection_; }  // -1: nobody traces
  // Can be read when there is something to hand out; -1 if nobody traces.
  int descriptor() const { return connection_ < 0 ? -1 : device_.trace_descriptor(); }
  // Sends what there is. False: who listened has gone.
  bool hand_out();

 private:
  bool send(nic::Records& records);

  nic::Device& device_;
  int connection_ = -1;
  std::uint64_t lost_ = 0;  // not told yet
};

}  // namespace unisono::daemon

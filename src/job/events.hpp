// SPDX-License-Identifier: BSD-3-Clause
// Events: the counter of events on a host that may end pending operations: losses and failures. It
// lies in shared memory. Any thread.
#pragma once

#include <cstdint>

#include "job/tables.hpp"
#include "wait/doorbells.hpp"

namespace unisono::job {

class Events {
 public:
  // The references outlive it.
  Events(JobHeader& header, wait::Doorbells& doorbells, int ranks)
      : header_(header), doorbells_(doorbells), ranks_(ranks) {}

  // Changes when there was an event.
  std::uint32_t count() const { return header_.events.load(std::memory_order_acquire); }
  // Makes all ranks of this host check.
  void raise() {
    header_.events.fetch_add(1, std::memory_order_seq_cst);
    for (int r = 0; r < ranks_; ++r) doorbells_.wake(r);
  }

 private:
  JobHeader& header_;
  wait::Doorbells& doorbells_;
  const int ranks_;
};

}  // namespace unisono::job

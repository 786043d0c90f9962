// SPDX-License-Identifier: BSD-3-Clause
// WakeRing: wakes a sleeping process when its operation is done in memory. A waiter of a group has
// a BPF ring buffer of its own and a bit in `waiting` of the operation's slot (tables.h). To sleep:
// arm(); check for the result once more; poll descriptor(), with other descriptors; disarm(). The
// program checks the bits after it has shown a result, and puts one record in the ring of each set
// bit. For waiters that are awake this costs it a load. Each side writes and then reads what the
// other writes, so no wake-up is lost.
//
// A process can only harm itself by writing to its ring's memory: a record without room is dropped.
// So a sleeper sets a timeout as well. One thread at a time. Data path: no allocation, no lock; no
// system call but in sleep().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {

class WakeRing {
 public:
  // `ring`: the group's, of this waiter: 0 to row.waiters - 1.
  static base::Result<std::unique_ptr<WakeRing>> open(base::Descriptor ring, std::uint32_t waiter);
  ~WakeRing();
  WakeRing(const WakeRing&) = delete;
  WakeRing& operator=(const WakeRing&) = delete;

  // From then on the end of the slot's operation makes descriptor() readable. Check afterwards
  // whether it has ended already.
  void arm(unisono_nic_slot& slot);
  void disarm(unisono_nic_slot& slot);
  int descriptor() const { return ring_.get(); }
  // For a process that waits for nothing else: until descriptor() is readable, or the time is over.
  void sleep(std::int64_t timeout_ns) const;

 private:
  WakeRing(base::Descriptor ring, std::uint32_t waiter)
      : ring_(std::move(ring)), bit_(std::uint64_t{1} << waiter) {}
  void empty();

  const base::Descriptor ring_;
  const std::uint64_t bit_;
  // The ring's two positions, each on a page of its own.
  std::uint64_t* taken_ = nullptr;      // position up to which this process has read
  const std::uint64_t* put_ = nullptr;  // ... and up to which the program has written
};

// The size of a ring's memory in the kernel.
std::size_t wake_ring_bytes();

}  // namespace unisono::nic

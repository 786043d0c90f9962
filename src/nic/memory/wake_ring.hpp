// SPDX-License-Identifier: BSD-3-Clause
// WakeRing: how a process that sleeps is woken when its operation is done in memory. A waiter of a
// group has a BPF ring buffer of its own and a bit in `waiting` of the operation's slot (tables.h).
// To sleep is: arm(); look for the result once more; poll descriptor(), with whatever else is
// waited for; disarm(). The program looks at the bits after it has shown a result, and puts a
// record in the rings of those that are set, once each: who is awake costs it a load. As each side
// writes and then reads what the other writes, no wake-up is lost.
//
// What a process does to its ring's memory harms nobody but itself: a record that finds no room is
// dropped. So whoever sleeps sets itself a time as well. One thread at a time. Data path: no
// allocation, no lock; no system call but in sleep().
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

  // From here on whoever ends the slot's operation makes descriptor() readable. What has ended
  // before is to be looked for after this.
  void arm(unisono_nic_slot& slot);
  void disarm(unisono_nic_slot& slot);
  int descriptor() const { return ring_.get(); }
  // For who waits for nothing else: until descriptor() is readable, or the time is over.
  void sleep(std::int64_t timeout_ns) const;

 private:
  WakeRing(base::Descriptor ring, std::uint32_t waiter)
      : ring_(std::move(ring)), bit_(std::uint64_t{1} << waiter) {}
  void empty();

  const base::Descriptor ring_;
  const std::uint64_t bit_;
  // The ring's two positions, each on a page of its own.
  std::uint64_t* taken_ = nullptr;      // up to which this process has
  const std::uint64_t* put_ = nullptr;  // ... and the program
};

// What the kernel takes for a ring.
std::size_t wake_ring_bytes();

}  // namespace unisono::nic

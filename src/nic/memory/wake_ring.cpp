// SPDX-License-Identifier: BSD-3-Clause
#include "nic/memory/wake_ring.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"

namespace unisono::nic {
namespace {

// The kernel's own page, one for each position, and one of records.
constexpr std::size_t kPages = 4;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

base::Result<std::uint64_t*> map_position(const base::Descriptor& ring, int protection, int page) {
  void* const start = mmap(nullptr, page_bytes(), protection, MAP_SHARED, ring.get(),
                           static_cast<off_t>(page_bytes()) * page);
  if (start != MAP_FAILED) return static_cast<std::uint64_t*>(start);
  return base::Error{base::Code::system,
                     fmt::format("NIC program: map a group's wake ring: {}", std::strerror(errno))};
}

}  // namespace

std::size_t wake_ring_bytes() { return kPages * page_bytes(); }

base::Result<std::unique_ptr<WakeRing>> WakeRing::open(base::Descriptor ring,
                                                       std::uint32_t waiter) {
  UNISONO_CHECK(waiter < UNISONO_NIC_WAITERS_MAX, "a waiter of the group");
  std::unique_ptr<WakeRing> made(new WakeRing(std::move(ring), waiter));
  UNISONO_ASSIGN(made->taken_, map_position(made->ring_, PROT_READ | PROT_WRITE, 0));
  UNISONO_ASSIGN(made->put_, map_position(made->ring_, PROT_READ, 1));
  return made;
}

WakeRing::~WakeRing() {
  if (taken_ != nullptr) munmap(taken_, page_bytes());
  if (put_ != nullptr) munmap(const_cast<std::uint64_t*>(put_), page_bytes());
}

// A record for an earlier arm() wakes once too often, which is harmless. So the ring is emptied
// before the bit is set, and never between that and sleep. Ports check for the end of an operation
// by sequentially consistent loads, which do not overtake the bit.
void WakeRing::arm(unisono_nic_slot& slot) {
  empty();
  std::atomic_ref(slot.waiting).fetch_or(bit_, std::memory_order_seq_cst);
}

void WakeRing::disarm(unisono_nic_slot& slot) {
  std::atomic_ref(slot.waiting).fetch_and(~bit_, std::memory_order_relaxed);
  empty();
}

// Records say nothing but that there is one; the program may still be writing the last.
void WakeRing::empty() {
  const std::uint64_t put =
      std::atomic_ref(*const_cast<std::uint64_t*>(put_)).load(std::memory_order_acquire);
  std::atomic_ref(*taken_).store(put, std::memory_order_release);
}

void WakeRing::sleep(std::int64_t timeout_ns) const {
  const std::int64_t limit = std::max<std::int64_t>(timeout_ns, 0);
  const timespec time{.tv_sec = limit / base::kSecond, .tv_nsec = limit % base::kSecond};
  pollfd source = {ring_.get(), POLLIN, 0};
  ppoll(&source, 1, &time, nullptr);
}

}  // namespace unisono::nic

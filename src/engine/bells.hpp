// SPDX-License-Identifier: BSD-3-Clause
// Bells: how a rank sleeps until another has done something for it, and how it is woken. A sleeper
// announces itself, looks once more, and then sleeps on its bell's futex; whoever raises a flag
// looks whether anyone sleeps at all, and rings. The announcement has to be ordered against the
// flag's store on the other side: sleepers do that for both with membarrier(2), so the data path
// needs no fence; where some process cannot, all ring with a fence.
//
// The structs lie in the job's shared memory. One bell per rank of the job, used by all threads of
// that rank.
#pragma once

#include <atomic>
#include <cstdint>

namespace unisono::engine {

struct alignas(64) Bell {
  std::atomic<std::uint32_t> strokes{0};   // the futex word
  std::atomic<std::uint32_t> sleepers{0};  // threads that sleep, or are about to
};

struct alignas(64) BellTower {
  std::atomic<std::uint32_t> sleeping{0};  // threads of all ranks: the one word that ringers read
  std::atomic<std::uint32_t> needs_fence{0};  // some process has no membarrier
};

class Bells {
 public:
  Bells(BellTower& tower, Bell* bells) : tower_(&tower), bells_(bells) {}

  // Makes sleeping possible for this process; before the job's first operation.
  void enrol();

  // After a store that `rank` may wait for.
  void ring(int rank) {
    if (anyone_asleep()) [[unlikely]]
      wake(rank);
  }
  bool anyone_asleep() {
    if (tower_->needs_fence.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      std::atomic_ref(fence_).fetch_add(1, std::memory_order_seq_cst);
    }
    return tower_->sleeping.load(std::memory_order_relaxed) != 0;
  }
  // Wakes the rank's sleepers, if it has any.
  void wake(int rank);

  // Sleep is three calls: announce(); look again for what is awaited; then sleep() or withdraw().
  std::uint32_t announce(int rank);
  void withdraw(int rank);
  // Until rung or the time is over (false); ends the announcement.
  bool sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns);

 private:
  BellTower* tower_;
  Bell* bells_;
  alignas(4) std::uint32_t fence_ = 0;  // an atomic on it is the fence
};

}  // namespace unisono::engine

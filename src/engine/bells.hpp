// SPDX-License-Identifier: BSD-3-Clause
// Bells: how a rank sleeps until another has done something for it, and how it is woken. A sleeper
// announces itself, looks once more, and then sleeps on its bell's futex; whoever raises a flag
// looks whether anyone sleeps at all, and rings. The announcement has to be ordered against the
// flag's store on the other side: sleepers do that for both with membarrier(2), so the data path
// needs no fence; where some process cannot, or wishes so, all ring with a fence.
//
// Where a rank sleeps on descriptors as well, as on its datagrams, others ring a pipe instead
// (engine/bell_pipes.hpp).
//
// The structs lie in the job's shared memory. One bell per rank of the job, used by all threads of
// that rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "engine/bell_pipes.hpp"

namespace unisono::engine {

struct alignas(64) Bell {
  std::atomic<std::uint32_t> strokes{0};   // the futex word
  std::atomic<std::uint32_t> sleepers{0};  // threads that sleep on it, or are about to
  std::atomic<std::uint32_t> dozes{0};     // whether one sleeps on the pipe, or is about to
  PipeAddress pipe;
};

struct alignas(64) BellTower {
  std::atomic<std::uint32_t> sleeping{0};  // threads of all ranks: the one word that ringers read
  std::atomic<std::uint32_t> needs_fence{0};  // some process does not call membarrier
  std::atomic<std::uint32_t> no_pipes{0};     // some process could not open another's
};

class Bells {
 public:
  Bells(BellTower& tower, Bell* bells) : tower_(&tower), bells_(bells) {}

  // Makes sleeping possible for this process; before the job's first operation. `by_fence`: ringing
  // costs a fence and sleeping no membarrier, which interrupts all cores that run ranks.
  void enrol(bool by_fence = false);
  // Afterwards: this process's `rank`, of `ranks`, has a pipe, and can wake others that have one.
  base::Status make_pipe(int rank, int ranks);

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

  // Sleep is: announce(); look again for what is awaited; sleep() if it is not there; withdraw().
  std::uint32_t announce(int rank);
  void withdraw(int rank);
  // Until rung or the time is over (false).
  bool sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns);

  // The same for one thread of a rank, which sleeps on descriptors until pipe() or another is
  // readable. False: there is no pipe, not all can open the others', or another thread does that.
  bool announce_dozing(int rank);
  void withdraw_dozing(int rank);
  int pipe() const {
    const bool usable = pipes_ != nullptr && tower_->no_pipes.load(std::memory_order_relaxed) == 0;
    return usable ? pipes_->descriptor() : -1;
  }

 private:
  void announce_one();

  BellTower* tower_;
  Bell* bells_;
  std::unique_ptr<BellPipes> pipes_;
  alignas(4) std::uint32_t fence_ = 0;  // an atomic on it is the fence
};

}  // namespace unisono::engine

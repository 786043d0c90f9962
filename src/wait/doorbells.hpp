// SPDX-License-Identifier: BSD-3-Clause
// Doorbells: how a rank sleeps until another rank has done something for it, and how it is woken. A
// sleeper announces itself, looks once more, and sleeps on the futex of its doorbell. A rank that
// raises a flag looks whether anybody sleeps, and rings the doorbell if so. The announcement must
// be ordered against the store of the flag. Sleepers do that for both sides by membarrier(2), so
// the data path needs no fence. If a process lacks membarrier, or asks for it, all ring with a
// fence.
//
// A rank that has been woken is not awake at once where ranks outnumber cores. Until it announces
// itself again, further rings would be calls of the kernel for nothing, so the first one tells the
// others.
//
// A rank that also sleeps on descriptors, such as its datagrams, is woken by a pipe instead
// (wait/wake_pipes.hpp). This is called a poll-sleep.
//
// The structs lie in the job's shared memory: one doorbell per rank, for all threads of that rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "wait/wake_pipes.hpp"

namespace unisono::wait {

// Whether a thread of the rank is in poll-sleep, or about to be.
enum class PollSleeper : std::uint32_t { none, asleep, rung };

struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> wake_sequence{0};  // the futex word
  std::atomic<std::uint32_t> sleepers{0};       // threads that sleep on it, or are about to
  std::atomic<std::uint32_t> is_rung{0};        // since the last of them announced itself
  std::atomic<PollSleeper> poll_sleeper{PollSleeper::none};
  PipeAddress pipe;
};

struct alignas(64) SleeperTable {
  std::atomic<std::uint32_t> sleeping{0};  // threads of all ranks: the one word that ringers read
  std::atomic<std::uint32_t> needs_fence{0};  // some process does not call membarrier
  std::atomic<std::uint32_t> no_pipes{0};     // some process could not open another's
};

class Doorbells {
 public:
  Doorbells(SleeperTable& table, Doorbell* doorbells) : table_(&table), doorbells_(doorbells) {}

  // Makes sleeping possible for this process. Call it before the job's first operation. With
  // `by_fence`, ringing costs a fence, and sleeping costs no membarrier, which interrupts all cores
  // that run ranks.
  void register_process(bool by_fence = false);
  // Call it after that. It gives `rank` of this process, of `ranks`, a pipe, and lets it ring the
  // pipes of others.
  base::Status make_pipe(int rank, int ranks);

  // Call it after a store for which `rank` may wait.
  void ring(int rank) {
    if (anyone_asleep()) [[unlikely]]
      wake(rank);
  }
  bool anyone_asleep() {
    if (table_->needs_fence.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      std::atomic_ref(fence_).fetch_add(1, std::memory_order_seq_cst);
    }
    return table_->sleeping.load(std::memory_order_relaxed) != 0;
  }
  // Wakes the rank's sleepers, if it has any.
  void wake(int rank);

  // To sleep: announce(); check the condition again; sleep() if it does not hold yet; withdraw().
  std::uint32_t announce(int rank);
  void withdraw(int rank);
  // Sleeps until rung; false if the time is over.
  bool sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns);

  // The same for one thread of a rank that sleeps on descriptors, until pipe() or another one is
  // readable. False if there is no pipe, if not all processes can open the others' pipes, or if
  // another thread is in poll-sleep.
  bool announce_poll_sleep(int rank);
  void withdraw_poll_sleep(int rank);
  int pipe() const {
    const bool usable = pipes_ != nullptr && table_->no_pipes.load(std::memory_order_relaxed) == 0;
    return usable ? pipes_->descriptor() : -1;
  }

 private:
  void announce_sleeper();

  SleeperTable* table_;
  Doorbell* doorbells_;
  std::unique_ptr<WakePipes> pipes_;
  alignas(4) std::uint32_t fence_ = 0;  // an atomic operation on it is the fence
};

}  // namespace unisono::wait

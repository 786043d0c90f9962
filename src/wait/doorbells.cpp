// SPDX-License-Identifier: BSD-3-Clause
#include "wait/doorbells.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait/futex.hpp"

namespace unisono::wait {
namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void Doorbells::register_process(bool by_fence) {
  if (by_fence || membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0) {
    table_->needs_fence.store(1, std::memory_order_seq_cst);
  }
}

void Doorbells::wake(int rank) {
  Doorbell& doorbell = doorbells_[rank];
  if (doorbell.sleepers.load(std::memory_order_relaxed) != 0 &&
      doorbell.is_rung.load(std::memory_order_relaxed) == 0 &&
      doorbell.is_rung.exchange(1, std::memory_order_seq_cst) == 0) {
    doorbell.wake_sequence.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(doorbell.wake_sequence);
  }
  PollSleeper state = doorbell.poll_sleeper.load(std::memory_order_relaxed);
  if (state != PollSleeper::asleep) return;
  if (!doorbell.poll_sleeper.compare_exchange_strong(state, PollSleeper::rung,
                                                     std::memory_order_seq_cst)) {
    return;
  }
  if (pipes_ == nullptr || pipes_->ring(rank, doorbell.pipe) == WakePipes::Rung::unreachable) {
    // The sleeper looks around soon, without the pipe. From then on it sleeps on its futex.
    table_->no_pipes.store(1, std::memory_order_relaxed);
  }
}

base::Status Doorbells::make_pipe(int rank, int ranks) {
  pipes_ = std::make_unique<WakePipes>(ranks);
  return pipes_->make(doorbells_[rank].pipe);
}

bool Doorbells::announce_poll_sleep(int rank) {
  PollSleeper state = PollSleeper::none;
  if (pipe() < 0 || !doorbells_[rank].poll_sleeper.compare_exchange_strong(
                        state, PollSleeper::asleep, std::memory_order_seq_cst)) {
    return false;
  }
  announce_sleeper();
  return true;
}

void Doorbells::withdraw_poll_sleep(int rank) {
  table_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  pipes_->drain();
  doorbells_[rank].poll_sleeper.store(PollSleeper::none, std::memory_order_seq_cst);
}

void Doorbells::announce_sleeper() {
  table_->sleeping.fetch_add(1, std::memory_order_seq_cst);
  if (table_->needs_fence.load(std::memory_order_relaxed) == 0) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
}

std::uint32_t Doorbells::announce(int rank) {
  Doorbell& doorbell = doorbells_[rank];
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  // In this order, whoever sets is_rung afterwards changes the number after it was read. So the
  // sleep ends, and no ring is left out that it needs.
  const std::uint32_t announced = doorbell.wake_sequence.load(std::memory_order_seq_cst);
  doorbell.is_rung.store(0, std::memory_order_seq_cst);
  announce_sleeper();
  return announced;
}

void Doorbells::withdraw(int rank) {
  table_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  doorbells_[rank].sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool Doorbells::sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns) {
  return futex_wait(doorbells_[rank].wake_sequence, announced, timeout_ns);
}

}  // namespace unisono::wait

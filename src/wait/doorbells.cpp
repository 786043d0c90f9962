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
  if (doorbell.sleepers.load(std::memory_order_relaxed) != 0) {
    doorbell.wake_sequence.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(doorbell.wake_sequence);
  }
  if (doorbell.poll_sleepers.load(std::memory_order_relaxed) == 0) return;
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
  if (pipe() < 0 || doorbells_[rank].poll_sleepers.exchange(1, std::memory_order_seq_cst) != 0)
    return false;
  announce_sleeper();
  return true;
}

void Doorbells::withdraw_poll_sleep(int rank) {
  table_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  pipes_->drain();
  doorbells_[rank].poll_sleepers.store(0, std::memory_order_seq_cst);
}

void Doorbells::announce_sleeper() {
  table_->sleeping.fetch_add(1, std::memory_order_seq_cst);
  if (table_->needs_fence.load(std::memory_order_relaxed) == 0) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
}

std::uint32_t Doorbells::announce(int rank) {
  doorbells_[rank].sleepers.fetch_add(1, std::memory_order_seq_cst);
  announce_sleeper();
  return doorbells_[rank].wake_sequence.load(std::memory_order_seq_cst);
}

void Doorbells::withdraw(int rank) {
  table_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  doorbells_[rank].sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool Doorbells::sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns) {
  return futex_wait(doorbells_[rank].wake_sequence, announced, timeout_ns);
}

}  // namespace unisono::wait

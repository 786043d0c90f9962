// SPDX-License-Identifier: BSD-3-Clause
#include "engine/bells.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace unisono::engine {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                 nullptr, 0);
}

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void Bells::enrol(bool by_fence) {
  if (by_fence || membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0) {
    tower_->needs_fence.store(1, std::memory_order_seq_cst);
  }
}

void Bells::wake(int rank) {
  Bell& bell = bells_[rank];
  if (bell.sleepers.load(std::memory_order_relaxed) != 0) {
    bell.strokes.fetch_add(1, std::memory_order_seq_cst);
    futex(bell.strokes, FUTEX_WAKE, INT_MAX, nullptr);
  }
  if (bell.dozes.load(std::memory_order_relaxed) == 0) return;
  if (pipes_ == nullptr || pipes_->ring(rank, bell.pipe) == BellPipes::Rung::unreachable) {
    // It looks around soon, and sleeps on its futex from then on.
    tower_->no_pipes.store(1, std::memory_order_relaxed);
  }
}

base::Status Bells::make_pipe(int rank, int ranks) {
  pipes_ = std::make_unique<BellPipes>(ranks);
  return pipes_->make(bells_[rank].pipe);
}

bool Bells::announce_dozing(int rank) {
  if (pipe() < 0 || bells_[rank].dozes.exchange(1, std::memory_order_seq_cst) != 0) return false;
  announce_one();
  return true;
}

void Bells::withdraw_dozing(int rank) {
  tower_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  pipes_->drain();
  bells_[rank].dozes.store(0, std::memory_order_seq_cst);
}

void Bells::announce_one() {
  tower_->sleeping.fetch_add(1, std::memory_order_seq_cst);
  if (tower_->needs_fence.load(std::memory_order_relaxed) == 0) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
}

std::uint32_t Bells::announce(int rank) {
  bells_[rank].sleepers.fetch_add(1, std::memory_order_seq_cst);
  announce_one();
  return bells_[rank].strokes.load(std::memory_order_seq_cst);
}

void Bells::withdraw(int rank) {
  tower_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  bells_[rank].sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool Bells::sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns) {
  const timespec timeout{.tv_sec = timeout_ns / 1'000'000'000,
                         .tv_nsec = timeout_ns % 1'000'000'000};
  return futex(bells_[rank].strokes, FUTEX_WAIT, announced, &timeout) == 0 || errno == EAGAIN;
}

}  // namespace unisono::engine

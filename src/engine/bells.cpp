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

void Bells::enrol() {
  if (membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0) {
    tower_->needs_fence.store(1, std::memory_order_seq_cst);
  }
}

void Bells::wake(int rank) {
  Bell& bell = bells_[rank];
  if (bell.sleepers.load(std::memory_order_relaxed) == 0) return;
  bell.strokes.fetch_add(1, std::memory_order_seq_cst);
  futex(bell.strokes, FUTEX_WAKE, INT_MAX, nullptr);
}

std::uint32_t Bells::announce(int rank) {
  Bell& bell = bells_[rank];
  bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  tower_->sleeping.fetch_add(1, std::memory_order_seq_cst);
  if (tower_->needs_fence.load(std::memory_order_relaxed) == 0) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
  return bell.strokes.load(std::memory_order_seq_cst);
}

void Bells::withdraw(int rank) {
  tower_->sleeping.fetch_sub(1, std::memory_order_seq_cst);
  bells_[rank].sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool Bells::sleep(int rank, std::uint32_t announced, std::int64_t timeout_ns) {
  const timespec timeout{.tv_sec = timeout_ns / 1'000'000'000,
                         .tv_nsec = timeout_ns % 1'000'000'000};
  const bool rung =
      futex(bells_[rank].strokes, FUTEX_WAIT, announced, &timeout) == 0 || errno == EAGAIN;
  withdraw(rank);
  return rung;
}

}  // namespace unisono::engine

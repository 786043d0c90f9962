// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a job have come, in memory that its processes share. So a rank can come when
// others have, without a message, and sees whether it leaves a barrier before all have come.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::harness {

// Memory of all processes that are forked later: how many ranks have come to each barrier, and
// whether one has given up.
class SharedCounts {
 public:
  explicit SharedCounts(std::size_t count)
      : bytes_((count + 1) * sizeof(std::atomic<int>)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        counts_(static_cast<std::atomic<int>*>(memory_)) {
    UNISONO_CHECK(memory_ != MAP_FAILED, "no memory for the counts of a test");
  }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;
  ~SharedCounts() { munmap(memory_, bytes_); }
  std::atomic<int>& has_failed() const { return counts_[0]; }
  std::atomic<int>& operator[](std::size_t i) const { return counts_[i + 1]; }

 private:
  std::size_t bytes_;
  void* memory_;
  std::atomic<int>* counts_;
};

// Other ranks would wait for the turn of one that has given up or crashed. After a crash they go on
// after a long time, and fail.
class Turns {
 public:
  explicit Turns(const SharedCounts& come) : come_(come) {}
  ~Turns() {
    if (testing::Test::HasFailure()) come_.has_failed() = 1;
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  void await(std::size_t barrier, int own) const {
    const std::int64_t end_ns = base::now_ns() + 60 * base::kSecond;
    while (come_[barrier] < own && come_.has_failed() == 0) {
      std::this_thread::yield();
      if (base::now_ns() > end_ns) come_.has_failed() = 1;
    }
  }

 private:
  const SharedCounts& come_;
};

}  // namespace unisono::harness

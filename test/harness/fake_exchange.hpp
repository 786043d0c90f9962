// SPDX-License-Identifier: BSD-3-Clause
// An allgather for unisono_init_with, among threads and forked processes of a test: it lies in
// memory that they share. Once it is broken, all calls fail. A hook sees each rank's call after it
// has succeeded, and may change what the rank gets or make its call fail. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <span>

#include "harness/await.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

class FakeExchange {
 public:
  static constexpr int kMostSteps = 16;
  static constexpr std::size_t kMostBytes = 1024;
  // Steps count from 1. The output has the records of all ranks. Not 0: this rank's call fails.
  using Hook = std::function<int(int rank, int step, std::span<std::byte> output)>;

  explicit FakeExchange(int ranks, Hook hook = {}) : ranks_(ranks), hook_(std::move(hook)) {
    bytes_ = sizeof(State) + kMostSteps * static_cast<std::size_t>(ranks) * kMostBytes;
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    state_ = new (memory) State;
  }
  ~FakeExchange() { munmap(state_, bytes_); }
  FakeExchange(const FakeExchange&) = delete;
  FakeExchange& operator=(const FakeExchange&) = delete;

  // One rank's end.
  struct End {
    FakeExchange* exchange;
    int rank;
    int fails_everywhere = 0;
    int step = 0;
    unisono_exchange_t functions() {
      return {[](const void* input, void* output, std::size_t bytes, void* user) {
                return static_cast<End*>(user)->allgather(input, output, bytes);
              },
              this, fails_everywhere};
    }
    int allgather(const void* input, void* output, std::size_t bytes) {
      return exchange->allgather(rank, ++step, input, output, bytes);
    }
  };
  End end(int rank, int fails_everywhere = 0) { return {this, rank, fails_everywhere}; }
  void break_now() { state_->broken = true; }
  // How many ranks have begun the step.
  int arrived(int step) const { return state_->arrived[step]; }

 private:
  struct State {
    std::atomic<bool> broken{false};
    std::atomic<int> arrived[kMostSteps + 1]{};
  };

  int allgather(int rank, int step, const void* input, void* output, std::size_t bytes) {
    if (step > kMostSteps || bytes > kMostBytes) return 1;
    std::memcpy(slot(step, rank), input, bytes);
    ++state_->arrived[step];
    const auto is_complete = [&] { return state_->arrived[step] >= ranks_; };
    await([&] { return is_complete() || state_->broken; });
    if (!is_complete()) return 1;
    for (int r = 0; r < ranks_; ++r) {
      std::memcpy(static_cast<std::byte*>(output) + static_cast<std::size_t>(r) * bytes,
                  slot(step, r), bytes);
    }
    if (!hook_) return 0;
    return hook_(rank, step,
                 {static_cast<std::byte*>(output), static_cast<std::size_t>(ranks_) * bytes});
  }
  std::byte* slot(int step, int rank) {
    const auto index = static_cast<std::size_t>((step - 1) * ranks_ + rank);
    return reinterpret_cast<std::byte*>(state_ + 1) + index * kMostBytes;
  }

  int ranks_;
  Hook hook_;
  std::size_t bytes_ = 0;
  State* state_ = nullptr;
};

// Makes one rank's communicator over the exchange.
inline int init_over(FakeExchange& exchange, int rank, int ranks, unisono_comm_t* world,
                     std::int64_t timeout_ms = 0) {
  FakeExchange::End end = exchange.end(rank);
  const unisono_exchange_t functions = end.functions();
  const unisono_init_options_t options{sizeof options, timeout_ms, nullptr, nullptr};
  return unisono_init_with(rank, ranks, &functions, &options, world);
}

}  // namespace unisono::harness

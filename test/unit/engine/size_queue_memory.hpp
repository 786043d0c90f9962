// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of one size class queue, and a view of it for each rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/size_queue.hpp"

namespace unisono::engine::test {

class SizeQueueMemory {
 public:
  SizeQueueMemory(int ranks, int slot_indexes, std::uint64_t first)
      : geometry_{.ranks = ranks, .slot_indexes = slot_indexes, .lines = 4, .data_bytes = 128} {
    const auto control = static_cast<std::size_t>(size_queue_control_bytes(geometry_));
    const auto bytes = control + static_cast<std::size_t>(geometry_.total_bytes());
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    std::fill_n(memory_.get(), bytes, std::byte{0});
    for (int r = 0; r < ranks; ++r) {
      size_queues_.push_back(
          std::make_unique<SizeQueue>(geometry_, r, memory_.get(), memory_.get() + control, first));
    }
  }
  SizeQueue& at(int rank) { return *size_queues_[static_cast<std::size_t>(rank)]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  plan::ReceiveGeometry geometry_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::unique_ptr<SizeQueue>> size_queues_;
};

}  // namespace unisono::engine::test

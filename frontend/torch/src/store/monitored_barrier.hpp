// SPDX-License-Identifier: BSD-3-Clause
// MonitoredBarrier: a barrier over the store, in which rank 0 finds out who is missing. It is slow,
// needs no communicator, and leaves the group as it is when it fails. Its messages begin as those
// of Gloo, which tools look for. One thread at a time uses it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unisono::pytorch {

class MonitoredBarrier {
 public:
  using Milliseconds = std::chrono::milliseconds;

  using StorePtr = c10::intrusive_ptr<c10d::Store>;

  // `stop` ends waits.
  MonitoredBarrier(int rank, int size, const std::atomic<bool>& stop)
      : rank_(rank), size_(size), stop_(stop) {}

  // Throws DistBackendError. At rank 0 it names the first missing rank, or with `names_all` all of
  // them; at other ranks rank 0. It asks the store again and again, and waits for nothing in it.
  void run(StorePtr store, Milliseconds timeout, bool names_all);

 private:
  void lead(Milliseconds timeout, bool names_all);
  void follow(Milliseconds timeout);
  bool wait(const std::string& key, std::chrono::steady_clock::time_point limit);
  std::string key(std::uint64_t number, const std::string& of) const;

  StorePtr store_;  // of the barrier in progress
  int rank_, size_;
  const std::atomic<bool>& stop_;
  std::uint64_t number_ = 0;  // of barriers so far
};

}  // namespace unisono::pytorch

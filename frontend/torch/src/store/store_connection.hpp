// SPDX-License-Identifier: BSD-3-Clause
// StoreConnection: one further connection to the store of a group, for its threads of messages. The
// group's own connection serves one thread at a time, and a thread may wait in it for long. No
// thread waits in this one: each call returns at once. While torch is slow to make it, the group's
// own one takes its place. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

namespace unisono::pytorch {

class StoreConnection {
 public:
  using StorePtr = c10::intrusive_ptr<c10d::Store>;

  explicit StoreConnection(StorePtr store) : shared_(std::make_shared<Shared>()) {
    shared_->own = std::move(store);
  }

  // The first call makes the connection. `look` is called while it waits, and throws to end that.
  StorePtr get(const std::function<void()>& look);

 private:
  // Shared with the thread that connects, which may outlive the group.
  struct Shared {
    StorePtr own;
    std::mutex mutex;
    std::condition_variable changed;
    StorePtr made;
    std::exception_ptr error;
    bool is_connecting = false;
    std::chrono::steady_clock::time_point begin;
  };
  static void connect(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace unisono::pytorch

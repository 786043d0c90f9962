// SPDX-License-Identifier: BSD-3-Clause
// StoreConnection: one further connection to the store of a group, for its threads of messages. The
// group's own connection serves one thread at a time, and a thread of the program may wait in it
// for long. No thread waits in this one: each call returns at once. All groups of the process that
// have the same store share the connection. While torch is slow to make it, or if it cannot be
// made, the group's own one takes its place. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace unisono::pytorch {

class StoreConnection {
 public:
  using StorePtr = c10::intrusive_ptr<c10d::Store>;

  // The group's keys begin with `prefix`. `base` is the store of the program, without prefixes.
  StoreConnection(StorePtr base, std::string prefix);
  ~StoreConnection() { release(); }
  StoreConnection(const StoreConnection&) = delete;
  StoreConnection& operator=(const StoreConnection&) = delete;

  // The keys of the group, over the connection of the program.
  const StorePtr& own() const { return own_; }
  // Over the further connection. The first call of the process makes it. `look` is called while it
  // waits, and throws to end that.
  StorePtr get(const std::function<void()>& look);
  // The group needs it no longer. Ends the connection if no other group has it.
  void release();

 private:
  class Shared;
  static std::shared_ptr<Shared> shared_for(const StorePtr& base);

  std::string prefix_;
  StorePtr own_;
  std::mutex mutex_;                // for the next two
  std::shared_ptr<Shared> shared_;  // none: released
  StorePtr further_;                // none: not made yet
};

}  // namespace unisono::pytorch

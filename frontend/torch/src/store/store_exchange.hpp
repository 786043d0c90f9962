// SPDX-License-Identifier: BSD-3-Clause
// StoreExchange: an allgather over a store of torch, by which the ranks of a group make their job.
// A value in the store is deleted when all ranks have read it, so a later group may have the same
// name. One thread uses it.
#pragma once

#include <unisono/unisono.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace unisono::pytorch {

// Waits for the keys for `turn`, as a wait in a store cannot be ended from outside. False: they are
// not there yet. Throws the store's error; stores have different ones for a wait that was too
// short.
bool wait_a_turn(c10d::Store& store, const std::vector<std::string>& keys,
                 std::chrono::milliseconds turn);

// Tells the others that this rank leaves the group to which the store belongs. Does not throw: the
// store may have ended.
void note_departure(c10d::Store& store, int rank) noexcept;

class StoreExchange {
 public:
  // `name` is that of the group within the store. A wait ends when `stop` becomes true, or when a
  // rank that is missing has left. `members`: the ranks' numbers in the group to which the store
  // belongs, if they may have left it.
  StoreExchange(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size,
                std::chrono::milliseconds timeout, const std::atomic<bool>& stop,
                std::vector<int> members = {});

  // Whether a rank has begun to make the job of this name, or has made it. Does not wait.
  static bool has_begun(c10d::Store& store, const std::string& name, int rank);
  // Makes the job. Throws DistBackendError, or the store's error.
  unisono_comm_t init();

 private:
  static int call(const void* input, void* output, std::size_t bytes, void* self);
  void allgather(const void* input, void* output, std::size_t bytes);
  void wait(const std::vector<std::string>& keys);
  void require_members(const std::vector<std::string>& keys);
  std::string key(int round, int rank) const;
  void clean_up();

  c10::intrusive_ptr<c10d::Store> store_;
  std::string name_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  const std::atomic<bool>& stop_;
  std::vector<int> members_;
  int round_ = 0;
  std::exception_ptr error_;
};

}  // namespace unisono::pytorch

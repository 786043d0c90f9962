// SPDX-License-Identifier: BSD-3-Clause
// StoreExchange: an allgather over a store of torch, by which the ranks of a group make their job.
// A value in the store is deleted when all ranks have read it, so a later group may have the same
// name. One thread uses it.
#pragma once

#include <unisono/unisono.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
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

// The other rank of a job of two that exchange messages. All numbers are those of the group to
// which the store belongs.
struct MessagePeer {
  std::string message;  // for errors: "unisono:recv from rank 2"
  int rank = 0;
  bool may_leave = false;                 // a rank that has left the group is not waited for
  std::function<std::string()> why_lost;  // empty: it is not lost, as far as is known
};

class StoreExchange {
 public:
  using Clock = std::chrono::steady_clock;
  // Each wait for the other ranks ends after `timeout`, the first one at `end`.
  struct Limit {
    std::chrono::milliseconds timeout;
    Clock::time_point end;
  };

  // `name` is that of the group within the store. A wait ends when `stop` becomes true, or when the
  // peer is lost.
  StoreExchange(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size,
                const Limit& limit, const std::atomic<bool>& stop,
                std::optional<MessagePeer> peer = {});

  // Whether a rank has begun to make the job of this name, or has made it. Does not wait.
  static bool has_begun(c10d::Store& store, const std::string& name, int rank);
  // Makes the job. Throws DistBackendError, or the store's error.
  unisono_comm_t init();

 private:
  static int call(const void* input, void* output, std::size_t bytes, void* self);
  void allgather(const void* input, void* output, std::size_t bytes);
  void wait(const std::vector<std::string>& keys);
  void require_peer(const std::string& key);
  std::exception_ptr error_of_store();
  std::string describe_missing(const std::vector<std::string>& keys);
  std::string key(int round, int rank) const;
  void clean_up();

  c10::intrusive_ptr<c10d::Store> store_;
  std::string name_;
  int rank_, size_;
  Limit limit_;
  const std::atomic<bool>& stop_;
  std::optional<MessagePeer> peer_;
  int round_ = 0;
  std::exception_ptr error_;
};

}  // namespace unisono::pytorch

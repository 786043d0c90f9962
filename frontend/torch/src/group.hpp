// SPDX-License-Identifier: BSD-3-Clause
// Group: the communicator of a process group. It runs one call at a time, from any thread, with a
// deadline, and turns the library's errors into torch's. A call that is aborted, late or
// interrupted by a signal is cancelled for all ranks. If a rank refuses a call for its arguments,
// the other ranks hear it at once. If all ranks have refused that call, the group goes on at the
// next one.
#pragma once

#include <unisono/unisono.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "errors.hpp"
#include "own_process.hpp"
#include "store/store_exchange.hpp"

namespace unisono::pytorch {

class Group {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  // The limit of an operation that takes one call or more.
  struct Limit {
    Limit(Milliseconds of_all) : timeout(of_all), end(Clock::now() + of_all) {}  // NOLINT: implicit
    Milliseconds timeout;
    Clock::time_point end;
  };

  // Makes the job of this group: all its ranks do.
  Group(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank, int size,
        Milliseconds timeout);
  // For a job that is made by start(), on another thread.
  Group() = default;
  ~Group() { close(); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // `peer`: as StoreExchange has it. `ranks`: the numbers by which messages name the ranks.
  void start(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
             int size, const Limit& limit, std::optional<MessagePeer> peer = {},
             std::vector<int> ranks = {});
  // Runs the call and throws its error. `call(comm)` makes the library's calls for one operation
  // and returns their code; it may throw BadArgument. `name` is that of the operation, for
  // messages.
  template <class Call>
  void run(const char* name, const Limit& limit, const Call& call) {
    own_process_.require(name);
    const std::lock_guard lock(mutex_);
    begin(name, limit);
    int code = UNISONO_OK;
    try {
      code = call(comm_);
      if (code == UNISONO_OK) [[likely]]
        return note_success();
    } catch (const BadArgument& why) {
      refuse(name, why.what());
      why.raise(name);
    } catch (const std::exception& error) {  // of torch, for instance for lack of memory
      refuse(name, error.what());
      throw;
    }
    raise_if_refused(name, code);
    raise(name, limit.timeout);
  }
  // Memory that the other ranks of this host can read, for unisono_memory_free; null: none is to be
  // had, or the group has ended. Any thread.
  void* allocate(std::size_t bytes);
  // Ends the call in progress, for all ranks, and all later ones.
  void abort();
  bool is_aborted() const { return is_aborted_; }
  // Later calls fail; one in progress goes on.
  void stop_accepting() { is_closing_ = true; }
  // How the rank was lost, or that it has left, by what the library knows now. Empty: it is there,
  // or cannot be asked for because a call is in progress. Any thread may call it.
  std::string why_lost(int rank);
  // Whether any thread is in a call.
  bool is_in_call() const { return !std::unique_lock(mutex_, std::try_to_lock).owns_lock(); }
  // As long as this object lives.
  const std::atomic<bool>& abort_flag() const { return is_aborted_; }
  // In a forked child it does nothing, as abort() does.
  void close();

 private:
  static int asks_to_stop(void* group);
  void begin(const char* name, const Limit& limit);
  void require_open(const char* name) const;
  void refuse(const char* name, const char* why);
  void note_refusal();
  // The library has refused this call for its arguments, and has told the other ranks.
  void raise_if_refused(const char* name, int code);
  bool have_all_refused(const char* name);
  void recover(const char* name);
  void note_success();
  void note_failure();
  [[noreturn]] void raise(const char* name, Milliseconds timeout);
  std::string last_error() const;

  OwnProcess own_process_;
  mutable std::mutex mutex_;
  std::mutex ending_;  // by allocate() and close(): a call in progress has the other one
  unisono_comm_t comm_ = nullptr;
  unisono_comm_t world_ = nullptr;  // of the job; comm_ is another one after a refused call
  bool is_whole_ = true;            // all calls are collectives of the process group
  std::uint64_t calls_ = 0;
  bool has_refused_ = false;  // the last call
  bool has_failed_ = false;   // for good
  int rank_ = 0;              // by which messages name it
  std::vector<int> ranks_;    // by which messages name the ranks; empty: as the library does
  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> is_closing_ = false;
  // These belong to the call in progress; the thread that runs it uses them.
  Clock::time_point deadline_;
  bool is_late_ = false;
  std::exception_ptr error_;  // of Python's handler of a signal
};

}  // namespace unisono::pytorch

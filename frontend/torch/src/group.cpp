// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include <string>
#include <utility>

#include "signals.hpp"
#include "store/store_exchange.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
             int size, Milliseconds timeout) {
  start(store, name, rank, size, timeout);
}

void Group::start(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
                  int size, Milliseconds timeout, std::vector<int> members) {
  TORCH_CHECK_WITH(DistBackendError, !is_closing_, "unisono: the group has been shut down");
  StoreExchange exchange(store, name, rank, size, timeout, is_aborted_, std::move(members));
  const unisono_comm_t comm = exchange.init();
  const std::lock_guard lock(mutex_);
  comm_ = comm;
  rank_ = rank;
  unisono_set_interrupt(comm_, &asks_to_stop, this);
}

void Group::begin(const char* name, Milliseconds timeout) {
  // abort() may have come amid a call that did not wait, so that the others were not told.
  if (is_aborted_ && comm_ != nullptr) unisono_refuse(comm_, "the group has been aborted");
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr && !is_aborted_ && !is_closing_, name,
                   ": the group has been ", is_aborted_ ? "aborted" : "shut down");
  deadline_ = Clock::now() + timeout;
  is_late_ = false;
}

void Group::refuse(const char* name, const char* why) {
  unisono_refuse(comm_, (std::string(name) + ": " + why).c_str());
}

void Group::raise(const char* name, Milliseconds timeout) {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  std::string text = std::string(name) + ": " + unisono_last_error();
  if (is_late_) {
    text = std::string(name) + ": rank " + std::to_string(rank_) + " timed out at its timeout of " +
           std::to_string(timeout.count()) +
           " ms, and the group has ended: " + unisono_last_error();
  } else if (is_aborted_) {
    text = std::string(name) + ": the group has been aborted";
  }
  C10_THROW_ERROR(DistBackendError, text);
}

// A call in progress on another thread sees the flag, and is cancelled. Otherwise the other ranks
// are told here, as they may wait for a call that does not come.
void Group::abort() {
  is_aborted_ = true;
  if (!own_process_.is_here()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && comm_ != nullptr) unisono_refuse(comm_, "the group has been aborted");
}

void* Group::allocate(std::size_t bytes) {
  own_process_.require("unisono: an allocation");
  const std::lock_guard lock(ending_);
  void* block = nullptr;
  if (comm_ != nullptr) unisono_memory_alloc(comm_, bytes, &block);
  return block;
}

// On the thread that waits in a call.
int Group::asks_to_stop(void* group) {
  auto& self = *static_cast<Group*>(group);
  if (self.is_aborted_) return 1;
  self.error_ = exception_of_signals();
  self.is_late_ = Clock::now() >= self.deadline_;
  if (self.error_) return 1;
  return self.is_late_ ? UNISONO_INTERRUPT_LATE : 0;
}

void Group::close() {
  if (!own_process_.is_here()) return;
  const std::scoped_lock lock(mutex_, ending_);
  // An error that nobody has seen is one of a call that nobody has waited for.
  if (comm_ != nullptr) unisono_finalize(std::exchange(comm_, nullptr));
}

}  // namespace unisono::pytorch

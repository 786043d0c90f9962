// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include <string>
#include <utility>

#include "signals.hpp"

namespace unisono::pytorch {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Replaces the numbers after "rank ".
std::string renumbered(const std::string& text, const std::vector<int>& ranks) {
  const std::string word = "rank ";
  std::string result;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t found = text.find(word, begin);
    if (found == std::string::npos) break;
    const std::size_t number = found + word.size();
    std::size_t end = number;
    while (end < text.size() && is_digit(text[end])) ++end;
    result += text.substr(begin, number - begin);
    const std::size_t digits = end - number;
    const auto rank = static_cast<std::size_t>(digits == 1 ? text[number] - '0' : -1);
    result += rank < ranks.size() ? std::to_string(ranks[rank]) : text.substr(number, digits);
    begin = end;
  }
  return result + text.substr(begin);
}

}  // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
             int size, Milliseconds timeout) {
  start(store, name, rank, size, timeout);
}

void Group::start(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name, int rank,
                  int size, const Limit& limit, std::optional<MessagePeer> peer,
                  std::vector<int> ranks) {
  TORCH_CHECK_WITH(DistBackendError, !is_closing_, "unisono: the group has been shut down");
  StoreExchange exchange(store, name, rank, size, {limit.timeout, limit.end}, is_aborted_,
                         std::move(peer));
  const unisono_comm_t comm = exchange.init();
  const std::lock_guard lock(mutex_);
  comm_ = comm;
  rank_ = ranks.empty() ? rank : ranks[static_cast<std::size_t>(rank)];
  ranks_ = std::move(ranks);
  unisono_set_interrupt(comm_, &asks_to_stop, this);
}

void Group::begin(const char* name, const Limit& limit) {
  // abort() may have come amid a call that did not wait, so that the others were not told.
  if (is_aborted_ && comm_ != nullptr) unisono_refuse(comm_, "the group has been aborted");
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr && !is_aborted_ && !is_closing_, name,
                   ": the group has been ", is_aborted_ ? "aborted" : "shut down");
  deadline_ = limit.end;
  is_late_ = false;
}

void Group::refuse(const char* name, const char* why) {
  unisono_refuse(comm_, (std::string(name) + ": " + why).c_str());
}

void Group::raise(const char* name, Milliseconds timeout) {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  std::string text = std::string(name) + ": " + last_error();
  if (is_late_) {
    text = std::string(name) + ": rank " + std::to_string(rank_) + " timed out at its timeout of " +
           std::to_string(timeout.count()) + " ms, and the group has ended: " + last_error();
  } else if (is_aborted_) {
    text = std::string(name) + ": the group has been aborted";
  }
  C10_THROW_ERROR(DistBackendError, text);
}

std::string Group::last_error() const {
  const std::string text = unisono_last_error();
  return ranks_.empty() ? text : renumbered(text, ranks_);
}

// It takes no part of other ranks, and does not fail the communicator.
std::string Group::why_lost(int rank) {
  if (!own_process_.is_here() || is_aborted_) return {};
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || comm_ == nullptr) return {};
  unisono_rank_state_t state{};
  state.size = sizeof state;
  return unisono_comm_rank_state(comm_, rank, &state) == UNISONO_OK ? state.why : "";
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

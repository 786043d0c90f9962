// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "signals.hpp"

namespace unisono::pytorch {
namespace {

// The word that each rank publishes in the communicator: how its last call has ended.
std::uint64_t made(std::uint64_t call) { return 2 * call; }
std::uint64_t refused(std::uint64_t call) { return 2 * call + 1; }
constexpr std::uint64_t kFailed = std::numeric_limits<std::uint64_t>::max();
// Between two questions for the other ranks' words.
constexpr std::chrono::microseconds kShortestPause{50}, kLongestPause{2000};

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
  comm_ = world_ = comm;
  is_whole_ = ranks.empty();
  rank_ = ranks.empty() ? rank : ranks[static_cast<std::size_t>(rank)];
  ranks_ = std::move(ranks);
  unisono_set_interrupt(comm_, &asks_to_stop, this);
}

void Group::require_open(const char* name) const {
  // abort() may have come amid a call that did not wait, so that the others were not told.
  if (is_aborted_ && comm_ != nullptr) unisono_refuse(comm_, "the group has been aborted");
  TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr && !is_aborted_ && !is_closing_, name,
                   ": the group has been ", is_aborted_ ? "aborted" : "shut down");
}

void Group::begin(const char* name, const Limit& limit) {
  require_open(name);
  deadline_ = limit.end;
  is_late_ = false;
  if (!is_whole_) return;
  if (has_refused_) [[unlikely]]
    recover(name);
  ++calls_;
}

void Group::note_refusal() {
  has_refused_ = is_whole_ && !has_failed_;
  if (has_refused_) unisono_publish(comm_, refused(calls_));
}

// A group that has failed returns the code of its first error.
void Group::raise_if_refused(const char* name, int code) {
  const bool is_type = code == UNISONO_ERROR_TYPE;
  if (has_failed_ || is_aborted_ || (!is_type && code != UNISONO_ERROR_ARGUMENT)) return;
  const BadArgument why(last_error(), is_type ? BadArgument::Kind::type : BadArgument::Kind::value);
  note_refusal();
  why.raise(name);
}

void Group::refuse(const char* name, const char* why) {
  note_refusal();
  unisono_refuse(comm_, (std::string(name) + ": " + why).c_str());
}

// Asks what the ranks have published until that is certain. A rank that waits in this call hears of
// the refusal, and fails. False: one rank has made the call or has failed, or the time is over.
bool Group::have_all_refused(const char* name) {
  const auto holds = [this](unisono_compare_t how, std::uint64_t word) {
    int result = 0;
    return unisono_query(comm_, how, word, &result) == UNISONO_OK ? result : -1;
  };
  std::chrono::microseconds pause = kShortestPause;
  for (;;) {
    const int all = holds(UNISONO_EQUAL, refused(calls_));
    if (all != 0) return all > 0;
    const bool has_none_made = holds(UNISONO_NOT_EQUAL, made(calls_)) > 0;
    const bool is_none_beyond = holds(UNISONO_LESS_EQUAL, refused(calls_)) > 0;
    if (!has_none_made || !is_none_beyond || Clock::now() >= deadline_) return false;
    require_open(name);
    if (const std::exception_ptr error = exception_of_signals()) std::rethrow_exception(error);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

// The communicator has failed by the call that this rank has refused. Nothing of that call was
// sent, so all ranks go on in another one if none has made it. Otherwise the next call tells why.
void Group::recover(const char* name) {
  has_refused_ = false;
  bool have_all = false;
  try {
    have_all = have_all_refused(name);
  } catch (...) {
    note_failure();
    throw;
  }
  unisono_comm_t made = nullptr;
  int size = 0, of_all = 0;
  if (!have_all || unisono_shrink(comm_, &made) != UNISONO_OK) return note_failure();
  unisono_comm_size(comm_, &of_all);
  unisono_comm_size(made, &size);
  {
    const std::lock_guard lock(ending_);
    if (comm_ != world_) unisono_comm_free(comm_);
    comm_ = made;
  }
  unisono_set_interrupt(comm_, &asks_to_stop, this);
  if (size != of_all) {  // a rank was lost meanwhile
    unisono_refuse(comm_, "ranks are lost");
    note_failure();
  }
}

void Group::note_success() {
  if (is_whole_) unisono_publish(comm_, made(calls_));
}

// A rank that has refused this call does not wait for it.
void Group::note_failure() {
  has_failed_ = true;
  if (is_whole_) unisono_publish(comm_, kFailed);
}

void Group::raise(const char* name, Milliseconds timeout) {
  const std::string why = last_error();
  note_failure();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  std::string text = std::string(name) + ": " + why;
  if (is_late_) {
    text = std::string(name) + ": rank " + std::to_string(rank_) + " timed out at its timeout of " +
           std::to_string(timeout.count()) + " ms, and the group has ended: " + why;
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
  if (std::exchange(comm_, nullptr) != nullptr) unisono_finalize(world_);
}

}  // namespace unisono::pytorch

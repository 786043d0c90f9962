// SPDX-License-Identifier: BSD-3-Clause
#include "store/store_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "errors.hpp"

namespace unisono::pytorch {
namespace {

using Clock = StoreExchange::Clock;
// A waiting rank looks so often whether the group has been aborted.
constexpr std::chrono::milliseconds kTurn{500};
// The library may notice only some time after the store's end that the rank which hosted it is
// lost.
constexpr std::chrono::milliseconds kNoticing{1000};
// Between two questions to the store: a part of the wait until now.
constexpr std::chrono::microseconds kShortestPause{200}, kLongestPause{20'000};

std::string departure_key(int rank) { return "unisono/left/" + std::to_string(rank); }

}  // namespace

void note_departure(c10d::Store& store, int rank) noexcept {
  try {
    store.set(departure_key(rank), std::vector<std::uint8_t>{1});
  } catch (const std::exception&) {  // nobody can read it
  }
}

// By questions: torch logs two warnings for each wait in a TCPStore that takes longer than its
// limit.
bool wait_a_turn(c10d::Store& store, const std::vector<std::string>& keys,
                 std::chrono::milliseconds turn) {
  const Clock::time_point begin = Clock::now();
  while (!store.check(keys)) {
    const Clock::duration elapsed = Clock::now() - begin;
    if (elapsed >= turn) return false;
    const auto pause = std::clamp<Clock::duration>(elapsed / 4, kShortestPause, kLongestPause);
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, turn - elapsed));
  }
  return true;
}

StoreExchange::StoreExchange(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank,
                             int size, const Limit& limit, const std::atomic<bool>& stop,
                             std::optional<MessagePeer> peer)
    : store_(std::move(store)),
      name_(std::move(name)),
      rank_(rank),
      size_(size),
      limit_(limit),
      stop_(stop),
      peer_(std::move(peer)) {}

unisono_comm_t StoreExchange::init() {
  const unisono_exchange_t exchange{&StoreExchange::call, this, 0};
  unisono_init_options_t options{};
  options.size = sizeof options;
  constexpr std::int64_t kMostMs = 24 * 60 * 60 * 1000;
  options.timeout_ms = std::clamp<std::int64_t>(limit_.timeout.count(), 1, kMostMs);
  unisono_comm_t comm = nullptr;
  const int code = unisono_init_with(rank_, size_, &exchange, &options, &comm);
  if (error_) std::rethrow_exception(error_);
  if (code != UNISONO_OK) C10_THROW_ERROR(DistBackendError, unisono_last_error());
  try {
    clean_up();
  } catch (...) {
    unisono_finalize(comm);  // or the other ranks would wait for this one
    throw;
  }
  return comm;
}

bool StoreExchange::has_begun(c10d::Store& store, const std::string& name, int rank) {
  return store.check({"unisono/" + name + "/0/" + std::to_string(rank)});
}

int StoreExchange::call(const void* input, void* output, std::size_t bytes, void* self) {
  auto& exchange = *static_cast<StoreExchange*>(self);
  try {
    exchange.allgather(input, output, bytes);
    return 0;
  } catch (const c10::DistBackendError&) {
    exchange.error_ = std::current_exception();
  } catch (const c10::DistError&) {
    exchange.error_ = exchange.error_of_store();
  } catch (...) {
    exchange.error_ = std::current_exception();
  }
  return 1;
}

// The rank that hosted the store may be the peer.
std::exception_ptr StoreExchange::error_of_store() {
  const std::exception_ptr error = std::current_exception();
  if (!peer_) return error;
  const Clock::time_point limit = Clock::now() + kNoticing;
  while (!stop_ && Clock::now() < limit) {
    const std::string why = peer_->why_lost();
    if (!why.empty()) {
      return std::make_exception_ptr(
          c10::DistBackendError({__func__, __FILE__, __LINE__}, peer_->message + ": " + why));
    }
    std::this_thread::sleep_for(kLongestPause);
  }
  return error;
}

std::string StoreExchange::key(int round, int rank) const {
  return "unisono/" + name_ + "/" + std::to_string(round) + "/" + std::to_string(rank);
}

void StoreExchange::allgather(const void* input, void* output, std::size_t bytes) {
  const auto* const begin = static_cast<const std::uint8_t*>(input);
  store_->set(key(round_, rank_), std::vector<std::uint8_t>(begin, begin + bytes));
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(key(round_, rank));
  wait(keys);
  auto* target = static_cast<std::uint8_t*>(output);
  for (const std::string& each : keys) {
    const std::vector<std::uint8_t> value = store_->get(each);
    TORCH_CHECK_WITH(DistBackendError, value.size() == bytes, "unisono: the store has ",
                     value.size(), " bytes for ", each, ", not ", bytes);
    std::memcpy(target, value.data(), bytes);
    target += bytes;
  }
  // A rank that has written to this round has read the one before.
  if (round_ > 0) store_->deleteKey(key(round_ - 1, rank_));
  ++round_;
}

void StoreExchange::wait(const std::vector<std::string>& keys) {
  const Clock::time_point limit = round_ == 0 ? limit_.end : Clock::now() + limit_.timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now());
    if (wait_a_turn(*store_, keys, std::clamp(left, std::chrono::milliseconds(0), kTurn))) return;
    if (stop_) C10_THROW_ERROR(DistBackendError, "unisono: the group has been aborted");
    if (peer_) require_peer(keys[static_cast<std::size_t>(1 - rank_)]);
    if (Clock::now() < limit) continue;
    C10_THROW_ERROR(DistBackendError, describe_missing(keys));
  }
}

std::string StoreExchange::describe_missing(const std::vector<std::string>& keys) {
  const std::string time = std::to_string(limit_.timeout.count()) + " ms";
  if (peer_) {
    return peer_->message + ": timed out after " + time + ": rank " + std::to_string(peer_->rank) +
           " has not begun its part of the message";
  }
  std::string missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (!store_->check({keys[static_cast<std::size_t>(rank)]})) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
  }
  return "unisono: rank " + std::to_string(rank_) + " waited " + time +
         " for the group to start; missing are ranks " + missing;
}

// A rank writes its last keys before it says that it has left, so its key is looked for once more.
void StoreExchange::require_peer(const std::string& key) {
  std::string why;
  if (peer_->may_leave && store_->check({departure_key(peer_->rank)})) {
    why = "rank " + std::to_string(peer_->rank) + " has left the group";
  } else {
    why = peer_->why_lost();
  }
  if (why.empty() || store_->check({key})) return;
  C10_THROW_ERROR(DistBackendError, peer_->message + ": " + why);
}

// The last rank to call it deletes the remaining keys. The rank that hosts the store may have ended
// by now, and the store with it, which is a DistError. Other errors are faults of the call.
void StoreExchange::clean_up() {
  const std::string count = "unisono/" + name_ + "/ready";
  try {
    if (store_->add(count, 1) < size_) return;
    for (int rank = 0; rank < size_; ++rank) store_->deleteKey(key(round_ - 1, rank));
    store_->deleteKey(count);
  } catch (const c10::DistError&) {
    return;
  }
}

}  // namespace unisono::pytorch

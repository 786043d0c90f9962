// SPDX-License-Identifier: BSD-3-Clause
#include "store/monitored_barrier.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "signals.hpp"
#include "store/store_exchange.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;
// A waiting rank looks so often whether a signal has come.
constexpr std::chrono::milliseconds kTurn{100};
constexpr const char* kEnd = "end";
constexpr char kPassed = 'p', kFailed = 'f';

std::string joined(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

std::string MonitoredBarrier::key(std::uint64_t number, const std::string& of) const {
  return "unisono/monitored-barrier/" + std::to_string(number) + "/" + of;
}

void MonitoredBarrier::run(StorePtr store, Milliseconds timeout, bool names_all) {
  store_ = std::move(store);
  try {
    if (rank_ == 0) {
      lead(timeout, names_all);
    } else {
      follow(timeout);
    }
  } catch (...) {
    store_.reset();
    throw;
  }
  store_.reset();
  ++number_;
}

bool MonitoredBarrier::wait(const std::string& key, Clock::time_point limit) {
  for (;;) {
    const auto left = std::chrono::duration_cast<Milliseconds>(limit - Clock::now());
    if (wait_a_turn(*store_, {key}, std::clamp(left, Milliseconds(1), kTurn))) return true;
    if (const std::exception_ptr error = exception_of_signals()) std::rethrow_exception(error);
    TORCH_CHECK_WITH(DistBackendError, !stop_, "unisono: the group has been aborted");
    if (Clock::now() >= limit) return false;
  }
}

void MonitoredBarrier::lead(Milliseconds timeout, bool names_all) {
  const Clock::time_point limit = Clock::now() + timeout;
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (wait(key(number_, std::to_string(rank)), limit)) continue;
    missing.push_back(rank);
    if (!names_all) break;
  }
  const char result = missing.empty() ? kPassed : kFailed;
  store_->set(key(number_, kEnd), std::vector<std::uint8_t>{static_cast<std::uint8_t>(result)});
  // A rank that has come to this barrier has seen the end of the one before.
  if (missing.empty() && number_ > 0) store_->deleteKey(key(number_ - 1, kEnd));
  TORCH_CHECK_WITH(DistBackendError, timeout.count() > 0 || missing.empty(),
                   "unisono: Rank 0 timed out in monitoredBarrier after 0 ms");
  TORCH_CHECK_WITH(DistBackendError, missing.empty(),
                   "unisono: ", missing.size() > 1 ? "Ranks " : "Rank ", joined(missing),
                   " failed to pass monitoredBarrier in ", timeout.count(), " ms");
}

void MonitoredBarrier::follow(Milliseconds timeout) {
  const Clock::time_point limit = Clock::now() + timeout;
  const std::string own = key(number_, std::to_string(rank_)), end = key(number_, kEnd);
  store_->set(own, std::vector<std::uint8_t>{1});
  const bool has_ended = wait(end, limit);
  const bool has_passed = has_ended && store_->get(end) == std::vector<std::uint8_t>{kPassed};
  if (has_ended) store_->deleteKey(own);
  const char* const why =
      has_ended ? "other ranks are missing there" : "it has not answered in time";
  TORCH_CHECK_WITH(DistBackendError, has_passed, "unisono: Rank ", rank_,
                   " successfully reached monitoredBarrier, but received errors while waiting for "
                   "send/recv from rank 0: ",
                   why);
}

}  // namespace unisono::pytorch

// SPDX-License-Identifier: BSD-3-Clause
#include "store/session.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <vector>

#include "signals.hpp"

namespace unisono::pytorch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kHello = "unisono/hello/";    // of each rank but 0: its number
constexpr const char* kAnswer = "unisono/answer/";  // of each rank but 0: the name proposed
constexpr const char* kProposal = "unisono/proposal";
constexpr const char* kAgreed = "unisono/agreed";  // the name
constexpr std::size_t kLength = 32;                // of each number, as they stand in a row
// Between two looks at the store: a part of the wait until now.
constexpr std::chrono::microseconds kShortestPause{200}, kLongestPause{20'000};

std::string draw() {
  constexpr const char* kDigits = "0123456789abcdef";
  std::random_device source;
  std::string number;
  for (std::size_t i = 0; i < kLength; ++i) number += kDigits[source() % 16];
  return number;
}

std::string key(const char* of, int rank) { return of + std::to_string(rank); }

class Session {
 public:
  Session(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout)
      : store_(store), rank_(rank), size_(size), timeout_(timeout) {}

  std::string lead() {
    std::string proposed;
    for (std::uint64_t count = 0;;) {
      std::vector<int> missing;
      std::string numbers;
      for (int rank = 1; rank < size_; ++rank) {
        const std::string number = value(key(kHello, rank));
        if (number.size() != kLength) missing.push_back(rank);
        numbers += number;
      }
      if (missing.empty() && (name_.empty() || numbers != proposed)) {
        name_ = number_ + "." + std::to_string(count++);
        set(kProposal, numbers + name_);
        proposed = numbers;
      }
      for (int rank = 1; rank < size_ && !name_.empty(); ++rank) {
        const bool has_answered = value(key(kAnswer, rank)) == name_;
        if (!has_answered && std::ranges::count(missing, rank) == 0) missing.push_back(rank);
      }
      if (missing.empty()) break;
      pause(missing);
    }
    set(kAgreed, name_);
    return name_;
  }

  std::string follow() {
    const std::string hello = key(kHello, rank_), answer = key(kAnswer, rank_);
    const std::size_t others = kLength * static_cast<std::size_t>(size_ - 1);
    const std::size_t own = kLength * static_cast<std::size_t>(rank_ - 1);
    set(hello, number_);
    for (;;) {
      const std::string proposal = value(kProposal);
      const bool has_mine =
          proposal.size() > others && proposal.compare(own, kLength, number_) == 0;
      if (has_mine && proposal.substr(others) != name_) {
        name_ = proposal.substr(others);
        set(answer, name_);
      }
      if (!name_.empty() && value(kAgreed) == name_) break;
      pause(have_not_come());
    }
    store_.deleteKey(hello);  // only rank 0 reads them, and not any more
    store_.deleteKey(answer);
    return name_;
  }

 private:
  // Their values are not read: they may be deleted meanwhile, and a store waits for such a key.
  std::vector<int> have_not_come() const {
    std::vector<int> ranks;
    if (name_.empty() && !store_.check({kProposal})) ranks.push_back(0);
    for (int rank = 1; rank < size_; ++rank) {
      if (!store_.check({key(kHello, rank)})) ranks.push_back(rank);
    }
    return ranks;
  }

  void pause(const std::vector<int>& missing) const {
    if (const std::exception_ptr error = exception_of_signals()) std::rethrow_exception(error);
    const Clock::duration elapsed = Clock::now() - begin_;
    std::string names;
    for (const int rank : missing) names += (names.empty() ? "" : ", ") + std::to_string(rank);
    TORCH_CHECK_WITH(DistBackendError, elapsed < timeout_, "unisono: rank ", rank_, " waited ",
                     timeout_.count(), " ms for the group to start; missing are ranks ",
                     names.empty() ? "that came in an earlier start" : names);
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>(elapsed / 4, kShortestPause, kLongestPause));
  }

  // Empty: there is none.
  std::string value(const std::string& of) const {
    if (!store_.check({of})) return {};
    const std::vector<std::uint8_t> bytes = store_.get(of);
    return {bytes.begin(), bytes.end()};
  }

  void set(const std::string& of, const std::string& value) const {
    store_.set(of, std::vector<std::uint8_t>(value.begin(), value.end()));
  }

  c10d::Store& store_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point begin_ = Clock::now();
  const std::string number_ = draw();  // which no other start has
  std::string name_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> open_session(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                             int size, std::chrono::milliseconds timeout) {
  if (size == 1) return c10::make_intrusive<c10d::PrefixStore>(draw(), store);
  Session session(*store, rank, size, timeout);
  const std::string name = rank == 0 ? session.lead() : session.follow();
  return c10::make_intrusive<c10d::PrefixStore>(name, store);
}

}  // namespace unisono::pytorch

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

// Each rank but 0 writes its number here, and the name that it has answered to. No key is
// ever deleted, as a read of a deleted key waits in the store; an empty value stands for none.
constexpr const char* kHello = "unisono/hello/";
constexpr const char* kProposal = "unisono/proposal";  // the numbers of these ranks, and the name
constexpr const char* kAgreed = "unisono/agreed";      // the name; there before a proposal is
constexpr std::size_t kLength = 32;                    // of each number, as they stand in a row
// Between two looks at the store: a part of the wait until now.
constexpr std::chrono::microseconds kShortestPause{200}, kLongestPause{20'000};

std::string draw() {
  constexpr const char* kDigits = "0123456789abcdef";
  std::random_device source;
  std::string number;
  for (std::size_t i = 0; i < kLength; ++i) number += kDigits[source() % 16];
  return number;
}

std::string hello_of(int rank) { return kHello + std::to_string(rank); }

class Session {
 public:
  Session(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout)
      : store_(store), rank_(rank), size_(size), timeout_(timeout) {}

  std::string lead() {
    std::vector<std::string> keys;
    for (int rank = 1; rank < size_; ++rank) keys.push_back(hello_of(rank));
    set(kAgreed, "");
    std::string proposed;
    for (std::uint64_t count = 0;;) {
      std::string numbers;
      std::size_t answers = 0;
      for (const std::string& hello : values(keys)) {
        numbers += hello.substr(0, kLength);
        if (!name_.empty() && hello.ends_with(name_)) ++answers;
      }
      if (numbers.size() == kLength * keys.size() && numbers != proposed) {
        name_ = number_ + "." + std::to_string(count++);
        set(kProposal, numbers + name_);
        proposed = numbers;
      } else if (answers == keys.size()) {
        break;
      }
      pause();
    }
    set(kAgreed, name_);
    return name_;
  }

  // Ranks of an earlier start may still run, and replace this rank's hello; then it says it again.
  std::string follow() {
    const std::string hello = hello_of(rank_);
    const std::size_t others = kLength * static_cast<std::size_t>(size_ - 1);
    const std::size_t own = kLength * static_cast<std::size_t>(rank_ - 1);
    set(hello, number_);
    for (;; pause()) {
      const std::vector<std::string> seen = values({kProposal, kAgreed, hello});
      if (seen.empty()) continue;
      const std::string& proposal = seen[0];
      const bool has_mine =
          proposal.size() > others && proposal.compare(own, kLength, number_) == 0;
      if (has_mine) name_ = proposal.substr(others);
      const bool is_own = seen[2] == number_ + name_;
      if (!name_.empty() && seen[1] == name_) {
        if (is_own) set(hello, "");
        return name_;
      }
      if (!is_own) set(hello, number_ + name_);
    }
  }

 private:
  // Ranks that have not come, or not answered to the proposal that this one has answered. It asks
  // the store for each rank, so for messages only.
  std::vector<int> missing() const {
    std::vector<int> ranks;
    if (rank_ != 0 && !store_.check({kProposal})) ranks.push_back(0);
    for (int rank = 1; rank < size_; ++rank) {
      const std::string hello = value(hello_of(rank));
      const bool is_here = hello.size() >= kLength && hello.substr(kLength) == name_;
      if (rank != rank_ && !is_here) ranks.push_back(rank);
    }
    if (rank_ != 0 && ranks.empty()) ranks.push_back(0);  // of which there is an old proposal
    return ranks;
  }

  void pause() const {
    if (const std::exception_ptr error = exception_of_signals()) std::rethrow_exception(error);
    const Clock::duration elapsed = Clock::now() - begin_;
    if (elapsed >= timeout_) {
      std::string names;
      for (const int rank : missing()) names += (names.empty() ? "" : ", ") + std::to_string(rank);
      TORCH_CHECK_WITH(DistBackendError, names.empty(), "unisono: rank ", rank_, " waited ",
                       timeout_.count(), " ms for the group to start; missing are ranks ", names);
    }
    std::this_thread::sleep_for(
        std::clamp<Clock::duration>(elapsed / 4, kShortestPause, kLongestPause));
  }

  // Empty: not all of them are there.
  std::vector<std::string> values(const std::vector<std::string>& keys) const {
    std::vector<std::string> all;
    if (!store_.check(keys)) return all;
    for (const std::vector<std::uint8_t>& bytes : store_.multiGet(keys)) {
      all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
  }

  std::string value(const std::string& of) const {
    const std::vector<std::string> found = values({of});
    return found.empty() ? "" : found.front();
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

std::string open_session(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                         std::chrono::milliseconds timeout) {
  if (size == 1) return draw();
  Session session(*store, rank, size, timeout);
  return rank == 0 ? session.lead() : session.follow();
}

c10::intrusive_ptr<c10d::Store> without_prefixes(const c10::intrusive_ptr<c10d::Store>& store) {
  auto* const part = dynamic_cast<c10d::PrefixStore*>(store.get());
  return part != nullptr ? part->getUnderlyingNonPrefixStore() : store;
}

}  // namespace unisono::pytorch

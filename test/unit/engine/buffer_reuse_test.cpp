// SPDX-License-Identifier: BSD-3-Clause
// SizeQueue: random operations of several ranks, in a random order of their steps. A model keeps
// what is still read and written in each receive buffer. No rank may write there before that ends,
// and all operations end. A failure prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/prng.hpp"
#include "engine/size_queue.hpp"
#include "unit/engine/size_queue_memory.hpp"

namespace unisono::engine::buffer_reuse_test {
namespace {

using test::SizeQueueMemory;

constexpr std::int64_t kNoLimit = 1 << 20;

// The messages of an operation. One lies in its receiver's buffer, or in that of its sender.
struct Traffic {
  bool at_senders = false;
  std::vector<std::pair<int, int>> messages;  // sender, receiver; from lower to higher ranks
};

class Ranks {
 public:
  Ranks(base::Prng& prng, std::uint64_t first)
      : prng_(prng),
        ranks_(2 + static_cast<int>(prng.below(5))),
        slots_(2 << prng.below(3)),
        first_(first),
        memory_(ranks_, slots_, first),
        next_(static_cast<std::size_t>(ranks_)) {
    // Some jobs have few operations whose buffers others read, and some have many.
    const std::uint64_t at_senders = prng.below(5);
    for (int n = 0; n < 12 * slots_ * kFarTurns / 4; ++n) {
      Traffic& traffic = operations_.emplace_back();
      traffic.at_senders = prng.below(4) < at_senders;
      for (int a = 0; a < ranks_; ++a) {
        for (int b = a + 1; b < ranks_; ++b) {
          if (prng.below(3) == 0) traffic.messages.emplace_back(a, b);
        }
      }
    }
    for (int r = 0; r < ranks_; ++r) speed_.push_back(1 + prng.below(20));
  }

  void run() {
    std::uint64_t steps = 0;
    while (
        !std::ranges::all_of(next_, [&](const Next& n) { return n.done == operations_.size(); })) {
      ASSERT_LT(++steps, 3'000'000U) << "they wait for each other";
      const int rank = static_cast<int>(prng_.below(next_.size()));
      if (prng_.below(20) < speed_[static_cast<std::size_t>(rank)]) step(rank);
      if (testing::Test::HasFailure()) return;
    }
  }
  std::uint64_t farthest() const { return farthest_; }
  std::uint64_t slots() const { return static_cast<std::uint64_t>(slots_); }

 private:
  struct Next {
    std::uint64_t done = 0;  // operations
    bool is_entered = false;
    std::size_t read = 0;  // messages of the operation
  };
  // A message of an operation from its store to its read, or of one that is not stored yet.
  using Buffer = std::pair<int, std::uint64_t>;  // its owner, the slot index

  void step(int rank) {
    Next& next = next_[static_cast<std::size_t>(rank)];
    if (next.done == operations_.size()) return;
    const Traffic& traffic = operations_[next.done];
    SizeQueue& queue = memory_.at(rank);
    const std::uint64_t sequence = first_ + next.done;
    if (!next.is_entered) {
      const plan::Program program = program_of(rank, traffic);
      if (!queue.may_enter(sequence, kNoLimit, program)) return;
      queue.note_entry(sequence, program);
      next.is_entered = true;
      for (const auto& [sender, receiver] : traffic.messages) {
        if (sender == rank) store(next.done, traffic.at_senders ? sender : receiver);
      }
      note_distance(next.done);
      return;
    }
    // One message of those that have come, as a rank that reads slowly.
    for (; next.read < traffic.messages.size(); ++next.read) {
      const auto& [sender, receiver] = traffic.messages[next.read];
      if (receiver != rank) continue;
      const Next& from = next_[static_cast<std::size_t>(sender)];
      const bool is_there = from.done > next.done || (from.done == next.done && from.is_entered);
      if (!is_there) return;
      --unread_[{traffic.at_senders ? sender : receiver, next.done}];
      ++next.read;
      return;
    }
    queue.complete(sequence);
    next = {.done = next.done + 1};
  }

  plan::Program program_of(int rank, const Traffic& traffic) const {
    plan::Program program;
    program.only_owners_read = !traffic.at_senders;
    for (const auto& [sender, receiver] : traffic.messages) {
      if (sender == rank) program.receivers_here.push_back(receiver);
    }
    return program;
  }

  // Into the buffer of `owner`: the operations before it in that slot index have been stored there
  // and read.
  void store(std::uint64_t operation, int owner) {
    ++unread_[{owner, operation}];
    for (std::uint64_t before = operation % slots(); before < operation; before += slots()) {
      const Traffic& traffic = operations_[before];
      const auto reader_of = [&](const std::pair<int, int>& message) {
        return (traffic.at_senders ? message.first : message.second) == owner;
      };
      const auto unread = unread_.find({owner, before});
      EXPECT_TRUE(unread == unread_.end() || unread->second == 0)
          << "operation " << operation << " writes where " << before << " is still read";
      for (const auto& message : traffic.messages) {
        if (!reader_of(message)) continue;
        const Next& sender = next_[static_cast<std::size_t>(message.first)];
        EXPECT_TRUE(sender.done > before || (sender.done == before && sender.is_entered))
            << "operation " << before << " still writes where " << operation << " does";
      }
    }
  }

  void note_distance(std::uint64_t operation) {
    const auto slowest = std::ranges::min(next_, {}, &Next::done).done;
    farthest_ = std::max(farthest_, operation - slowest);
    EXPECT_LT(operation - slowest, kFarTurns * slots());
  }

  base::Prng& prng_;
  const int ranks_, slots_;
  const std::uint64_t first_;
  SizeQueueMemory memory_;
  std::vector<Traffic> operations_;
  std::vector<Next> next_;  // by rank
  std::vector<std::uint64_t> speed_;
  std::map<Buffer, int> unread_;  // messages, by owner and operation
  std::uint64_t farthest_ = 0;
};

TEST(BufferReuse, NoRankWritesWhereAnOperationBeforeIsNotOver) {
  int ahead = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng prng(seed);
    Ranks ranks(prng, 64);
    ranks.run();
    if (testing::Test::HasFailure()) return;
    if (ranks.farthest() > ranks.slots()) ++ahead;
  }
  EXPECT_GT(ahead, 50) << "otherwise no rank overtakes another by more than the slot indexes";
}

}  // namespace
}  // namespace unisono::engine::buffer_reuse_test

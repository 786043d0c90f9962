// SPDX-License-Identifier: BSD-3-Clause
// prove() against trials: sets with several random small changes, most wrong, some right. What
// prove() accepts has to come out right in many random orders of progress, apart and in place.
#include <gtest/gtest.h>

#include "bases.hpp"
#include "check/check.hpp"
#include "harness/scale.hpp"
#include "trial.hpp"

namespace unisono::check::trial_test {
namespace {

using schedule::Op;
using schedule::OpId;
using schedule::OpKind;
using schedule::Range;
using schedule::Schedule;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Changes {
 public:
  explicit Changes(unsigned seed) : random_(seed) {}

  // Returns whether it changed anything.
  bool change(Schedule& s) {
    if (s.ops.empty()) return false;
    Op& op = s.ops[below(s.ops.size())];
    switch (below(7)) {
      case 0:
        return replace_predecessor(s, op);
      case 1:
        return drop_predecessors(op);
      case 2:
        return move_range(op.left);
      case 3:
        return move_range(op.target);
      case 4:
        return move_range(op.right);
      case 5:
        return exchange_neighbours(s);
      default:
        return exchange_targets(s);
    }
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  bool replace_predecessor(Schedule& s, Op& op) {
    if (op.after_count == 0) return false;
    const auto id = static_cast<std::size_t>(&op - s.ops.data());
    s.after[at(op.first_after) + below(at(op.after_count))] = static_cast<OpId>(below(id + 1));
    return true;
  }

  static bool drop_predecessors(Op& op) {
    if (op.after_count == 0) return false;
    --op.after_count;
    return true;
  }

  // To another memory, or by its own length to the side.
  bool move_range(Range& range) {
    if (range.count == 0) return false;
    switch (below(4)) {
      case 0:
        range = schedule::input(range.offset, range.count);
        break;
      case 1:
        range = schedule::output(range.offset, range.count);
        break;
      case 2:
        range.offset += range.count;
        break;
      default:
        range.offset -= std::min(range.offset, range.count);
        break;
    }
    return true;
  }

  // Where neither comes after the other, the set stays as right as it was.
  bool exchange_neighbours(Schedule& s) {
    if (s.ops.size() < 2) return false;
    const std::size_t first = below(s.ops.size() - 1);
    for (const OpId before : s.after_of(s.ops[first + 1])) {
      if (at(before) == first) return false;
    }
    std::swap(s.ops[first], s.ops[first + 1]);
    for (OpId& before : s.after) {
      if (at(before) == first) {
        ++before;
      } else if (at(before) == first + 1) {
        --before;
      }
    }
    return true;
  }

  bool exchange_targets(Schedule& s) {
    if (s.targets.size() < 2) return false;
    std::swap(s.targets[below(s.targets.size())], s.targets[below(s.targets.size())]);
    return true;
  }

  Trial::Random random_;
};

TEST(Trial, FindsTheBasesRight) {
  Trial::Random random(1);
  for (const Base& base : all_bases()) EXPECT_EQ(try_out(base.set, 10, random), "") << base.name;
}

TEST(Trial, NothingThatIsProvedGoesWrong) {
  const std::int64_t sets_per_base = harness::scaled(200);
  constexpr int kOrders = 15;
  Trial::Random random(2);
  Changes changes(3);
  int proved = 0, refused = 0;
  auto bases = hand_written_bases();
  for (Base& base : table_bases({2, 3, 4}, 5)) bases.push_back(std::move(base));
  for (Base& base : unequal_bases({3, 4})) bases.push_back(std::move(base));
  for (const Base& base : bases) {
    for (std::int64_t i = 0; i < sets_per_base; ++i) {
      auto set = base.set;
      int made = 0;
      for (int attempt = 0; attempt < 20 && made < 1 + i % 3; ++attempt) {
        made += changes.change(set[random() % set.size()]) ? 1 : 0;
      }
      if (!prove(set).empty()) {
        ++refused;
        continue;
      }
      ++proved;
      ASSERT_EQ(try_out(set, kOrders, random), "") << "proved, a change of " << base.name << ":\n"
                                                   << schedule::print(set);
    }
  }
  EXPECT_GT(proved, harness::scaled(500));
  EXPECT_GT(refused, harness::scaled(500));
}

}  // namespace
}  // namespace unisono::check::trial_test

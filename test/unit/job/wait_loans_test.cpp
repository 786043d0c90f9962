// SPDX-License-Identifier: BSD-3-Clause
// Who may have a turn of a lent communicator, and when its owner gets it back (job/wait_loans.hpp).
#include "job/wait_loans.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <stdexcept>
#include <thread>

namespace unisono::job::wait_loans_test {
namespace {

class Turns : public Carried {
 public:
  explicit Turns(std::function<bool()> turn) : turn_(std::move(turn)) {}

 private:
  bool carry_on() override { return turn_(); }
  std::function<bool()> turn_;
};

TEST(WaitLoans, EachHasATurnUntilItEnds) {
  WaitLoans loans;
  int first_turns = 0, second_turns = 0;
  Turns first([&] { return ++first_turns < 2; });
  Turns second([&] { return ++second_turns < 3; });
  EXPECT_FALSE(loans.carry());
  loans.lend(first);
  loans.lend(second);
  EXPECT_TRUE(loans.carry());
  EXPECT_TRUE(loans.carry());
  EXPECT_FALSE(loans.carry());
  EXPECT_FALSE(loans.carry());
  EXPECT_EQ(first_turns, 2);
  EXPECT_EQ(second_turns, 3);
  loans.take_back(first);  // it has ended
  EXPECT_TRUE(loans.try_to_take_back(second));
}

TEST(WaitLoans, ATurnWithinATurnIsNone) {
  WaitLoans loans;
  int turns = 0;
  bool carried_within = true;
  Turns other([&] { return ++turns > 0; });
  Turns outer([&] {
    carried_within = loans.carry();
    return true;
  });
  loans.lend(outer);
  loans.lend(other);
  loans.carry();
  EXPECT_FALSE(carried_within);
  EXPECT_EQ(turns, 1);
}

TEST(WaitLoans, ATurnThatThrowsIsOver) {
  WaitLoans loans;
  Turns thrower([]() -> bool { throw std::runtime_error("of the program"); });
  loans.lend(thrower);
  EXPECT_THROW(loans.carry(), std::runtime_error);
  EXPECT_TRUE(loans.try_to_take_back(thrower));
}

// As with a function of the program that waits for a lock of the thread which looks.
TEST(WaitLoans, WhileATurnLastsALookDoesNotWaitAndOthersComeAndGo) {
  WaitLoans loans;
  std::latch begins(1), may_end(1);
  Turns slow([&] {
    begins.count_down();
    may_end.wait();
    return true;
  });
  int turns = 0;
  Turns other([&] { return ++turns > 0; });
  loans.lend(slow);
  std::thread waiting([&] { loans.carry(); });
  begins.wait();
  EXPECT_FALSE(loans.try_to_take_back(slow));
  loans.lend(other);
  EXPECT_TRUE(loans.carry());  // of the other; the first is in use
  EXPECT_EQ(turns, 1);
  EXPECT_TRUE(loans.try_to_take_back(other));
  may_end.count_down();
  loans.take_back(slow);
  EXPECT_FALSE(loans.carry());
  waiting.join();
}

TEST(WaitLoans, TheOwnerGetsItFromThreadsThatHaveTurnAfterTurn) {
  WaitLoans loans;
  std::atomic<bool> is_mine = true, ends = false;
  std::atomic<int> wrong_turns = 0, turns = 0;
  Turns busy([&] {
    if (is_mine) ++wrong_turns;
    ++turns;
    return true;
  });
  const auto wait = [&] {
    while (!ends) loans.carry();
  };
  std::thread first(wait), second(wait);
  for (int round = 0; round < 200; ++round) {
    const int before = turns;
    is_mine = false;
    loans.lend(busy);
    while (turns == before) std::this_thread::yield();
    loans.take_back(busy);
    is_mine = true;
  }
  ends = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong_turns, 0);
  EXPECT_GE(turns, 200);
}

}  // namespace
}  // namespace unisono::job::wait_loans_test

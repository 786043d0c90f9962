// SPDX-License-Identifier: BSD-3-Clause
// base/descriptor: one owner, closed once.
#include "base/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace unisono::base::descriptor_test {
namespace {

Descriptor open_null() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(Descriptor, ClosesAtTheEndOfItsScope) {
  int number = -1;
  {
    const Descriptor file = open_null();
    number = file.get();
    ASSERT_TRUE(file.valid());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, MovingHandsOver) {
  Descriptor first = open_null();
  const int number = first.get();
  Descriptor second = std::move(first);
  EXPECT_FALSE(
      first.valid());  // NOLINT(bugprone-use-after-move): the state after a move is specified
  EXPECT_EQ(second.get(), number);
  Descriptor third = open_null();
  const int old = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(is_open(old));
  EXPECT_TRUE(is_open(number));
}

TEST(Descriptor, ReleaseGivesUpOwnership) {
  int number = -1;
  {
    Descriptor file = open_null();
    number = file.release();
    EXPECT_FALSE(file.valid());
  }
  EXPECT_TRUE(is_open(number));
  close(number);
}

TEST(Descriptor, ResetClosesAndKeepsErrno) {
  Descriptor file = open_null();
  const int number = file.get();
  errno = EXDEV;
  file.reset();
  EXPECT_EQ(errno, EXDEV);
  EXPECT_FALSE(file.valid());
  EXPECT_FALSE(is_open(number));
}

}  // namespace
}  // namespace unisono::base::descriptor_test

// SPDX-License-Identifier: BSD-3-Clause
// Claims of a task: of one operation, held by one rank, and contended.
#include "engine/task.hpp"

#include <gtest/gtest.h>

namespace unisono::engine::task_test {
namespace {

constexpr std::uint64_t kOperation = 5;
constexpr std::uint64_t kTag = 17, kLaterTag = 18;

TEST(Task, OneRankHoldsTheClaimOfAPublishedOperation) {
  Task task;
  EXPECT_FALSE(task.is_published(kTag));
  EXPECT_FALSE(task.try_claim(kOperation));
  EXPECT_FALSE(task.claim_or_mark_contended(kOperation));
  task.publish(kOperation, kTag);
  EXPECT_TRUE(task.is_published(kTag));
  EXPECT_FALSE(task.is_published(kLaterTag));
  EXPECT_TRUE(task.try_claim(kOperation));
  EXPECT_FALSE(task.try_claim(kOperation));
  EXPECT_TRUE(task.release(kOperation));
  EXPECT_TRUE(task.claim_or_mark_contended(kOperation));
  task.withdraw();
  EXPECT_FALSE(task.is_published(kTag));
  EXPECT_FALSE(task.try_claim(kOperation));
  EXPECT_FALSE(task.claim_or_mark_contended(kOperation));
}

TEST(Task, AHolderLooksAgainWhereItsClaimIsContended) {
  Task task;
  task.publish(kOperation, kTag);
  ASSERT_TRUE(task.try_claim(kOperation));
  EXPECT_FALSE(task.claim_or_mark_contended(kOperation));
  EXPECT_FALSE(task.claim_or_mark_contended(kOperation)) << "by a third rank";
  EXPECT_FALSE(task.release(kOperation)) << "it is contended";
  EXPECT_FALSE(task.try_claim(kOperation)) << "so it is kept";
  EXPECT_TRUE(task.release(kOperation));
  EXPECT_TRUE(task.try_claim(kOperation));
}

// It saw the task published, and then slept. Its claim would keep the owner from a task whose
// messages have come, and nobody would wake the owner afterwards.
TEST(Task, ARankThatIsLateInAnEarlierOperationGetsNoClaim) {
  for (const std::uint64_t first : {kOperation, std::uint64_t{0}, UINT64_MAX - 40}) {
    const std::uint64_t later = first + 64;
    Task task;
    task.publish(first, kTag);
    ASSERT_TRUE(task.is_published(kTag));
    ASSERT_TRUE(task.try_claim(first));
    task.withdraw();
    task.publish(later, kLaterTag);
    EXPECT_FALSE(task.try_claim(first));
    EXPECT_FALSE(task.claim_or_mark_contended(first));
    ASSERT_TRUE(task.try_claim(later));
    EXPECT_FALSE(task.claim_or_mark_contended(first));
    EXPECT_TRUE(task.release(later)) << "nobody has marked it contended";
  }
}

}  // namespace
}  // namespace unisono::engine::task_test

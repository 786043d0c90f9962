// SPDX-License-Identifier: BSD-3-Clause
#include "job/failure_record.hpp"

#include <gtest/gtest.h>

#include <string>

namespace unisono::job::failure_record_test {
namespace {

using base::Code;

TEST(FailureRecord, TheFirstReportGivesTheText) {
  FailureRecord record{};
  EXPECT_FALSE(read_failure(record));
  const base::Error lost{Code::rank_lost, "rank 2 is lost"};
  EXPECT_TRUE(report_failure(record, {.index = 7, .error = lost, .rank = 2}));
  EXPECT_FALSE(report_failure(record, {.index = 9, .error = {Code::timeout, "too late"}}));
  const auto known = read_failure(record);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->index, 7U);
  EXPECT_EQ(known->cause, 7U);
  EXPECT_EQ(known->error.code, Code::rank_lost);
  EXPECT_EQ(known->error.message, "rank 2 is lost");
  EXPECT_EQ(known->rank, 2);
}

TEST(FailureRecord, AnEarlierOperationLowersTheIndexAndKeepsTheText) {
  FailureRecord record{};
  report_failure(record, {.index = 7, .error = {Code::rank_lost, "rank 2 is lost"}});
  EXPECT_TRUE(report_failure(record, {.index = 4, .error = {Code::timeout, "other"}}));
  const auto known = read_failure(record);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->index, 4U);
  EXPECT_EQ(known->cause, 7U);
  EXPECT_EQ(known->error.message, "rank 2 is lost");
}

TEST(FailureRecord, OneRankOfAHostPassesAFailureOn) {
  FailureRecord record{};
  EXPECT_TRUE(claim_passing_on(record, 5));
  EXPECT_FALSE(claim_passing_on(record, 5));
  EXPECT_FALSE(claim_passing_on(record, 6));
  EXPECT_TRUE(claim_passing_on(record, 3));  // an earlier failure has to be told as well
}

TEST(FailureNotice, TheEarliestReportCounts) {
  FailureNotice notice{};
  EXPECT_FALSE(read_notice(notice));
  const base::Error why{Code::mismatch, std::string(1000, 'x')};
  notice.text = notice_text({.index = 7, .error = why, .rank = 3});
  notice.ends[0] = 8;
  notice.ends[1] = 3;
  const auto told = read_notice(notice);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->index, 2U);
  EXPECT_EQ(told->cause, 7U);
  EXPECT_EQ(told->error.code, Code::mismatch);
  EXPECT_EQ(told->rank, 3);
  EXPECT_EQ(told->error.message, std::string(sizeof notice.text.text - 1, 'x'));
}

}  // namespace
}  // namespace unisono::job::failure_record_test

// SPDX-License-Identifier: BSD-3-Clause
// Who is served next: users share the daemon's time, however much one of them asks for; and joins
// beyond the rate wait. Beside it, how many lines one user may cause in the log.
#include "daemon/turns.hpp"

#include <gtest/gtest.h>

#include "daemon/log_limit.hpp"
#include "daemon/quota.hpp"

namespace unisono::daemon::test::turns_test {
namespace {

constexpr std::uint32_t kAnna = 1000, kBert = 2000;
constexpr std::int64_t kJoinNs = 20 * base::kMillisecond, kQuickNs = 10 * base::kMicrosecond;

TEST(Turns, AUserWhoComesWaitsForOneMessageOnly) {
  Turns turns(64, 50);
  for (int i = 0; i < 1000; ++i) turns.charge(kAnna, kJoinNs);
  EXPECT_LT(turns.start_of(kBert), turns.start_of(kAnna));
  turns.charge(kBert, kJoinNs);
  EXPECT_LE(turns.start_of(kAnna), turns.start_of(kBert)) << "and then it is the other's turn";
}

TEST(Turns, UsersShareTheTimeNotTheMessages) {
  Turns turns(64, 50);
  std::int64_t anna = 0, bert = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool is_annas = turns.start_of(kAnna) < turns.start_of(kBert);
    if (is_annas) {
      anna += kJoinNs;
      turns.charge(kAnna, kJoinNs);
    } else {
      bert += kQuickNs;
      turns.charge(kBert, kQuickNs);
    }
  }
  EXPECT_LE(std::abs(anna - bert), 2 * kJoinNs);
}

TEST(Turns, NobodySavesTimeUp) {
  Turns turns(64, 50);
  turns.charge(kBert, kQuickNs);
  for (int i = 0; i < 1000; ++i) turns.charge(kAnna, kJoinNs);
  int in_a_row = 0;
  while (turns.start_of(kBert) < turns.start_of(kAnna)) {
    turns.charge(kBert, kJoinNs);
    ASSERT_LE(++in_a_row, 2);
  }
}

TEST(Turns, JoinsBeyondTheRateWait) {
  constexpr std::uint32_t kBurst = 4, kPerSecond = 10;
  constexpr std::int64_t kInterval = base::kSecond / kPerSecond;
  Turns turns(kBurst, kPerSecond);
  const std::int64_t start_ns = 1000 * base::kSecond;
  for (std::uint32_t i = 0; i < kBurst; ++i) {
    EXPECT_EQ(turns.wait_ns(kAnna, start_ns), 0);
    turns.count_join(kAnna, start_ns);
  }
  std::int64_t now_ns = start_ns;
  for (int i = 0; i < 20; ++i) {
    now_ns += turns.wait_ns(kAnna, now_ns);
    turns.count_join(kAnna, now_ns);
  }
  EXPECT_EQ(now_ns - start_ns, 19 * kInterval);
  EXPECT_EQ(turns.wait_ns(kAnna, now_ns), kInterval);
  EXPECT_EQ(turns.wait_ns(kBert, now_ns), 0);
  EXPECT_EQ(turns.wait_ns(kAnna, now_ns + kInterval), 0);
}

TEST(Turns, ForgetsWhoMakesNoDifference) {
  Turns turns(4, 10);
  turns.charge(kAnna, kJoinNs);
  turns.count_join(kAnna, 100 * base::kSecond);
  turns.charge(kBert, kJoinNs);
  turns.charge(kBert, kJoinNs);
  turns.tidy(100 * base::kSecond);
  EXPECT_EQ(turns.known(), 2U);
  turns.charge(kBert, kJoinNs);
  turns.tidy(200 * base::kSecond);
  EXPECT_EQ(turns.known(), 1U);
}

TEST(LogLimit, AUserCausesAFewLinesAndThenTheirNumber) {
  LogLimit limit;
  std::int64_t now_ns = 1;
  for (std::uint32_t i = 0; i < LogLimit::kLines; ++i) EXPECT_EQ(limit.admit(kAnna, ++now_ns), 0U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limit.admit(kAnna, ++now_ns), std::nullopt);
  EXPECT_EQ(limit.admit(kBert, now_ns), 0U) << "another user's are not affected";
  now_ns += LogLimit::kTimeNs;
  EXPECT_EQ(limit.admit(kAnna, now_ns), 1000U);
  EXPECT_EQ(limit.admit(kAnna, now_ns), 0U);
}

TEST(Capacity, FollowsTheLimitOfDescriptors) {
  const Capacity usual = Capacity::of_descriptors(1024, 77);
  EXPECT_EQ(usual.bytes, 77U);
  EXPECT_LT(usual.connections + usual.descriptors, 1024U - 32U);
  EXPECT_GT(usual.connections + usual.descriptors, 512U);
  const Capacity large = Capacity::of_descriptors(65536, 77);
  EXPECT_EQ(large.descriptors, 1024U * 18U) << "all groups of the program";
  EXPECT_EQ(Capacity::of_descriptors(10, 77).connections, 0U);
}

}  // namespace
}  // namespace unisono::daemon::test::turns_test

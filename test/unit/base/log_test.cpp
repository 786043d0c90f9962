// SPDX-License-Identifier: BSD-3-Clause
// base/log: levels and the form of a line.
#include "base/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace unisono::base::log_test {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::warn);
    set_log_rank(-1);
  }
};

TEST_F(Log, IsQuietAboveWarnings) {
  testing::internal::CaptureStderr();
  log(LogLevel::info, "test", "not seen");
  log(LogLevel::debug, "test", "not seen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::warn));
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST_F(Log, LineHasHostPidRankAndComponent) {
  set_log_rank(5);
  testing::internal::CaptureStderr();
  log(LogLevel::warn, "test", "{} of {}", 2, 3);
  const std::string line = testing::internal::GetCapturedStderr();
  const std::size_t host_end = line.find(':');
  ASSERT_NE(host_end, std::string::npos) << line;
  EXPECT_GT(host_end, 0U);
  EXPECT_EQ(line.substr(host_end), ":" + std::to_string(getpid()) + ":5 [test] 2 of 3\n");
}

TEST_F(Log, RankIsADashUntilKnown) {
  testing::internal::CaptureStderr();
  log(LogLevel::error, "test", "early");
  EXPECT_NE(testing::internal::GetCapturedStderr().find(":- [test] early\n"), std::string::npos);
}

TEST_F(Log, LevelOpensWhatIsBelow) {
  set_log_level(LogLevel::debug);
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_TRUE(log_enabled(LogLevel::debug));
  set_log_level(LogLevel::error);
  EXPECT_FALSE(log_enabled(LogLevel::warn));
}

}  // namespace
}  // namespace unisono::base::log_test

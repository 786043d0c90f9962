// SPDX-License-Identifier: BSD-3-Clause
#include "nic/loader/kernel.hpp"

#include <gtest/gtest.h>

namespace unisono::nic::kernel_test {
namespace {

TEST(NicKernel, SufficesFromTheFirstOneWithTcx) {
  EXPECT_EQ(kernel_suffices("6.5.13"), false);
  EXPECT_EQ(kernel_suffices("6.6.0-rc1"), true);
  EXPECT_EQ(kernel_suffices("6.1.0-57-amd64"), false);
  EXPECT_EQ(kernel_suffices("7.3.4+deb13-amd64"), true);
  EXPECT_EQ(kernel_suffices("unknown"), std::nullopt);
}

TEST(NicKernel, AShortLogIsShownAsItIs) {
  EXPECT_EQ(shorten_log(""), "");
  EXPECT_EQ(shorten_log("load failed\nline 1\n"), "load failed\nline 1\n");
}

TEST(NicKernel, ALongLogKeepsWhatFailedAndWhy) {
  std::string log = "load failed: Permission denied\nBEGIN\n";
  for (int line = 0; line < 10'000; ++line) log += std::to_string(line) + ": (bf) r6 = r1\n";
  log += "R6 invalid mem access\nprocessed 10000 insns\n";
  const std::string shown = shorten_log(log);
  EXPECT_LT(shown.size(), 1500U);
  EXPECT_TRUE(shown.starts_with("load failed: Permission denied\nBEGIN\n0: (bf) r6 = r1\n"))
      << shown;
  EXPECT_TRUE(
      shown.ends_with("\n9999: (bf) r6 = r1\nR6 invalid mem access\nprocessed 10000 insns\n"))
      << shown;
  EXPECT_NE(shown.find("r6 = r1\n...\n"), std::string::npos) << shown;
}

// The verifier prints a line for each instruction, but nothing says that there are lines.
TEST(NicKernel, ALogWithoutLinesIsShortToo) {
  const std::string shown = shorten_log(std::string(10'000, 'x') + "why");
  EXPECT_LT(shown.size(), 1500U);
  EXPECT_TRUE(shown.ends_with("xwhy"));
}

}  // namespace
}  // namespace unisono::nic::kernel_test

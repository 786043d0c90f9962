// SPDX-License-Identifier: BSD-3-Clause
// A fixture: hosts without programs. Skips, and says why, where the kernel does not let us.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "base/result.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/may_load.hpp"

namespace unisono::nic::test {

template <int Count>
class WithHosts : public testing::Test {
 protected:
  static constexpr int kHosts = Count;

  static void SetUpTestSuite() {
    auto made = may_load().ok() ? Hosts::make(kHosts) : may_load().error();
    if (made.ok())
      hosts = *std::move(made);
    else
      problem = made.error();
  }
  static void TearDownTestSuite() { hosts.reset(); }

  void SetUp() override {
    if (hosts == nullptr && problem.code == base::Code::unsupported)
      GTEST_SKIP() << problem.message;
    ASSERT_NE(hosts, nullptr) << problem.message;
  }

  static inline std::unique_ptr<Hosts> hosts;
  static inline base::Error problem;
};

}  // namespace unisono::nic::test

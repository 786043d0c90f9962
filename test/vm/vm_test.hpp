// SPDX-License-Identifier: BSD-3-Clause
// VmTest: a test that needs the hosts of scripts/vm/hosts.sh and an active device for verbs. It is
// skipped elsewhere, with the reason. Test programs without threads only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "transport/verbs/verbs.hpp"
#include "vm/vm_hosts.hpp"

namespace unisono::harness {

class VmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (vm_hosts() == 0) GTEST_SKIP() << "only in the virtual machine: ./dev test --vm";
    ASSERT_GE(vm_hosts(), 4);
    // Built without verbs, or without the library or its drivers. In a process of its own: the
    // library keeps pages of the heap from children of a process that has opened a device.
    constexpr int kNone = 3;
    const int code = start_process([](const Line&) {
                       const std::string devices = transport::verbs_description();
                       if (devices.find(" active") != std::string::npos) return;
                       std::printf("%s\n", devices.c_str());
                       std::fflush(stdout);
                       _exit(kNone);
                     }).wait();
    if (code == kNone) GTEST_SKIP() << "no active device for verbs: see above";
    ASSERT_EQ(code, 0);
  }
  static void run(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  static std::string output_of(const std::string& command) {
    std::string text;
    FILE* const pipe = popen(command.c_str(), "r");
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0) << command;
    return text;
  }
};

}  // namespace unisono::harness

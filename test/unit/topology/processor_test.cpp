// SPDX-License-Identifier: BSD-3-Clause
#include "topology/processor.hpp"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace unisono::topology::processor_test {
namespace {

TEST(Processor, HasANameAndSoHasTheKernel) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_EQ(processor_name(), processor_name());
  utsname name{};
  ASSERT_EQ(uname(&name), 0);
  EXPECT_EQ(kernel_name(), std::string(name.sysname) + " " + name.release);
}

}  // namespace
}  // namespace unisono::topology::processor_test

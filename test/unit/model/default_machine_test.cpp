// SPDX-License-Identifier: BSD-3-Clause
#include "model/default_machine.hpp"

#include <gtest/gtest.h>

#include "unit/model/shipped.hpp"

namespace unisono::model {
namespace {

TEST(DefaultMachine, IsThatOfTheFile) {
  EXPECT_EQ(default_machine(), shipped("default"));
  EXPECT_EQ(default_machine().name, "default");
}

}  // namespace
}  // namespace unisono::model

// SPDX-License-Identifier: BSD-3-Clause
#include "model/default_machine.hpp"

#include <gtest/gtest.h>

#include "model/constants.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::default_machine_test {
namespace {

TEST(DefaultMachine, IsThatOfTheFile) {
  EXPECT_EQ(default_machine(), shipped("default"));
  EXPECT_EQ(default_machine().name, "default");
}

TEST(DefaultMachine, HasAllConstants) {
  for (const ConstantRow& row : constant_rows()) {
    EXPECT_TRUE(default_machine().constants[static_cast<std::size_t>(row.id)].has_value())
        << row.name;
  }
}

}  // namespace
}  // namespace unisono::model::default_machine_test

// SPDX-License-Identifier: BSD-3-Clause
// The machine files of the tree, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "model/machine_file.hpp"

namespace unisono::model {

inline std::filesystem::path machines_folder() {
  return std::filesystem::path(__FILE__).parent_path() / "../../../machines";
}

inline Machine shipped(const std::string& name) {
  const auto machine = read_machine_file((machines_folder() / (name + ".json")).string());
  EXPECT_TRUE(machine.ok()) << (machine.ok() ? "" : machine.error().message);
  return machine.ok() ? *machine : Machine{};
}

}  // namespace unisono::model

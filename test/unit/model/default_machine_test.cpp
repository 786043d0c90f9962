// SPDX-License-Identifier: BSD-3-Clause
#include "model/default_machine.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/regular_expression.hpp"
#include "model/constants.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::default_machine_test {
namespace {

// In the unit column of the page, a row with two keys names the units of both.
std::string_view unit_on_page(Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes:
      return "bytes";
    case Quantity::ranks:
      return "ranks";
    case Quantity::time:
      return "time";
    case Quantity::time_per_byte:
      return "per byte";
  }
  return "";
}

// Keys of the page's table of constants, each with its row's units.
std::map<std::string, std::string> constants_on_page() {
  std::ifstream page(machines_folder() / "../docs/reference/machine-file.md");
  EXPECT_TRUE(page.is_open());
  std::map<std::string, std::string> found;
  bool in_section = false;
  const harness::RegularExpression row(R"(^\| (`.*`) \| ([^|]*) \|.*$)");
  const harness::RegularExpression key("`([^`]*)`");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) in_section = line == "## Constants";
    const std::vector<std::string> cells = row.search(line);
    if (!in_section || cells.empty()) continue;
    std::string keys = cells[1];
    for (auto name = key.search(keys); !name.empty(); name = key.search(keys)) {
      EXPECT_TRUE(found.emplace(name[1], cells[2]).second) << "twice: " << name[1];
      keys.erase(0, keys.find(name[0]) + name[0].size());
    }
  }
  return found;
}

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

TEST(DefaultMachine, HasAllConstantsInItsPageAndNoOthers) {
  auto on_page = constants_on_page();
  for (const ConstantRow& row : constant_rows()) {
    const auto found = on_page.find(std::string(row.name));
    ASSERT_NE(found, on_page.end()) << row.name << " is not in docs/reference/machine-file.md";
    EXPECT_NE(found->second.find(unit_on_page(row.quantity)), std::string::npos) << row.name;
    on_page.erase(found);
  }
  for (const auto& [name, unit] : on_page) ADD_FAILURE() << name << " is no constant";
}

}  // namespace
}  // namespace unisono::model::default_machine_test

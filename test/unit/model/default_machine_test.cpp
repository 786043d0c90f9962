// SPDX-License-Identifier: BSD-3-Clause
#include "model/default_machine.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <string_view>

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
  const std::regex row(R"(^\| (`.*`) \| ([^|]*) \|.*)");
  const std::regex key("`([^`]*)`");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) in_section = line == "## Constants";
    std::smatch cells;
    if (!in_section || !std::regex_match(line, cells, row)) continue;
    const std::string keys = cells[1];
    for (std::sregex_iterator name(keys.begin(), keys.end(), key), end; name != end; ++name) {
      EXPECT_TRUE(found.emplace((*name)[1], cells[2]).second) << "twice: " << (*name)[1];
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

// SPDX-License-Identifier: BSD-3-Clause
// A strict parser of Prometheus's text exposition format 0.0.4, for what unisonod writes: every
// family has one HELP and one TYPE line before its samples, counters end in _total, no sample is
// there twice, and the last line is whole.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/regular_expression.hpp"

namespace unisono::daemon::test {

// The value by `name{labels}`; a failure of the test for each error.
inline std::map<std::string, std::uint64_t> parse_exposition(const std::string& text) {
  const harness::RegularExpression help("^# HELP ([a-z_:][a-z0-9_:]*) [^[:space:]].*$");
  const harness::RegularExpression type("^# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge)$");
  const harness::RegularExpression sample(
      R"re(^([a-z_:][a-z0-9_:]*)\{(([a-z_]+="([^"\]|\\["\n])*",?)+)\} ([0-9]+)$)re");
  std::map<std::string, std::uint64_t> values;
  std::set<std::string> families;
  std::string helped;
  std::string family;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    EXPECT_NE(end, std::string::npos) << "the last line is cut";
    if (end == std::string::npos) break;
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    std::vector<std::string> parts;
    if (parts = help.search(line); !parts.empty()) {
      helped = parts[1];
      EXPECT_TRUE(families.insert(helped).second) << "a family twice: " << line;
    } else if (parts = type.search(line); !parts.empty()) {
      family = parts[1];
      EXPECT_EQ(family, helped) << "TYPE without its HELP: " << line;
      EXPECT_EQ(parts[2] == "counter", family.ends_with("_total")) << line;
    } else if (parts = sample.search(line); !parts.empty()) {
      EXPECT_EQ(parts[1], family) << "a sample outside of its family: " << line;
      EXPECT_FALSE(parts[2].ends_with(',')) << line;
      const std::string name = line.substr(0, line.rfind(' '));
      EXPECT_TRUE(values.emplace(name, std::stoull(parts[5])).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "not in the format: " << line;
    }
  }
  return values;
}

}  // namespace unisono::daemon::test

// SPDX-License-Identifier: BSD-3-Clause
// A strict parser of Prometheus's text exposition format 0.0.4, for what unisonod writes: every
// family has one HELP and one TYPE line before its samples, counters end in _total, no sample is
// there twice, and the last line is whole.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace unisono::daemon::test {

// The value by `name{labels}`; a failure of the test for each error.
inline std::map<std::string, std::uint64_t> parse_exposition(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-z_:][a-z0-9_:]*) (\S.*))");
  static const std::regex kType(R"(# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge))");
  static const std::regex kSample(
      R"re(([a-z_:][a-z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)+)\} (\d+))re");
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
    std::smatch parts;
    if (std::regex_match(line, parts, kHelp)) {
      helped = parts[1];
      EXPECT_TRUE(families.insert(helped).second) << "a family twice: " << line;
    } else if (std::regex_match(line, parts, kType)) {
      family = parts[1];
      EXPECT_EQ(family, helped) << "TYPE without its HELP: " << line;
      EXPECT_EQ(parts[2] == "counter", family.ends_with("_total")) << line;
    } else if (std::regex_match(line, parts, kSample)) {
      EXPECT_EQ(parts[1], family) << "a sample outside of its family: " << line;
      EXPECT_FALSE(parts[2].str().ends_with(',')) << line;
      const std::string name = line.substr(0, line.rfind(' '));
      EXPECT_TRUE(values.emplace(name, std::stoull(parts[3])).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "not in the format: " << line;
    }
  }
  return values;
}

}  // namespace unisono::daemon::test

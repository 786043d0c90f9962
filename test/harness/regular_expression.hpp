// SPDX-License-Identifier: BSD-3-Clause
// An extended regular expression of POSIX, which the C library matches. std::regex would be
// compiled anew in each program that has one, which takes two to four seconds.
#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <array>
#include <string>
#include <vector>

namespace unisono::harness {

class RegularExpression {
 public:
  explicit RegularExpression(const std::string& expression) {
    EXPECT_EQ(regcomp(&compiled_, expression.c_str(), REG_EXTENDED), 0) << expression;
  }
  ~RegularExpression() { regfree(&compiled_); }
  RegularExpression(const RegularExpression&) = delete;
  RegularExpression& operator=(const RegularExpression&) = delete;

  // The first place where it matches, and there the text of each of its groups; nothing if there is
  // none.
  std::vector<std::string> search(const std::string& text) const {
    std::array<regmatch_t, 8> found{};
    if (regexec(&compiled_, text.c_str(), found.size(), found.data(), 0) != 0) return {};
    std::vector<std::string> parts;
    for (std::size_t i = 0; i <= compiled_.re_nsub && i < found.size(); ++i) {
      const auto [begin, end] = found[i];
      parts.push_back(begin < 0 ? "" : text.substr(std::size_t(begin), std::size_t(end - begin)));
    }
    return parts;
  }

 private:
  regex_t compiled_{};
};

}  // namespace unisono::harness

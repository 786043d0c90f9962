// SPDX-License-Identifier: BSD-3-Clause
// A check for options that take a number with a fraction: "nan", which no range refuses. Any
// thread.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

namespace unisono::tools {

inline CLI::Validator not_nan() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const bool is_nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
        return is_nan ? fmt::format("{} is not a number", text) : std::string();
      },
      "");
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// A check for options that take a number of elements: 1000, 4K. Any thread.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/text.hpp"
#include "schedule/text.hpp"

namespace unisono::tools {

// The option's variable gets the number.
inline CLI::Validator element_count() {
  return CLI::Validator(
      [](std::string& text) {
        const auto count = base::parse_size(text);
        if (!count || *count < 0 || *count > schedule::kMaxTextCount) {
          return fmt::format("'{}' is not a number of elements from 0 to {}: write 1000 or 4K",
                             text, base::format_size(schedule::kMaxTextCount));
        }
        text = std::to_string(*count);
        return std::string();
      },
      "");
}

}  // namespace unisono::tools

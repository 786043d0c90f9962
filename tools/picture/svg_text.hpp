// SPDX-License-Identifier: BSD-3-Clause
// Text as an SVG picture takes it. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace unisono::tools {

// Marks of XML become names of characters, and control characters blanks.
inline std::string svg_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/pmi_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;

constexpr bool is_printable(char letter) { return letter >= ' ' && letter < 0x7f; }
constexpr bool is_word_letter(char letter) { return letter > ' ' && letter < 0x7f; }

}  // namespace

std::string_view PmiLine::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::string_view() : found->second;
}

base::Result<PmiLine> parse_pmi_line(std::string_view line) {
  if (line.size() > PmiLine::kMostBytes) {
    return Error{Code::state, fmt::format("PMI: a line of {} bytes", line.size())};
  }
  if (!std::ranges::all_of(line, is_printable)) {
    return Error{Code::state, "PMI: a line with unprintable letters"};
  }
  PmiLine result;
  while (!line.empty()) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, blank);
    line.remove_prefix(std::min(blank + 1, line.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (name == "cmd") {
      result.command = value;
    } else {
      result.values.emplace(name, value);
    }
  }
  if (result.command.empty()) return Error{Code::state, "PMI: a line without a command"};
  return result;
}

std::string pmi_line(std::string_view command,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string line = fmt::format("cmd={}", command);
  for (const auto& [name, value] : values) {
    UNISONO_CHECK(std::ranges::all_of(value, is_word_letter), "a value of PMI has no blanks");
    line += fmt::format(" {}={}", name, value);
  }
  return line + "\n";
}

}  // namespace unisono::bootstrap

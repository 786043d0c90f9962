// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings/text.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace unisono::base {
namespace {

std::string listed(std::string_view choices) {
  std::string result;
  for (const char letter : choices) {
    if (letter == '|') {
      result += ", ";
    } else {
      result += letter;
    }
  }
  return result;
}

// Adds single quotes where the shell would otherwise read more than one plain word.
std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:@/%";
  if (text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter;
    }
  }
  return result + "'";
}

std::string table_rows(SettingAudience audience) {
  std::string result =
      "| setting | default | accepts | meaning |\n"
      "| --- | --- | --- | --- |\n";
  for (const SettingRow& row : setting_table()) {
    if (row.audience != audience) continue;
    const std::string fallback =
        row.fallback.empty() ? "not set" : fmt::format("`{}`", row.fallback);
    result += fmt::format("| `{}` | {} | {} | {} |\n", row.name, fallback, accepted_values(row),
                          row.help);
  }
  return result;
}

constexpr std::string_view kMarkdownHead = R"(# Settings

This page lists all settings with default, range and meaning. It is generated from the table in
`src/base/settings/table.cpp`.

Settings are environment variables. `unisono_init` or the tool reads them once. An invalid value is
an error that names the accepted values. An unknown `UNISONO_*` name gives a warning with the
nearest known one. An empty value counts as not set. `unisono info --config` prints the values in
force as lines that a shell can read back.

Sizes are bytes, or K, M, G, T (1024 each). Times take ns, us, ms, s, min or h. For `on` you may
also write yes, true or 1, and for `off` no, false or 0.

)";

}  // namespace

std::string accepted_values(const SettingRow& row) {
  const std::string_view automatic = row.automatic ? "auto, or " : "";
  switch (row.type) {
    case SettingType::text:
      return "text";
    case SettingType::toggle:
      return "one of auto, on, off";
    case SettingType::choice:
      return fmt::format("one of {}", listed(row.choices));
    case SettingType::integer:
      return fmt::format("{}a whole number from {} to {}", automatic, row.minimum, row.maximum);
    case SettingType::size:
      return fmt::format("{}a size from {} to {} (e.g. 4096, 64K, 1M)", automatic,
                         format_size(row.minimum), format_size(row.maximum));
    case SettingType::time:
      return fmt::format("{}a time from {} to {} (e.g. 500ms, 2s)", automatic,
                         format_time_ns(row.minimum), format_time_ns(row.maximum));
  }
  return "";
}

std::string settings_dump(const Settings& settings) {
  std::string result;
  for (const SettingRow& row : setting_table()) {
    if (row.audience == SettingAudience::test) continue;
    const Settings::Value& value = settings.values_[static_cast<std::size_t>(row.id)];
    result += fmt::format("# {}\n# Accepts {}.\n", row.help, accepted_values(row));
    if (row.id == Setting::job_key && value.set) {
      result += fmt::format("# {} is set and not shown\n", row.name);
    } else if (value.text.empty()) {
      result += fmt::format("# {} is not set\n", row.name);
    } else {
      result += fmt::format("{}={}\n", row.name, shell_quoted(value.text));
    }
  }
  return result;
}

std::string settings_markdown() {
  return fmt::format(
      "{}## For users\n\n{}\n"
      "## For launchers\n\n"
      "`unisono run` sets these. Other launchers have variables of their own (see the how-to page "
      "on\n"
      "launching).\n\n"
      "{}",
      kMarkdownHead, table_rows(SettingAudience::user), table_rows(SettingAudience::launcher));
}

}  // namespace unisono::base

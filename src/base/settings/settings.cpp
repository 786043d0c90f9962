// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/check.hpp"
#include "base/life/lasting.hpp"
#include "base/log.hpp"
#include "base/settings/text.hpp"
#include "base/settings/user_folder.hpp"
#include "base/text.hpp"

namespace unisono::base {
namespace {

constexpr std::string_view kPrefix = "UNISONO_";

std::string unknown_warning(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SettingRow& row : setting_table()) {
    if (row.audience != SettingAudience::test) known.push_back(row.name.substr(kPrefix.size()));
  }
  const std::string_view nearest = nearest_name(name.substr(kPrefix.size()), known);
  const std::string hint = nearest.empty() ? "`unisono info --config` lists them all"
                                           : fmt::format("did you mean {}{}?", kPrefix, nearest);
  return fmt::format("unknown setting {} in the environment is ignored; {}", name, hint);
}

std::optional<std::int64_t> index_of(std::string_view choices, std::string_view name) {
  for (std::int64_t index = 0; !choices.empty(); ++index) {
    const std::size_t bar = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, bar) == name) return index;
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return {};
}

std::optional<Toggle> parse_toggle(std::string_view text) {
  if (text == "auto") return Toggle::automatic;
  for (const std::string_view yes : {"on", "yes", "true", "1"}) {
    if (text == yes) return Toggle::on;
  }
  for (const std::string_view no : {"off", "no", "false", "0"}) {
    if (text == no) return Toggle::off;
  }
  return {};
}

std::optional<std::int64_t> parse_number(const SettingRow& row, std::string_view text) {
  if (row.automatic && text == "auto") return kAutomatic;
  std::optional<std::int64_t> number;
  switch (row.type) {
    case SettingType::text:
      return 0;
    case SettingType::toggle: {
      const auto toggle = parse_toggle(text);
      return toggle ? std::optional(static_cast<std::int64_t>(*toggle)) : std::nullopt;
    }
    case SettingType::choice:
      return index_of(row.choices, text);
    case SettingType::integer:
      number = parse_integer(text);
      break;
    case SettingType::size:
      number = parse_size(text);
      break;
    case SettingType::time:
      number = parse_time_ns(text);
      break;
  }
  if (number && (*number < row.minimum || *number > row.maximum)) return {};
  return number;
}

}  // namespace

Environment process_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

Settings::Settings() {
  for (const SettingRow& row : setting_table()) {
    if (row.fallback.empty()) continue;
    Result<Value> parsed = parse(row, std::string(row.fallback));
    UNISONO_CHECK(parsed.ok(), row.name);
    values_[static_cast<std::size_t>(row.id)] = std::move(*parsed);
  }
}

Result<Settings> Settings::from(const Environment& environment) {
  Settings settings;
  settings.cache_folder_ = user_cache_folder(environment);
  for (const auto& [name, text] : environment) {
    if (!std::string_view(name).starts_with(kPrefix)) continue;
    const auto table = setting_table();
    const auto row = std::ranges::find(table, std::string_view(name), &SettingRow::name);
    if (row == table.end()) {
      settings.warnings_.push_back(unknown_warning(name));
      continue;
    }
    if (text.empty()) continue;
    UNISONO_ASSIGN(Value value, parse(*row, text));
    value.set = true;
    settings.values_[static_cast<std::size_t>(row->id)] = std::move(value);
  }
  return settings;
}

Result<Settings::Value> Settings::parse(const SettingRow& row, const std::string& text) {
  const auto number = parse_number(row, text);
  if (!number) {
    return Error{Code::argument, fmt::format("{}=\"{}\" is not valid: it takes {}", row.name, text,
                                             accepted_values(row))};
  }
  return Value{*number, text, false};
}

const Settings::Value& Settings::value(Setting id, SettingType type) const {
  const SettingRow& row = setting_row(id);
  UNISONO_CHECK(row.type == type, row.name);
  return values_[static_cast<std::size_t>(id)];
}

std::int64_t Settings::time_ns(Setting id) const { return value(id, SettingType::time).number; }
std::int64_t Settings::bytes(Setting id) const { return value(id, SettingType::size).number; }
std::int64_t Settings::integer(Setting id) const { return value(id, SettingType::integer).number; }
const std::string& Settings::text(Setting id) const { return value(id, SettingType::text).text; }

Toggle Settings::toggle(Setting id) const {
  return static_cast<Toggle>(value(id, SettingType::toggle).number);
}

Reproducible Settings::reproducible() const {
  return static_cast<Reproducible>(value(Setting::reproducible, SettingType::choice).number);
}

EngineChoice Settings::engine() const {
  return static_cast<EngineChoice>(value(Setting::engine, SettingType::choice).number);
}

std::string_view Settings::choice(Setting id) const { return value(id, SettingType::choice).text; }

LogLevel Settings::log_level() const {
  return static_cast<LogLevel>(value(Setting::log, SettingType::choice).number);
}

bool Settings::is_set(Setting id) const { return values_[static_cast<std::size_t>(id)].set; }

std::string_view Settings::as_written(Setting id) const {
  const Value& value = values_[static_cast<std::size_t>(id)];
  return value.set ? std::string_view(value.text) : std::string_view();
}

const Result<Settings>& process_settings() {
  static const Result<Settings>& settings = lasting([] {
    Result<Settings> read = Settings::from(process_environment());
    if (read.ok()) set_log_level(read->log_level());
    return read;
  }());
  return settings;
}

void log_warnings(const Settings& settings) {
  static std::atomic<bool> has_logged{false};
  if (has_logged.exchange(true)) return;
  for (const std::string& warning : settings.warnings()) {
    log(LogLevel::warn, "settings", "{}", warning);
  }
}

}  // namespace unisono::base

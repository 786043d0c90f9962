// SPDX-License-Identifier: BSD-3-Clause
// base/settings: defaults, every type of value, errors, warnings, dump and reference page.
#include "base/settings/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/clock.hpp"

namespace unisono::base::settings_test {
namespace {

Settings settings_of(const Environment& environment) {
  Result<Settings> settings = Settings::from(environment);
  EXPECT_TRUE(settings.ok()) << (settings.ok() ? "" : settings.error().message);
  return settings.ok() ? std::move(*settings) : Settings();
}

std::string error_of(const Environment& environment) {
  const Result<Settings> settings = Settings::from(environment);
  EXPECT_FALSE(settings.ok());
  if (settings.ok()) return "";
  EXPECT_EQ(settings.error().code, Code::argument);
  return settings.error().message;
}

// NAME=value lines, with the shell's single quotes; comments left out.
Environment read_lines(const std::string& text) {
  Environment result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t equals = line.find('=');
    std::string value = line.substr(equals + 1);
    if (!value.empty() && value.front() == '\'') value = value.substr(1, value.size() - 2);
    result[line.substr(0, equals)] = value;
  }
  return result;
}

TEST(Settings, Defaults) {
  const Settings settings;
  EXPECT_EQ(settings.time_ns(Setting::start_timeout), 30 * kSecond);
  EXPECT_EQ(settings.time_ns(Setting::detect_timeout), kSecond);
  EXPECT_EQ(settings.time_ns(Setting::timeout), 0);
  EXPECT_EQ(settings.engine(), EngineChoice::automatic);
  EXPECT_EQ(settings.time_ns(Setting::spin), kAutomatic);
  EXPECT_EQ(settings.integer(Setting::channels), 0);
  EXPECT_EQ(settings.bytes(Setting::buffers), 64 << 20);
  EXPECT_EQ(settings.bytes(Setting::shared_limit), std::int64_t{16} << 30);
  EXPECT_EQ(settings.toggle(Setting::check), Toggle::off);
  EXPECT_EQ(settings.text(Setting::rendezvous), "");
  EXPECT_EQ(settings.log_level(), LogLevel::warn);
  EXPECT_EQ(settings.choice(Setting::bulk), "auto");
  EXPECT_LT(settings.bytes(Setting::bulk_from), 0);  // the machine file says it
  EXPECT_EQ(settings.text(Setting::ofi_provider), "tcp");
  EXPECT_EQ(settings.text(Setting::verbs_device), "");
  EXPECT_EQ(settings.integer(Setting::first_sequence), 1);
  EXPECT_FALSE(settings.is_set(Setting::rank));
  EXPECT_TRUE(settings.warnings().empty());
}

TEST(Settings, EveryTypeIsRead) {
  const Settings settings = settings_of({{"UNISONO_START_TIMEOUT", "250ms"},
                                         {"UNISONO_SPIN", "20us"},
                                         {"UNISONO_BUFFERS", "1M"},
                                         {"UNISONO_CHANNELS", "12"},
                                         {"UNISONO_ENGINE", "helping"},
                                         {"UNISONO_CHECK", "1"},
                                         {"UNISONO_LOG", "debug"},
                                         {"UNISONO_RENDEZVOUS", "unix:@here"},
                                         {"UNISONO_RANK", "3"},
                                         {"PATH", "/bin"}});
  EXPECT_EQ(settings.time_ns(Setting::start_timeout), 250 * kMillisecond);
  EXPECT_EQ(settings.time_ns(Setting::spin), 20 * kMicrosecond);
  EXPECT_EQ(settings.bytes(Setting::buffers), 1 << 20);
  EXPECT_EQ(settings.integer(Setting::channels), 12);
  EXPECT_EQ(settings.engine(), EngineChoice::helping);
  EXPECT_EQ(settings.toggle(Setting::check), Toggle::on);
  EXPECT_EQ(settings.log_level(), LogLevel::debug);
  EXPECT_EQ(settings.text(Setting::rendezvous), "unix:@here");
  EXPECT_EQ(settings.integer(Setting::rank), 3);
  EXPECT_TRUE(settings.is_set(Setting::rank));
  EXPECT_FALSE(settings.is_set(Setting::size));
  EXPECT_TRUE(settings.warnings().empty());
}

TEST(Settings, AnEmptyValueCountsAsNotSet) {
  const Settings settings = settings_of({{"UNISONO_ENGINE", ""}, {"UNISONO_RANK", ""}});
  EXPECT_EQ(settings.engine(), EngineChoice::automatic);
  EXPECT_FALSE(settings.is_set(Setting::rank));
}

TEST(Settings, ErrorsNameTheVariableTheValueAndWhatIsAccepted) {
  EXPECT_EQ(error_of({{"UNISONO_ENGINE", "fast"}}),
            "UNISONO_ENGINE=\"fast\" is not valid: it takes one of auto, inline, helping");
  EXPECT_EQ(
      error_of({{"UNISONO_DETECT_TIMEOUT", "1"}}),
      "UNISONO_DETECT_TIMEOUT=\"1\" is not valid: it takes a time from 10ms to 24h (e.g. 500ms, "
      "2s)");
  EXPECT_EQ(
      error_of({{"UNISONO_BUFFERS", "1K"}}),
      "UNISONO_BUFFERS=\"1K\" is not valid: it takes a size from 64K to 1T (e.g. 4096, 64K, 1M)");
  EXPECT_EQ(error_of({{"UNISONO_CHANNELS", "-1"}}),
            "UNISONO_CHANNELS=\"-1\" is not valid: it takes a whole number from 0 to 1024");
  EXPECT_EQ(error_of({{"UNISONO_CHECK", "maybe"}}),
            "UNISONO_CHECK=\"maybe\" is not valid: it takes one of auto, on, off");
  EXPECT_EQ(
      error_of({{"UNISONO_SPIN", "soon"}}),
      "UNISONO_SPIN=\"soon\" is not valid: it takes auto, or a time from 0 to 1s (e.g. 500ms, "
      "2s)");
}

TEST(Settings, UnknownNamesGiveAWarningWithTheNearest) {
  const Settings settings = settings_of(
      {{"UNISONO_ENGIN", "inline"}, {"UNISONO_QUITE_ELSE", "1"}, {"UNISONOX", "not ours"}});
  ASSERT_EQ(settings.warnings().size(), 2U);
  EXPECT_EQ(settings.warnings()[0],
            "unknown setting UNISONO_ENGIN in the environment is ignored; did you mean "
            "UNISONO_ENGINE?");
  EXPECT_EQ(settings.warnings()[1],
            "unknown setting UNISONO_QUITE_ELSE in the environment is ignored; `unisono info "
            "--config` lists them all");
}

TEST(Settings, TableIsConsistent) {
  std::set<std::string_view> names;
  for (const SettingRow& row : setting_table()) {
    EXPECT_TRUE(row.name.starts_with("UNISONO_")) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.help.ends_with(".")) << row.name;
    EXPECT_LE(row.minimum, row.maximum) << row.name;
    EXPECT_EQ(row.choices.empty(), row.type != SettingType::choice) << row.name;
  }
}

TEST(Settings, DumpReadsBackToTheSameValues) {
  const Environment given{{"UNISONO_ENGINE", "inline"},
                          {"UNISONO_BUFFERS", "3M"},
                          {"UNISONO_START_TIMEOUT", "7s"},
                          {"UNISONO_JOB_KEY", "not to be shown"}};
  const std::string dump = settings_dump(settings_of(given));
  EXPECT_EQ(dump.find("not to be shown"), std::string::npos);
  const Environment lines = read_lines(dump);
  const Settings again = settings_of(lines);
  EXPECT_TRUE(again.warnings().empty());
  EXPECT_EQ(again.engine(), EngineChoice::inline_);
  EXPECT_EQ(again.bytes(Setting::buffers), 3 << 20);
  EXPECT_EQ(again.time_ns(Setting::start_timeout), 7 * kSecond);
  EXPECT_EQ(again.time_ns(Setting::spin), kAutomatic);
  EXPECT_EQ(read_lines(settings_dump(again)), lines);
}

TEST(Settings, ReferencePageIsTheTable) {
  const std::filesystem::path page =
      std::filesystem::path(__FILE__).parent_path() / "../../../docs/reference/settings.md";
  if (std::getenv("UNISONO_UPDATE_GOLDEN") != nullptr) std::ofstream(page) << settings_markdown();
  std::ifstream file(page);
  ASSERT_TRUE(file) << page;
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, settings_markdown())
      << page << " is out of date; run again with UNISONO_UPDATE_GOLDEN=1";
}

TEST(SettingsDeathTest, AGetterOfAnotherTypeIsABrokenInvariant) {
  const Settings settings;
  EXPECT_DEATH(static_cast<void>(settings.bytes(Setting::timeout)), "UNISONO_TIMEOUT");
}

}  // namespace
}  // namespace unisono::base::settings_test

// SPDX-License-Identifier: BSD-3-Clause
// Settings: everything a user can set, in one table (table.cpp): name, type, default,
// range, help. Values come from environment variables, read and checked once; this is the only
// place, besides the launchers' variables in bootstrap, that looks at the environment.
// A Settings object never changes after it is made, so any thread may read it. Tests make their own
// from a map; the library uses process_settings().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace unisono::base {

enum class Setting {
  start_timeout,
  detect_timeout,
  detect_timeout_hosts,
  timeout,
  engine,
  agent,
  algorithm,
  reproducible,
  heterogeneous,
  machine,
  learn,
  learn_until,
  spin,
  short_slices,
  single_copy,
  single_copy_from,
  channels,
  buffers,
  shared_limit,
  networks,
  multicast,
  multicast_by,
  multicast_group,
  multicast_ttl,
  datagram,
  bulk,
  bulk_from,
  bulk_tags,
  ofi_provider,
  verbs_device,
  nic,
  nic_socket,
  nic_splits,
  nic_rooted,
  check,
  log,
  profile,
  mpi,
  mpi_tune,
  rank,
  size,
  rendezvous,
  job_key,
  first_sequence,
  fault,
};
inline constexpr std::size_t kSettingCount = 45;

// The enumerations that settings take, in the order of their names in the table.
enum class EngineChoice { automatic, inline_, helping };  // UNISONO_ENGINE
enum class Toggle { automatic, on, off };                 // UNISONO_CHECK, UNISONO_SINGLE_COPY ...
enum class Reproducible { no, exact, of_ranks };          // UNISONO_REPRODUCIBLE
enum class LogLevel { error, warn, info, debug };         // UNISONO_LOG

enum class SettingType {
  text,     // anything
  integer,  // 64 bits
  size,     // bytes: 4096, 4K, 1M
  time,     // 500ms, 2s, 0
  toggle,   // auto, on, off (and yes, no, true, false, 1, 0)
  choice,   // one of `choices`
};

enum class SettingAudience {
  user,      // shown in `info --config` and in the reference
  launcher,  // set by `unisono run` or by hand for a launcher of one's own
  test,      // for tests; not shown
};

struct SettingRow {
  Setting id;
  std::string_view name;  // of the environment variable
  SettingType type;
  std::string_view fallback;  // the default, as a user would write it; empty: not set
  std::int64_t minimum;       // integer, size (bytes), time (ns)
  std::int64_t maximum;
  bool automatic;            // integer, size, time: "auto" is accepted too
  std::string_view choices;  // choice: "error|warn|info|debug"
  SettingAudience audience;
  std::string_view help;  // one sentence
};

// All rows, in the order of the enum.
std::span<const SettingRow, kSettingCount> setting_table();
const SettingRow& setting_row(Setting id);

using Environment = std::map<std::string, std::string, std::less<>>;
// A copy of this process's environment. Not while another thread calls setenv.
Environment process_environment();

// The value of time_ns(), bytes() and integer() for "auto".
inline constexpr std::int64_t kAutomatic = -1;

class Settings {
 public:
  // The defaults.
  Settings();
  // Variables of the table override the defaults; other variables are ignored, except that unknown
  // UNISONO_* ones give a warning. An invalid value is an error of code argument that names the
  // variable, the value and what is accepted. An empty value counts as not set.
  static Result<Settings> from(const Environment& environment);

  // Each getter fits the rows of its type only.
  std::int64_t time_ns(Setting id) const;
  std::int64_t bytes(Setting id) const;
  std::int64_t integer(Setting id) const;
  Toggle toggle(Setting id) const;
  EngineChoice engine() const;
  // The name of the chosen value in the table, for settings of type choice.
  std::string_view choice(Setting id) const;
  Reproducible reproducible() const;
  LogLevel log_level() const;
  const std::string& text(Setting id) const;
  // Whether the environment set it.
  bool is_set(Setting id) const;
  // The value of any row as the environment has it; empty if it is not set there.
  std::string_view as_written(Setting id) const;
  // user_cache_folder() of the same environment.
  const std::string& cache_folder() const { return cache_folder_; }

  // One line for each unknown UNISONO_* variable, with the nearest name.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Value {
    std::int64_t number = 0;  // also the index of a choice or toggle
    std::string text;         // as written
    bool set = false;
  };
  static Result<Value> parse(const SettingRow& row, const std::string& text);
  const Value& value(Setting id, SettingType type) const;

  std::array<Value, kSettingCount> values_;
  std::vector<std::string> warnings_;
  std::string cache_folder_;

  friend std::string settings_dump(const Settings& settings);
};

// The settings of this process's environment, read at the first call, which also sets the log
// level. The error, if any, is the same at every call. Any thread.
const Result<Settings>& process_settings();

// Logs the warnings, once in the life of this process. Any thread.
void log_warnings(const Settings& settings);

// The text of `unisono info --config`: NAME=value lines under comment lines. It is valid shell
// input, and from() reads the same settings back. The job key is not shown.
std::string settings_dump(const Settings& settings);

// The reference page docs/reference/settings.md.
std::string settings_markdown();

}  // namespace unisono::base

// SPDX-License-Identifier: BSD-3-Clause
// Log: lines on stderr, `host:pid:rank [component] text`, one write(2) each so that lines of
// several ranks do not mix. Control path only. Quiet above warnings unless UNISONO_LOG says
// otherwise. Any thread; the rank is per thread, because ranks may be threads.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/settings/settings.hpp"

namespace unisono::base {

void set_log_level(LogLevel level);  // of the process
void set_log_rank(int rank);         // of the calling thread; -1 until known
bool log_enabled(LogLevel level);

// Writes the line whatever the level; `text` without a newline at its end.
void write_log_line(std::string_view component, std::string_view text);

// log(LogLevel::info, "bootstrap", "rank {} of {}", rank, ranks)
template <class... Arguments>
void log(LogLevel level, std::string_view component, fmt::format_string<Arguments...> format,
         Arguments&&... arguments) {
  if (!log_enabled(level)) return;
  write_log_line(component, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace unisono::base

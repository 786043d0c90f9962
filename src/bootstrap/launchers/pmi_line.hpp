// SPDX-License-Identifier: BSD-3-Clause
// A line of PMI's wire protocol, version 1: "cmd=get_result rc=0 value=x\n". The interface is in
// "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems" (Balaji et al.,
// EuroMPI'10), the protocol in MPICH's hydra. A received line comes from outside: it is bounded and
// checked. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace unisono::bootstrap {

struct PmiLine {
  static constexpr std::size_t kMostBytes = 4096;

  std::string command;
  std::map<std::string, std::string, std::less<>> values;  // besides the command

  // Empty if the line has no such name.
  std::string_view value(std::string_view name) const;
};

// `line`: without its end of line. Words that are no assignment are ignored, since messages for
// people have some. Errors: state (no command, too long, or unprintable letters).
base::Result<PmiLine> parse_pmi_line(std::string_view line);

// The result has its end of line. Values are printable and have no blanks.
std::string pmi_line(std::string_view command,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> values);

}  // namespace unisono::bootstrap

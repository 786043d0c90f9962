// SPDX-License-Identifier: BSD-3-Clause
// A line of PMI's wire, version 1 ("PMI: A Scalable Parallel Process-Management Interface for
// Extreme-Scale Systems", Balaji et al., EuroMPI'10, is on the interface; the wire is as MPICH's
// hydra speaks it): "cmd=get_result rc=0 value=x\n". What comes is from outside: bounded and
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

  // Empty if it is not there.
  std::string_view value(std::string_view name) const;
};

// Without its end of line. Words that are no assignment are passed over, as in messages for people.
// Errors: state (no command, too long, or letters that no line has).
base::Result<PmiLine> parse_pmi_line(std::string_view line);

// With its end of line. Values are printable and have no blanks.
std::string pmi_line(std::string_view command,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> values);

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/text.hpp"

namespace unisono::base {

std::optional<ProcessRecord> read_process(pid_t pid) {
  constexpr int kStateField = 3;
  constexpr int kParentField = 4;
  constexpr int kStartField = 22;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  // No istreambuf_iterator here: it throws if the process ends between the open and the read.
  std::string line;
  std::getline(file, line, '\0');
  // The command may hold blanks and brackets, so fields are counted from its last bracket.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  ProcessRecord record;
  record.command = line.substr(open + 1, close - open - 1);
  std::size_t position = close + 2;
  for (int field = kStateField; field <= kStartField && position < line.size(); ++field) {
    const std::size_t blank = std::min(line.find(' ', position), line.size());
    const std::string value = line.substr(position, blank - position);
    if (field == kStateField && !value.empty()) record.state = value[0];
    if (field == kParentField) {
      record.parent = static_cast<pid_t>(base::parse_integer(value).value_or(0));
    }
    if (field == kStartField) record.start_time = value;
    position = blank + 1;
  }
  if (record.start_time.empty()) return {};
  return record;
}

}  // namespace unisono::base

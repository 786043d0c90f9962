// SPDX-License-Identifier: BSD-3-Clause
// The text form of schedules: what a person can read, type and diff; golden files hold it. The
// grammar is in docs/reference/schedule-text.md. parse() takes foreign bytes: it accepts exactly
// what print() writes (plus blank lines, further spaces and # comments), never crashes, and its
// errors name line and column. Whether the program makes sense is for check/ to say. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::schedule {

// What parse() refuses beyond. Far above any use; they keep all later arithmetic within its types:
// kMaxTextRanks times kMaxTextCount is kMaxTextElement.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;
inline constexpr std::int64_t kMaxTextRanks = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxTextCount = std::int64_t{1} << 40;    // of a shape
inline constexpr std::int64_t kMaxTextElement = std::int64_t{1} << 60;  // borders, slots, scratch
inline constexpr std::int64_t kMaxTextOps = std::int64_t{1} << 20;      // of a schedule
inline constexpr std::int64_t kMaxTextSlots = std::int64_t{1} << 20;    // of a schedule

std::string print(const Schedule& schedule);
std::string print(const std::vector<Schedule>& set);

// Parts of it, for messages. The first two bear malformed schedules.
std::string print_op(const Schedule& schedule, OpId op);  // "send input[0:8] to 1 slot 0"
std::string print_range(const Range& range);              // "slot 2[0:8]": elements 0 to 7
std::string print_counts(const Shape& shape);             // "count 8", "blocks 3 0 2"
std::string print_hosts(const Shape& shape);              // " hosts 0 0 1"; "" if there is one

// Code::argument, with the place: "line 3, column 8: ...".
base::Result<std::vector<Schedule>> parse(std::string_view text);

// A Graphviz picture of a whole set: one column a rank, messages as arrows between columns.
std::string graphviz(const std::vector<Schedule>& set);
// Who sends to whom: a node a rank, messages as arrows with their step and, if they are not all of
// one length, their elements. Only of schedules that end (check/).
std::string graphviz_messages(const std::vector<Schedule>& set);

}  // namespace unisono::schedule

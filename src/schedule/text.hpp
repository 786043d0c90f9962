// SPDX-License-Identifier: BSD-3-Clause
// The text form of schedules, for people to read, type and compare, and for golden files. The
// grammar is in docs/reference/schedule-text.md. parse() takes untrusted bytes. It accepts exactly
// what print() writes (plus blank lines, further spaces and # comments) and never crashes. Its
// errors name line and column. check/ decides whether the program makes sense. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace unisono::schedule {

// Limits of parse(), far above any use. They keep all later arithmetic within its types:
// kMaxTextRanks times kMaxTextCount is kMaxTextElement.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;
inline constexpr std::int64_t kMaxTextRanks = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxTextCount = std::int64_t{1} << 40;    // of a shape
inline constexpr std::int64_t kMaxTextElement = std::int64_t{1} << 60;  // borders, slots, scratch
inline constexpr std::int64_t kMaxTextOps = std::int64_t{1} << 20;      // of a schedule
inline constexpr std::int64_t kMaxTextSlots = std::int64_t{1} << 20;    // of a schedule

std::string print(const Schedule& schedule);
std::string print(const std::vector<Schedule>& set);

// Parts of the text form, for messages. The first two accept malformed schedules.
std::string print_op(const Schedule& schedule, OpId op);  // "send input[0:8] to 1 slot 0"
std::string print_range(const Range& range);              // "slot 2[0:8]": elements 0 to 7
std::string print_counts(const Shape& shape);             // "count 8", "blocks 3 0 2"
std::string print_hosts(const Shape& shape);              // " hosts 0 0 1"; "" if there is one

// Code::argument, with the place: "line 3, column 8: ...".
base::Result<std::vector<Schedule>> parse(std::string_view text);

// A Graphviz picture of a whole set: one column a rank, messages as arrows between columns.
std::string graphviz(const std::vector<Schedule>& set);
// The messages between ranks: a node for each rank, and arrows with their step. Arrows also show
// their elements if lengths differ. The schedules must terminate (check/).
std::string graphviz_messages(const std::vector<Schedule>& set);

}  // namespace unisono::schedule

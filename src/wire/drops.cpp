// SPDX-License-Identifier: BSD-3-Clause
// Names and meanings of the reasons for a drop (drops.hpp). Control path; any thread.
#include "wire/drops.hpp"

#include <fmt/format.h>

#include <numeric>

namespace unisono::wire {
namespace {

struct Row {
  Drop drop;
  std::string_view name;
  std::string_view meaning;
};

// clang-format off
constexpr std::array<Row, kDropCount> kTable{{
    {Drop::none, "none", "not dropped"},
    {Drop::too_short, "short", "fewer bytes than a header"},
    {Drop::magic, "magic", "not a packet of this library"},
    {Drop::version, "version", "of another version of the wire format"},
    {Drop::kind, "kind", "of no known kind"},
    {Drop::length, "length", "its length is not what the datagram holds"},
    {Drop::job, "job", "of another job"},
    {Drop::sender, "sender", "from no rank of the job, or from the receiver itself"},
    {Drop::target, "target", "for another rank"},
    {Drop::tag, "tag", "made without the job's key, or damaged"},
    {Drop::replay, "replay", "has come before, or is too old to tell"},
}};
// clang-format on

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].drop != static_cast<Drop>(i)) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

const Row& row(Drop drop) { return kTable[static_cast<std::size_t>(drop)]; }

}  // namespace

std::string_view drop_name(Drop drop) { return row(drop).name; }
std::string_view drop_meaning(Drop drop) { return row(drop).meaning; }

std::uint64_t Drops::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::string Drops::text() const {
  std::string result;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    if (!result.empty()) result += ", ";
    result += fmt::format("{} {}", kTable[i].name, counts[i]);
  }
  return result;
}

}  // namespace unisono::wire

// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/trouble.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace unisono::reliable {
namespace {

void add(std::string& text, std::uint64_t count, std::string_view what) {
  if (count == 0) return;
  text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
}

}  // namespace

std::string trouble_text(Reliable& reliable) {
  const ReliableCounts& links = reliable.counts();
  const GroupCounts& group = reliable.group().counts();
  const transport::DatagramCounts datagrams = reliable.datagrams().counts();
  std::string text;
  add(text, links.repeated + group.repaired, "packets repeated");
  add(text, links.pieces, "pieces of packets too long for their path");
  add(text, links.nacks + group.nacks, "requests sent");
  add(text, group.failed, "multicasts that a lost rank may lack");
  add(text, group.passed_on, "multicasts passed on by unicast");
  add(text, links.duplicates + group.duplicates, "came twice");
  add(text, links.beyond + group.beyond, "too far ahead");
  add(text, links.misplaced, "for no place in memory");
  add(text, datagrams.overflowed, "lost in a full buffer");
  add(text, datagrams.too_long, "too long");
  add(text, datagrams.refused, "refused by the system");
  const wire::Drops& drops = reliable.drops();
  if (drops.total() == 0) return text;
  return fmt::format("{}{}dropped: {}", text, text.empty() ? "" : "; ", drops.text());
}

}  // namespace unisono::reliable

// SPDX-License-Identifier: BSD-3-Clause
#include "comm/nic/nic_path.hpp"

#include <algorithm>
#include <utility>

#include "engine/size_queue.hpp"

namespace unisono::comm {
namespace {

// The fields of a progress word, from the lowest bit on.
constexpr unsigned kGivenBit = 0, kGivenBits = 1U << select::SplitChoice::kMost;
constexpr unsigned kEndedBit = kGivenBit + kGivenBits;
constexpr unsigned kCallsBit = kEndedBit + 1, kCallsBits = 18;
constexpr unsigned kReturnedBit = kCallsBit + kCallsBits, kReturnedBits = 3;
constexpr unsigned kCompletedBit = kReturnedBit + kReturnedBits, kCompletedBits = 14;
constexpr unsigned kHistoryBit = kCompletedBit + kCompletedBits;
static_assert(nic::kInFlightMax < 1U << kReturnedBits);
static_assert(kHistoryBit + plan::kDigestBits == 64);

// Bits for the number of a communicator's request; a larger number would reach into the next
// communicator's.
constexpr unsigned kRequestBits = 24;

constexpr std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

// The difference `other` - `own`, of numbers that were cut to so many bits.
std::int64_t ahead(std::uint64_t own, std::uint64_t other, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<std::int64_t>((other - own) << unused) >> unused;
}

}  // namespace

std::uint64_t NicProgress::word() const {
  return std::uint64_t{history} << kHistoryBit |
         (completed & mask(kCompletedBits)) << kCompletedBit |
         (returned & mask(kReturnedBits)) << kReturnedBit |
         (calls & mask(kCallsBits)) << kCallsBit | std::uint64_t{ended} << kEndedBit |
         (given & mask(kGivenBits)) << kGivenBit;
}

NicProgress NicProgress::of_word(std::uint64_t word) {
  return {.history = static_cast<std::uint32_t>(word >> kHistoryBit),
          .calls = word >> kCallsBit & mask(kCallsBits),
          .completed = word >> kCompletedBit & mask(kCompletedBits),
          .returned = static_cast<std::uint32_t>(word >> kReturnedBit & mask(kReturnedBits)),
          .given = static_cast<std::uint32_t>(word >> kGivenBit & mask(kGivenBits)),
          .ended = (word >> kEndedBit & 1) != 0};
}

bool has_result(const NicProgress& own, const NicProgress& other) {
  return ahead(own.completed, other.completed, kCompletedBits) > 0;
}

// No rank gets past an operation of the NIC path without its result. A rank with fewer calls may
// still make them. A rank that has ended makes no more calls; its absence is detected elsewhere.
bool calls_differ(const NicProgress& own, const NicProgress& other) {
  if (has_result(own, other) || other.ended) return false;
  const std::int64_t calls = ahead(own.calls, other.calls, kCallsBits);
  return calls > 0 || (calls == 0 && other.history != own.history);
}

bool has_fewer_calls(const NicProgress& other, std::uint64_t calls) {
  return ahead(other.calls, calls, kCallsBits) > 0;
}

std::uint64_t calls_behind(std::uint64_t calls, const NicProgress& other) {
  return static_cast<std::uint64_t>(ahead(other.calls, calls, kCallsBits));
}

std::uint64_t nic_calls(std::uint64_t calls) { return calls & mask(kCallsBits); }
std::uint64_t nic_completed(std::uint64_t completed) { return completed & mask(kCompletedBits); }

bool has_given(const NicProgress& own, const NicProgress& other, int tree) {
  if (has_result(own, other)) return true;
  const std::int64_t before = ahead(other.completed, own.completed, kCompletedBits);
  if (before < static_cast<std::int64_t>(other.returned)) return true;
  return (other.given >> tree & 1) != 0 && ahead(own.calls, other.calls, kCallsBits) == 0 &&
         ahead(own.completed, other.completed, kCompletedBits) == 0;
}

// A rank gives the pieces of a depth beyond those that it has, and no rank has a piece that another
// one has not given. So the difference is from -depth to twice the depth.
bool has_given_piece(const NicProgress& own, const NicProgress& other, std::uint32_t finished) {
  static_assert(3 * nic::kPacketsMax < 1U << kGivenBits);
  if (has_result(own, other)) return true;
  if (ahead(own.calls, other.calls, kCallsBits) != 0 ||
      ahead(own.completed, other.completed, kCompletedBits) != 0) {
    return false;
  }
  const std::uint64_t more = (other.given - std::uint64_t{finished}) & mask(kGivenBits);
  return more >= 1 && more <= std::uint64_t{2} * nic::kPacketsMax;
}

// The lowest bit: that there is one.
constexpr unsigned kMarkBit = 1 + kCompletedBits;

std::uint64_t nic_leave_record(std::uint64_t mark, std::uint64_t completed) {
  return mark << kMarkBit | (completed & mask(kCompletedBits)) << 1 | 1;
}

std::optional<NicProgress> read_leave_record(std::uint64_t mark, std::uint64_t word) {
  if ((word & 1) == 0 || word >> kMarkBit != (mark << kMarkBit) >> kMarkBit) return std::nullopt;
  NicProgress progress;
  progress.completed = word >> 1 & mask(kCompletedBits);
  progress.ended = true;
  return progress;
}

NicPath::NicPath(std::unique_ptr<engine::NicGroup> joined, std::uint64_t segment_mark,
                 topology::HostMap map, int rank)
    : group(std::move(joined)),
      mark(segment_mark),
      first_asked(segment_mark << kRequestBits),
      hosts(std::move(map)) {
  for (const int other : hosts.members(hosts.of(rank))) {
    if (other != rank) neighbour(other).here = true;
  }
  if (!group->leads()) return;
  std::uint32_t tree = 1;
  for (const nic::Node& node : group->trees()) {
    if (node.parent >= 0) neighbour(rank_of({node.parent, 0})).above |= tree;
    for (const int child : node.children) neighbour(rank_of({child, 0})).below |= tree;
    tree <<= 1;
  }
  for (const auto& next : neighbours) {
    if (next.here) continue;
    const auto ranks = hosts.members(hosts.of(next.rank));
    awaited.insert(awaited.end(), ranks.begin(), ranks.end());
  }
  if (!group->gathers()) return;
  for (int host = 0; host < hosts.hosts(); ++host) {
    if (host != hosts.of(rank)) neighbour(rank_of({host, 0}));
  }
}

NicPath::Neighbour& NicPath::neighbour(int rank) {
  const auto found = std::ranges::find(neighbours, rank, &Neighbour::rank);
  if (found != neighbours.end()) return *found;
  return neighbours.emplace_back(Neighbour{.rank = rank, .asked = first_asked});
}

}  // namespace unisono::comm

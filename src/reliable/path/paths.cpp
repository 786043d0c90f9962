// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/paths.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace unisono::reliable {
namespace {

constexpr unsigned kRoundBits = 16;

// Rounds are few at a time, and their numbers begin anew after 2^16.
bool is_later(std::uint16_t round, std::uint16_t than) {
  return static_cast<std::int16_t>(round - than) > 0;
}

bool is_between(std::uint16_t round, std::uint16_t first, std::uint16_t last) {
  return static_cast<std::uint16_t>(round - first) <= static_cast<std::uint16_t>(last - first);
}

}  // namespace

void PathReport::note_question(std::uint16_t round) {
  if (question == 0 || is_later(round, question)) question = round;
}

void PathReport::note_probe(std::size_t length, std::uint16_t round) {
  if (length >= kLengths) return;
  if (heard[length] == 0 || is_later(round, heard[length])) heard[length] = round;
}

std::uint64_t PathReport::word() const {
  std::uint64_t word = question;
  for (std::size_t i = 0; i < kLengths; ++i) {
    word |= std::uint64_t{heard[i]} << (kRoundBits * (i + 1));
  }
  return word;
}

PathReport PathReport::of(std::uint64_t word) {
  PathReport report{.question = static_cast<std::uint16_t>(word)};
  for (std::size_t i = 0; i < kLengths; ++i) {
    report.heard[i] = static_cast<std::uint16_t>(word >> (kRoundBits * (i + 1)));
  }
  return report;
}

Paths::Paths(PathOptions options)
    : options_(std::move(options)),
      paths_(static_cast<std::size_t>(options_.hosts.hosts())),
      prng_(options_.seed) {
  static_assert(PathReport::kLengths == kSteps.size() + 1);
  UNISONO_CHECK(options_.full_bytes != 0, "the longest datagram");
}

std::size_t Paths::bytes_of(std::size_t length) const {
  return length == 0 ? options_.full_bytes : kSteps[length - 1];
}

Paths::Search* Paths::search_of(int host) {
  const auto search = std::ranges::find(searches_, host, &Search::host);
  return search == searches_.end() ? nullptr : &*search;
}

void Paths::search(int rank, std::int64_t now_ns) {
  std::erase_if(searches_, [now_ns](const Search& search) {
    return search.rank < 0 && now_ns >= search.until_ns;
  });
  Path& path = paths_[static_cast<std::size_t>(host_of(rank))];
  if (path.blocked != 0 || search_of(host_of(rank)) != nullptr) return;
  Search& search = searches_.emplace_back();
  search.host = host_of(rank);
  search.rank = rank;
  search.counted = path.round;
  search.first = static_cast<std::uint16_t>(path.round + 1);
  if (search.first == 0) search.first = 1;  // 0 means none
  search.timer.start(now_ns, {}, prng_);
}

void Paths::forget(int rank) {
  std::erase_if(searches_, [rank](const Search& search) { return search.rank == rank; });
}

std::optional<Paths::Round> Paths::due(std::int64_t now_ns) {
  std::erase_if(searches_, [now_ns](const Search& search) {
    return search.timer.is_due(now_ns) && !search.is_answered &&
           search.unanswered + 1 == kUnanswered;
  });
  const auto search = std::ranges::find_if(
      searches_, [now_ns](const Search& each) { return each.timer.is_due(now_ns); });
  if (search == searches_.end()) return std::nullopt;
  begin_round(*search, now_ns);
  return next_round(*search);
}

void Paths::begin_round(Search& search, std::int64_t now_ns) {
  if (search.is_answered) {
    search.unanswered = 0;
    search.timer.stop();
    search.timer.start(now_ns, options_.ask, prng_);
  } else {
    ++search.unanswered;
    search.timer.again(now_ns, options_.ask, prng_);
  }
  search.is_answered = false;
}

Paths::Round Paths::next_round(Search& search) {
  Path& path = path_of(search);
  if (++path.round == 0) ++path.round;
  const bool is_first = path.round == search.first;
  Round round{.rank = search.rank, .number = path.round, .probes = {}};
  for (std::size_t length = 0; length < PathReport::kLengths; ++length) {
    const std::size_t bytes = bytes_of(length);
    if (bytes > longest(search) || (length > 0 && bytes >= options_.full_bytes)) continue;
    const int copies = round.probes.empty() && !is_first ? kCopies : 1;
    round.probes.insert(round.probes.end(), static_cast<std::size_t>(copies), {length, bytes});
    if (is_first) break;  // most paths carry it
  }
  return round;
}

std::int64_t Paths::next_deadline_ns() const {
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const Search& search : searches_) {
    if (search.timer.runs()) soonest = std::min(soonest, search.timer.deadline_ns());
  }
  return soonest;
}

void Paths::withdraw(const Round& round) {
  if (Search* const search = search_of(host_of(round.rank))) search->is_answered = true;
}

bool Paths::take_report(int rank, const PathReport& report, std::int64_t now_ns) {
  Search* const search = search_of(host_of(rank));
  if (search == nullptr || search->rank != rank) return false;
  const std::uint16_t last = path_of(*search).round;
  bool passes = false;
  for (std::size_t length = 0; length < PathReport::kLengths; ++length) {
    const std::uint16_t heard = report.heard[length];
    if (heard == 0 || !is_between(heard, search->first, last)) continue;
    search->passes[length] = true;
    passes |= bytes_of(length) >= longest(*search);
  }
  if (passes) {
    search->rank = -1;
    search->timer.stop();
    search->until_ns = now_ns + kFoundNs;
    return false;
  }
  // An answer that comes late tells as much.
  const auto next = static_cast<std::uint16_t>(search->counted + 1);
  if (search->counted == last || !is_between(report.question, next, last)) return false;
  search->counted = report.question;
  search->is_answered = true;
  ++search->answered;
  if (conclude(*search, now_ns)) return true;
  RetryDelays apart = options_.apart;
  // Nothing comes at all: what blocks the path may be a queue that is full for a while.
  for (int i = kRounds; i < search->answered; ++i) {
    apart.first_ns = std::min(2 * apart.first_ns, options_.slowest_ns);
  }
  search->timer.stop();
  search->timer.start(now_ns, apart, prng_);
  return false;
}

// The longest probe has not come in any round.
bool Paths::conclude(Search& search, std::int64_t now_ns) {
  if (search.answered < kRounds) return false;
  const auto shorter = std::ranges::find(search.passes, true);
  Path& path = path_of(search);
  if (shorter != search.passes.end()) {
    const auto length = static_cast<std::size_t>(shorter - search.passes.begin());
    path.most_bytes = static_cast<std::uint16_t>(bytes_of(length)) & 0x7fffU;
    is_narrow_ = true;
  } else if (search.answered == kBlocked) {
    path.blocked = 1;
  } else {
    return false;
  }
  search.rank = -1;
  search.timer.stop();
  search.until_ns = now_ns + kFoundNs;
  return true;
}

}  // namespace unisono::reliable

// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/roster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace unisono::bootstrap {
namespace {

// Bounds the text of missing_text() on processes that claimed a rank twice.
constexpr std::size_t kMostRefusalsBytes = 1024;

// "1, 3, 5-9"
std::string rank_list(const std::vector<int>& ranks) {
  std::string result;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    result += fmt::format("{}{}", result.empty() ? "" : ", ", ranks[i]);
    if (last > i) result += fmt::format("{}{}", last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
  }
  return result;
}

}  // namespace

bool Roster::has_local_rank() const {
  return std::ranges::any_of(ranks_, [](const JoinedRank& rank) { return rank.pid != 0; });
}

void Roster::add(JoinedRank rank) {
  if (rank.pid == 0 && !rank.via_relay) relays_.emplace(rank.hello.host, rank.hello.rank);
  const std::uint32_t number = rank.hello.rank;
  ranks_[number] = std::move(rank);
  ++joined_;
}

const JoinedRank* Roster::relay_of(const HostId& host) const {
  const auto found = relays_.find(host);
  return found == relays_.end() ? nullptr : &ranks_[found->second];
}

const JoinedRank* Roster::find(Acceptor::ConnectionId connection) const {
  const auto found = std::ranges::find_if(ranks_, [&](const JoinedRank& rank) {
    return rank.connection == connection && !rank.via_relay;
  });
  return found == ranks_.end() ? nullptr : &*found;
}

const JoinedRank* Roster::find(Acceptor::ConnectionId connection, const Nonce& hello) const {
  const auto found = std::ranges::find_if(ranks_, [&](const JoinedRank& rank) {
    return rank.connection == connection && rank.hello.nonce == hello;
  });
  return found == ranks_.end() ? nullptr : &*found;
}

base::Error Roster::claimed_twice(std::uint32_t rank, const std::string& origin) {
  base::Error error{base::Code::argument,
                    fmt::format("rank {} was claimed twice: by {}, which keeps it, and by {}; each "
                                "rank joins once",
                                rank, ranks_[rank].origin, origin)};
  if (refusals_.size() < kMostRefusalsBytes) refusals_ += fmt::format("; {}", error.message);
  return error;
}

std::string Roster::missing_text(std::int64_t timeout_ns) const {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].connection == 0) missing.push_back(static_cast<int>(rank));
  }
  return fmt::format(
      "{} of {} ranks did not join within {} (UNISONO_START_TIMEOUT): missing {} {}{}",
      missing.size(), ranks_.size(), base::format_time_ns(timeout_ns),
      missing.size() == 1 ? "rank" : "ranks", rank_list(missing), refusals_);
}

}  // namespace unisono::bootstrap

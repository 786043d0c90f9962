// SPDX-License-Identifier: BSD-3-Clause
// Paths: how long the datagrams to each other host may be. A path may carry less than the
// interfaces at its ends say, and report it to nobody: short datagrams pass, full ones vanish. A
// search finds that out (docs/decisions/0042). In each of its rounds this rank sends probes of
// different lengths, in the first the longest alone, to one rank of the host, and a short question
// behind them. That rank answers with the round in which it last received a probe of each length.
// If the question is answered again and again and the longest probe never arrives, datagrams to
// that host become shorter, and never longer again. Losses without regard to length hardly ever
// look like that.
//
// If the questions are answered and no probe arrives, however short, the host is blocked: it cannot
// get what it needs, although it is there. No sockets and no clock. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/prng.hpp"
#include "reliable/link/retry.hpp"
#include "topology/host_map.hpp"

namespace unisono::reliable {

// A rank's report on the probes that another one has sent to it; 64 bits of a status.
struct PathReport {
  static constexpr std::size_t kLengths = 3;

  std::uint16_t question = 0;                   // the last round whose question has come; 0: none
  std::array<std::uint16_t, kLengths> heard{};  // the last round in which that probe has come

  void note_question(std::uint16_t round);
  void note_probe(std::size_t length, std::uint16_t round);
  std::uint64_t word() const;
  static PathReport of(std::uint64_t word);
};

struct PathOptions {
  topology::HostMap hosts;
  std::size_t full_bytes = 0;   // of the longest datagram
  RetryDelays apart;            // between a round's answer and the next round
  RetryDelays ask;              // until a question is repeated
  std::int64_t slowest_ns = 0;  // between rounds where no probe comes at all
  std::uint64_t seed = 1;
};

class Paths {
 public:
  // Every path of IPv6 carries so many bytes (1280 with 48 of IP and UDP), and every path of IPv4
  // (576 with 68).
  static constexpr std::array<std::size_t, 2> kSteps{1232, 508};
  static constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  // If a path loses every tenth datagram, one search in 10^9 goes wrong: see kCopies.
  static constexpr int kRounds = 5;
  static constexpr int kCopies = 2;  // of the longest probe, in each round but the first
  // If a path loses half of all, one in four thousand million.
  static constexpr int kBlocked = 32;
  // Questions in a row without an answer, after which a search is given up. The next request of a
  // packet begins another one.
  static constexpr int kUnanswered = 16;
  // A path that a search has found to carry full datagrams is not searched again before. It bounds
  // the probes on a path that loses packets of any length.
  static constexpr std::int64_t kFoundNs = 50'000'000;

  explicit Paths(PathOptions options);

  // Bytes of a datagram to that rank's host, with its header.
  std::size_t most_bytes(int rank) const {
    const std::size_t most_bytes = path_to(rank).most_bytes;
    return most_bytes == 0 ? kAny : most_bytes;
  }
  bool is_blocked(int rank) const { return path_to(rank).blocked != 0; }
  bool is_narrow() const { return is_narrow_; }  // one of them at least
  bool same_host(int rank, int other) const { return options_.hosts.share(rank, other); }

  // A packet to that rank may have vanished because of its length; or nothing is known of the path
  // yet. Begins a search, unless one is under way or has just ended.
  void search(int rank, std::int64_t now_ns);
  // That rank answers no more.
  void forget(int rank);

  // The probes and reports that are to be sent now.
  struct Probe {
    std::size_t length;  // index of its length, as in PathReport
    std::size_t bytes;   // with its header
  };
  struct Round {
    int rank;
    std::uint16_t number;
    std::vector<Probe> probes;  // before the question
  };
  std::optional<Round> due(std::int64_t now_ns);
  // When due() gives something next; far in the future if never.
  std::int64_t next_deadline_ns() const;
  // The probes of that round did not all leave: its answer tells nothing.
  void withdraw(const Round& round);

  // A report of that rank: whether most_bytes() or is_blocked() of its host has changed.
  bool take_report(int rank, const PathReport& report, std::int64_t now_ns);

 private:
  // The state for each host: a rank of a large job has many.
  struct Path {
    std::uint16_t round = 0;            // the last one sent
    std::uint16_t most_bytes : 15 = 0;  // 0: any
    std::uint16_t blocked : 1 = 0;
  };
  // One that is under way, or has ended a short time ago.
  struct Search {
    int host = 0;
    int rank = -1;              // to which it goes; -1: it has ended
    std::uint16_t first = 1;    // its first round
    std::uint16_t counted = 0;  // the last round whose answer has come
    bool is_answered = true;    // one of them since the last was sent
    int answered = 0;           // rounds
    int unanswered = 0;         // questions in a row
    std::array<bool, PathReport::kLengths> passes{};
    RetryTimer timer;           // until the next round
    std::int64_t until_ns = 0;  // the next search begins no earlier than that, once it has ended
  };

  int host_of(int rank) const { return options_.hosts.of(rank); }
  const Path& path_to(int rank) const { return paths_[static_cast<std::size_t>(host_of(rank))]; }
  Path& path_of(const Search& search) { return paths_[static_cast<std::size_t>(search.host)]; }
  Search* search_of(int host);
  std::size_t bytes_of(std::size_t length) const;
  std::size_t longest(const Search& search) {
    const std::size_t most_bytes = path_of(search).most_bytes;
    return most_bytes == 0 ? options_.full_bytes : std::min(most_bytes, options_.full_bytes);
  }
  void begin_round(Search& search, std::int64_t now_ns);
  Round next_round(Search& search);
  bool conclude(Search& search, std::int64_t now_ns);

  PathOptions options_;
  std::vector<Path> paths_;  // by host
  std::vector<Search> searches_;
  bool is_narrow_ = false;
  base::Prng prng_;
};

}  // namespace unisono::reliable

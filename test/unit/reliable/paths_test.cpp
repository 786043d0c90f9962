// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/path/paths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace unisono::reliable::paths_test {
namespace {

constexpr std::size_t kFull = 1472;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

PathOptions options_of(const std::vector<int>& hosts, std::size_t full_bytes = kFull) {
  return {.hosts = topology::HostMap::of_labels(hosts),
          .full_bytes = full_bytes,
          .apart = {.first_ns = 300'000, .most_ns = 20 * kMillisecond},
          .ask = {.first_ns = 300'000, .most_ns = 20 * kMillisecond},
          .slowest_ns = 100 * kMillisecond};
}

// A search to rank 1, of which `arrives` says which probes do.
class Search {
 public:
  using Arrives = std::function<bool(std::size_t bytes)>;

  explicit Search(std::size_t full_bytes = kFull) : paths(options_of({0, 1}, full_bytes)) {}

  // Until the search ends. Whether it has changed something.
  bool run(const Arrives& arrives) {
    paths.search(1, now_ns);
    while (paths.next_deadline_ns() != kNever) {
      now_ns = std::max(now_ns, paths.next_deadline_ns());
      if (round(arrives)) return true;
    }
    return false;
  }
  bool round(const Arrives& arrives) {
    const auto round = paths.due(now_ns);
    if (!round) return false;
    ++rounds;
    for (const Paths::Probe& probe : round->probes) {
      if (arrives(probe.bytes)) report.note_probe(probe.length, round->number);
    }
    report.note_question(round->number);
    now_ns += 100'000;
    return paths.take_report(1, PathReport::of(report.word()), now_ns);
  }

  Paths paths;
  PathReport report;
  std::int64_t now_ns = 0;
  int rounds = 0;
};

auto up_to(std::size_t most_bytes) {
  return [most_bytes](std::size_t bytes) { return bytes <= most_bytes; };
}

TEST(Paths, TheLongestLengthThatPassesIsFoundInMilliseconds) {
  for (const auto& [carries, found] : {std::pair{1471, 1232}, {1232, 1232}, {1231, 508}}) {
    Search search;
    EXPECT_EQ(search.paths.most_bytes(1), Paths::kAny);
    EXPECT_TRUE(search.run(up_to(static_cast<std::size_t>(carries))));
    EXPECT_EQ(search.paths.most_bytes(1), static_cast<std::size_t>(found));
    EXPECT_TRUE(search.paths.is_narrow());
    EXPECT_FALSE(search.paths.is_blocked(1));
    EXPECT_LT(search.now_ns, 5 * kMillisecond);
  }
}

TEST(Paths, APathThatCarriesFullDatagramsTakesOneRound) {
  Search search;
  EXPECT_FALSE(search.run(up_to(kFull)));
  EXPECT_EQ(search.rounds, 1);
  EXPECT_EQ(search.paths.most_bytes(1), Paths::kAny);
  // And is not searched again at once.
  EXPECT_FALSE(search.run(up_to(1232)));
  EXPECT_EQ(search.rounds, 1);
  search.now_ns += Paths::kFoundNs;
  EXPECT_TRUE(search.run(up_to(1232)));
}

TEST(Paths, OneLongProbeThatArrivesIsEnough) {
  for (int which = 0; which < (Paths::kRounds - 1) * Paths::kCopies + 1; ++which) {
    Search search;
    int longest = 0;
    EXPECT_FALSE(
        search.run([&](std::size_t bytes) { return bytes != kFull || longest++ == which; }));
    EXPECT_EQ(search.paths.most_bytes(1), Paths::kAny) << which;
  }
}

TEST(Paths, ItBecomesShorterOnceMore) {
  Search search;
  EXPECT_TRUE(search.run(up_to(1272)));
  EXPECT_EQ(search.paths.most_bytes(1), 1232U);
  search.now_ns += Paths::kFoundNs;
  EXPECT_FALSE(search.run(up_to(1272))) << "never longer again";
  search.now_ns += Paths::kFoundNs;
  EXPECT_TRUE(search.run(up_to(548)));
  EXPECT_EQ(search.paths.most_bytes(1), 508U);
}

TEST(Paths, ShortDatagramsHaveNoShorterProbes) {
  Search search(272);
  std::vector<std::size_t> lengths;
  EXPECT_FALSE(search.run([&](std::size_t bytes) {
    lengths.push_back(bytes);
    return true;
  }));
  EXPECT_EQ(lengths, std::vector<std::size_t>{272});
  search.now_ns += Paths::kFoundNs;
  search.run([&](std::size_t bytes) {
    lengths.push_back(bytes);
    return lengths.size() > 2;
  });
  EXPECT_EQ(lengths, std::vector<std::size_t>(2 + Paths::kCopies, 272));
}

// A queue that is full for a while lets short packets pass, too: the host is not lost soon.
TEST(Paths, AHostToWhichNoProbePassesIsBlocked) {
  Search search;
  EXPECT_TRUE(search.run(up_to(72)));
  EXPECT_TRUE(search.paths.is_blocked(1));
  EXPECT_EQ(search.rounds, Paths::kBlocked);
  EXPECT_GT(search.now_ns, 1000 * kMillisecond);
  search.now_ns += Paths::kFoundNs;
  EXPECT_FALSE(search.run(up_to(72)));
  EXPECT_EQ(search.rounds, Paths::kBlocked) << "nothing more to find out";
}

// Answers that are slower than the question is repeated still count.
TEST(Paths, LateAnswersCount) {
  Search search;
  search.paths.search(1, search.now_ns);
  std::vector<std::uint16_t> sent;
  for (int i = 0; i < 100 && search.paths.most_bytes(1) == Paths::kAny; ++i) {
    search.now_ns = search.paths.next_deadline_ns();
    const auto round = search.paths.due(search.now_ns);
    ASSERT_TRUE(round);
    sent.push_back(round->number);
    if (sent.size() < 3) continue;
    search.report.note_question(sent[sent.size() - 3]);
    search.report.note_probe(1, sent[sent.size() - 3]);
    search.paths.take_report(1, search.report, search.now_ns);
  }
  EXPECT_EQ(search.paths.most_bytes(1), 1232U);
}

TEST(Paths, ASearchWithoutAnswersEnds) {
  Search search;
  search.paths.search(1, 0);
  while (search.paths.next_deadline_ns() != kNever) {
    search.now_ns = search.paths.next_deadline_ns();
    search.paths.due(search.now_ns);
    ASSERT_LT(search.now_ns, 1000 * kMillisecond);
  }
  EXPECT_EQ(search.paths.most_bytes(1), Paths::kAny);
  EXPECT_TRUE(search.run(up_to(1232))) << "and another one finds out";
}

TEST(Paths, WhatDidNotLeaveTellsNothing) {
  Search search;
  search.paths.search(1, 0);
  for (int i = 0; i < 200; ++i) {
    search.now_ns = search.paths.next_deadline_ns();
    const auto round = search.paths.due(search.now_ns);
    ASSERT_TRUE(round);
    search.paths.withdraw(*round);
  }
  EXPECT_FALSE(search.run(up_to(kFull)));
  EXPECT_EQ(search.paths.most_bytes(1), Paths::kAny);
}

TEST(Paths, WhatIsFoundHoldsForAllRanksOfTheHost) {
  Paths paths(options_of({0, 1, 1, 2}));
  paths.search(2, 0);
  paths.search(1, 0);  // one search for a host
  PathReport report;
  std::int64_t now_ns = 0;
  int rounds = 0;
  for (; paths.next_deadline_ns() != kNever; ++rounds) {
    now_ns = paths.next_deadline_ns();
    const auto round = paths.due(now_ns);
    ASSERT_TRUE(round);
    EXPECT_EQ(round->rank, 2);
    report.note_probe(1, round->number);
    report.note_question(round->number);
    EXPECT_FALSE(paths.take_report(1, report, now_ns)) << "another rank's";
    paths.take_report(2, report, now_ns);
  }
  EXPECT_EQ(rounds, Paths::kRounds);
  EXPECT_EQ(paths.most_bytes(1), 1232U);
  EXPECT_EQ(paths.most_bytes(2), 1232U);
  EXPECT_EQ(paths.most_bytes(3), Paths::kAny);
}

TEST(Paths, ForgettingTheRankEndsItsSearch) {
  Paths paths(options_of({0, 1, 1}));
  paths.search(1, 0);
  paths.forget(2);
  EXPECT_NE(paths.next_deadline_ns(), kNever);
  paths.forget(1);
  EXPECT_EQ(paths.next_deadline_ns(), kNever);
  paths.search(2, 0);
  EXPECT_EQ(paths.due(paths.next_deadline_ns())->rank, 2);
}

// The numbers of rounds begin anew.
TEST(Paths, ManySearches) {
  Search search;
  for (int i = 0; i < 70'000; ++i) {
    ASSERT_FALSE(search.run(up_to(kFull)));
    search.now_ns += Paths::kFoundNs;
  }
  EXPECT_EQ(search.rounds, 70'000);
  EXPECT_TRUE(search.run(up_to(1232)));
  EXPECT_EQ(search.rounds, 70'000 + Paths::kRounds);
}

}  // namespace
}  // namespace unisono::reliable::paths_test

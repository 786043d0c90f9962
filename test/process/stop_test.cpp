// SPDX-License-Identifier: BSD-3-Clause
// A rank that is stopped (SIGSTOP) after it has contributed to a collective delays no other rank.
// This holds for every collective and every rank in its turn, before the others begin and after
// they have begun, in both size classes, with more ranks than cores. The test continues the rank
// only when all others have their results; if they needed it, they would hang. Nothing here depends
// on time.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <ostream>
#include <string>
#include <vector>

#include "harness/block_results.hpp"
#include "harness/outcome.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::stop_test {
namespace {

constexpr int kRanks = 5;
constexpr int kRoot = 1;
constexpr int kCores = 2;

// One rank's side of one collective.
struct Desk {
  unisono_comm_t comm = nullptr;
  int rank = 0;
  std::int64_t count = 0;
  Words counts;  // of unequal blocks
  int receives[kRanks] = {1, 0, 1, 1, 0};
  Words in, out;

  Desk(const ProcessRank& self, std::int64_t elements)
      : comm(self.world),
        rank(self.rank),
        count(elements),
        counts(unequal_counts(kRanks, elements)),
        in(untouched_words(kRanks * (3 * elements + kRanks))),
        out(in) {}

  bool is_root() const { return rank == kRoot; }
  std::int64_t own_count() const { return counts[static_cast<std::size_t>(rank)]; }
  // in: a block for each rank. One vector is the block for rank 0.
  void fill_in(const Words& lengths) {
    std::int64_t end = 0;
    for (int to = 0; to < kRanks; ++to) {
      const std::int64_t length = lengths[static_cast<std::size_t>(to)];
      put_words(in, end, length, rank, to);
      end += length;
    }
  }
};

// out, as far as a rank has any: the sum of the ranks [0, ranks) for `to`, or the blocks that all
// have for `to`.
void expect_sum(const Desk& d, int ranks, int to, std::int64_t count) {
  EXPECT_TRUE(sums_are(d.out, 0, count, ranks, to));
}
void expect_blocks(const Desk& d, int to, const Words& lengths) {
  Words expected = untouched_words(static_cast<std::int64_t>(d.out.size()));
  std::int64_t end = 0;
  for (int from = 0; from < kRanks; ++from) {
    const std::int64_t length = lengths[static_cast<std::size_t>(from)];
    put_words(expected, end, length, from, to);
    end += length;
  }
  EXPECT_EQ(d.out, expected);
}
void expect_block(const Desk& d, int from, int to) {
  Words expected = untouched_words(static_cast<std::int64_t>(d.out.size()));
  put_words(expected, 0, d.count, from, to);
  EXPECT_EQ(d.out, expected);
}

Words equal(std::int64_t count) { return Words(kRanks, count); }

struct Case {
  const char* name;
  int (*start)(Desk&, unisono_request_t*);
  void (*check)(const Desk&);
  bool unequal = false;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

constexpr unisono_type_t kType = UNISONO_INT64;

const Case kCases[] = {
    {"Barrier", [](Desk& d, unisono_request_t* r) { return unisono_barrier_start(d.comm, r); },
     [](const Desk&) {}},
    {"Broadcast",
     [](Desk& d, unisono_request_t* r) {
       if (d.is_root()) put_words(d.out, 0, d.count, kRoot, 0);
       return unisono_broadcast_start(d.out.data(), d.count, kType, kRoot, d.comm, r);
     },
     [](const Desk& d) { expect_block(d, kRoot, 0); }},
    {"Reduce",
     [](Desk& d, unisono_request_t* r) {
       return unisono_reduce_start(d.in.data(), d.out.data(), d.count, kType, UNISONO_SUM, kRoot,
                                   d.comm, r);
     },
     [](const Desk& d) {
       if (d.is_root()) expect_sum(d, kRanks, 0, d.count);
     }},
    {"Allreduce",
     [](Desk& d, unisono_request_t* r) {
       return unisono_allreduce_start(d.in.data(), d.out.data(), d.count, kType, UNISONO_SUM,
                                      d.comm, r);
     },
     [](const Desk& d) { expect_sum(d, kRanks, 0, d.count); }},
    {"Allgather",
     [](Desk& d, unisono_request_t* r) {
       return unisono_allgather_start(d.in.data(), d.out.data(), d.count, kType, d.comm, r);
     },
     [](const Desk& d) { expect_blocks(d, 0, equal(d.count)); }},
    {"Gather",
     [](Desk& d, unisono_request_t* r) {
       return unisono_gather_start(d.in.data(), d.out.data(), d.count, kType, kRoot, d.comm, r);
     },
     [](const Desk& d) {
       if (d.is_root()) expect_blocks(d, 0, equal(d.count));
     }},
    {"Scatter",
     [](Desk& d, unisono_request_t* r) {
       return unisono_scatter_start(d.in.data(), d.out.data(), d.count, kType, kRoot, d.comm, r);
     },
     [](const Desk& d) { expect_block(d, kRoot, d.rank); }},
    {"Alltoall",
     [](Desk& d, unisono_request_t* r) {
       return unisono_alltoall_start(d.in.data(), d.out.data(), d.count, kType, d.comm, r);
     },
     [](const Desk& d) { expect_blocks(d, d.rank, equal(d.count)); }},
    {"ReduceScatterBlock",
     [](Desk& d, unisono_request_t* r) {
       return unisono_reduce_scatter_block_start(d.in.data(), d.out.data(), d.count, kType,
                                                 UNISONO_SUM, d.comm, r);
     },
     [](const Desk& d) { expect_sum(d, kRanks, d.rank, d.count); }},
    {"Scan",
     [](Desk& d, unisono_request_t* r) {
       return unisono_scan_start(d.in.data(), d.out.data(), d.count, kType, UNISONO_SUM, d.comm, r);
     },
     [](const Desk& d) { expect_sum(d, d.rank + 1, 0, d.count); }},
    {"Exscan",
     [](Desk& d, unisono_request_t* r) {
       return unisono_exscan_start(d.in.data(), d.out.data(), d.count, kType, UNISONO_SUM, d.comm,
                                   r);
     },
     [](const Desk& d) {
       if (d.rank > 0) expect_sum(d, d.rank, 0, d.count);
     }},
    {"AllgatherV",
     [](Desk& d, unisono_request_t* r) {
       return unisono_allgatherv_start(d.in.data(), d.own_count(), d.out.data(), d.counts.data(),
                                       nullptr, kType, d.comm, r);
     },
     [](const Desk& d) { expect_blocks(d, 0, d.counts); }, true},
    {"ManyToMany",
     [](Desk& d, unisono_request_t* r) {
       return unisono_many_to_many_start(d.in.data(), d.own_count(),
                                         d.receives[d.rank] != 0 ? d.out.data() : nullptr,
                                         d.counts.data(), nullptr, d.receives, kType, d.comm, r);
     },
     [](const Desk& d) {
       if (d.receives[d.rank] != 0) expect_blocks(d, 0, d.counts);
     },
     true},
    {"ReduceScatter",
     [](Desk& d, unisono_request_t* r) {
       return unisono_reduce_scatter_start(d.in.data(), d.out.data(), d.counts.data(), kType,
                                           UNISONO_SUM, d.comm, r);
     },
     [](const Desk& d) { expect_sum(d, kRanks, d.rank, d.own_count()); }, true},
};

// The rank that contributes and stops, before the others begin or when they have begun.
struct Turn {
  std::int64_t count;
  int stopped;
  bool first;
};

std::vector<Turn> turns() {
  std::vector<Turn> all;
  for (const std::int64_t count : {1, 1000}) {
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const bool first : {true, false}) all.push_back({count, rank, first});
    }
  }
  return all;
}

void take_turn(const ProcessRank& self, const Case& one, const Turn& turn) {
  Desk desk(self, turn.count);
  Words blocks = one.unequal ? desk.counts : equal(turn.count);
  // With unequal blocks, only a reduction has one for each rank.
  if (one.unequal && std::string(one.name) != "ReduceScatter") {
    blocks = equal(0);
    blocks[0] = desk.own_count();
  }
  desk.fill_in(blocks);
  const bool stops = self.rank == turn.stopped;
  if (!stops || !turn.first) raise(SIGSTOP);
  unisono_request_t request = nullptr;
  ASSERT_TRUE(succeeded(one.start(desk, &request)));
  if (stops) raise(SIGSTOP);
  ASSERT_TRUE(succeeded(unisono_wait(&request)));
  SCOPED_TRACE(fmt::format("count {}, rank {} stops {}", turn.count, turn.stopped,
                           turn.first ? "first" : "last"));
  one.check(desk);
  self.say("has its result");
}

// Until the process has stopped itself; false if it ended.
bool await_stop(pid_t pid) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED) != 0) {
    if (errno != EINTR) return false;
  }
  return info.si_code == CLD_STOPPED;
}

void direct_turn(ProcessJob& job, const Turn& turn) {
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(await_stop(job.pid(rank))) << "rank " << rank << ": " << job.wait(rank).text();
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != turn.stopped) job.signal(rank, SIGCONT);
  }
  if (!turn.first) {
    job.signal(turn.stopped, SIGCONT);
    ASSERT_TRUE(await_stop(job.pid(turn.stopped)));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == turn.stopped) continue;
    ASSERT_TRUE(job.await_line(rank)) << "rank " << rank << " did not get its result while rank "
                                      << turn.stopped << " was stopped, count " << turn.count;
  }
  job.signal(turn.stopped, SIGCONT);
  ASSERT_TRUE(job.await_line(turn.stopped));
}

// Ranks outnumber cores on every machine.
void keep_to_few_cores() {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int kept = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && ++kept > kCores) CPU_CLR(core, &allowed);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

class StoppedRank : public testing::TestWithParam<Case> {};

TEST_P(StoppedRank, DelaysNobodyOnceItHasGivenItsPart) {
  ASSERT_NO_FATAL_FAILURE(keep_to_few_cores());
  const Case& one = GetParam();
  ProcessJob::Options options;
  options.environment["UNISONO_DETECT_TIMEOUT"] = "1h";  // however slow the machine is
  ProcessJob job(
      kRanks,
      [&one](ProcessRank& self) {
        for (const Turn& turn : turns()) ASSERT_NO_FATAL_FAILURE(take_turn(self, one, turn));
      },
      options);
  for (const Turn& turn : turns()) ASSERT_NO_FATAL_FAILURE(direct_turn(job, turn));
  job.expect_all_clean();
}

INSTANTIATE_TEST_SUITE_P(Collectives, StoppedRank, testing::ValuesIn(kCases),
                         [](const auto& suite) { return std::string(suite.param.name); });

}  // namespace
}  // namespace unisono::harness::stop_test

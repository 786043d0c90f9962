// SPDX-License-Identifier: BSD-3-Clause
// unisono_init_with across hosts: ranks on several hosts find each other over the caller's exchange
// alone, with no address, key or launcher. In one process: test/unit/api/init_with_test.cpp.
#include <signal.h>

#include <numeric>

#include "harness/fake_exchange.hpp"
#include "net/host_ranks.hpp"

namespace unisono::harness::exchange_test {
namespace {

class Exchange : public HostsTest {
 protected:
  // Each rank on its host, with no variable of a launcher.
  std::vector<HostProcess> start(const std::function<void(int, const Line&)>& body) {
    std::vector<HostProcess> processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      processes.push_back(hosts_.start(host_of(rank), [rank, body](const Line& line) {
        setenv("UNISONO_START_TIMEOUT", "60s", 1);
        body(rank, line);
      }));
    }
    return processes;
  }
};

void expect_results(unisono_comm_t comm, int rank, int ranks) {
  for (const std::int64_t count : {1, 100, 100'000}) {
    std::vector<std::int64_t> own(static_cast<std::size_t>(count), rank + 1), sum(own.size());
    EXPECT_TRUE(succeeded(
        unisono_allreduce(own.data(), sum.data(), count, UNISONO_INT64, UNISONO_SUM, comm)));
    EXPECT_EQ(sum, std::vector<std::int64_t>(own.size(), ranks * (ranks + 1) / 2));
  }
}

TEST_F(Exchange, RanksOnSeveralHostsMakeAJob) {
  FakeExchange exchange(kRanks);
  auto processes = start([&](int rank, const Line&) {
    unisono_comm_t world = nullptr;
    ASSERT_TRUE(succeeded(init_over(exchange, rank, kRanks, &world)));
    expect_results(world, rank, kRanks);
    EXPECT_TRUE(succeeded(unisono_finalize(world)));
  });
  expect_all_clean(processes);
}

// The second job has the ranks in the other order, the third those of two hosts only.
TEST_F(Exchange, SeveralJobsAtOnce) {
  FakeExchange first(kRanks), second(kRanks), third(2);
  auto processes = start([&](int rank, const Line&) {
    unisono_comm_t one = nullptr, other = nullptr, pair = nullptr;
    ASSERT_TRUE(succeeded(init_over(first, rank, kRanks, &one)));
    ASSERT_TRUE(succeeded(init_over(second, kRanks - 1 - rank, kRanks, &other)));
    if (rank < 2) {
      ASSERT_TRUE(succeeded(init_over(third, rank, 2, &pair)));
    }
    for (int i = 0; i < 3; ++i) {
      expect_results(one, rank, kRanks);
      if (pair != nullptr) expect_results(pair, rank, 2);
      expect_results(other, kRanks - 1 - rank, kRanks);
    }
    if (pair != nullptr) {
      EXPECT_TRUE(succeeded(unisono_finalize(pair)));
    }
    EXPECT_TRUE(succeeded(unisono_finalize(other)));
    EXPECT_TRUE(succeeded(unisono_finalize(one)));
  });
  expect_all_clean(processes);
}

// The rank ends after the step in which all learn the address. The others do not start without it.
TEST_F(Exchange, ARankThatEndsDuringTheStartIsAnErrorOfAllOthers) {
  constexpr int kVictim = 3;
  FakeExchange* broken = nullptr;
  FakeExchange exchange(kRanks, [&](int rank, int step, std::span<std::byte>) {
    if (rank == kVictim && step == 2) {
      broken->break_now();
      raise(SIGKILL);
    }
    return 0;
  });
  broken = &exchange;
  auto processes = start([&](int rank, const Line&) {
    unisono_comm_t world = nullptr;
    EXPECT_NE(init_over(exchange, rank, kRanks, &world, 2000), UNISONO_OK);
    EXPECT_EQ(world, nullptr);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), rank == kVictim ? 128 + SIGKILL : 0)
        << rank;
  }
}

}  // namespace
}  // namespace unisono::harness::exchange_test

// SPDX-License-Identifier: BSD-3-Clause
// A member that has ended the communicator, and lives: the others do not wait for it, on one host
// and between hosts, and go on without it where they shrink.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/failure/ends.hpp"
#include "harness/rank_threads.hpp"

namespace unisono::comm::ends_test {
namespace {

using base::Status;
using test::RankThread;
using test::RankThreads;

const std::vector<std::vector<int>> kPlacements = {{0, 0, 0}, {0, 1, 2}, {0, 1, 1, 2, 0}};

Status barrier(Communicator& communicator) {
  plan::Call call;
  call.collective = schedule::Collective::barrier;
  return communicator.run(call, nullptr, nullptr);
}

void expect_good(const Status& status) {
  EXPECT_TRUE(status.ok()) << (status ? "" : status.error().message);
}

// The body gets a communicator of all, which the victim frees at once, having made a call or not.
void with_each_victim(
    const std::function<void(RankThread&, int victim, std::unique_ptr<Communicator>)>& body) {
  for (const auto& hosts : kPlacements) {
    for (int victim = 0; victim < static_cast<int>(hosts.size()); ++victim) {
      for (const bool calls_before : {false, true}) {
        SCOPED_TRACE(fmt::format("{} ranks, rank {} frees", hosts.size(), victim));
        RankThreads ranks(hosts);
        ranks.run([&](RankThread& self) {
          const Status entered = ranks.enter(self);
          ASSERT_TRUE(entered.ok()) << entered.error().message;
          auto copy = self.world->duplicate();
          ASSERT_TRUE(copy.ok()) << copy.error().message;
          if (calls_before) expect_good(barrier(**copy));
          if (self.rank == victim) {
            copy->reset();
          } else {
            body(self, victim, std::move(*copy));
          }
          expect_good(barrier(*self.world));
        });
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Ends, ACommunicatorThatAMemberHasFreedIsAnErrorOnAllHosts) {
  with_each_victim([](RankThread&, int victim, std::unique_ptr<Communicator> copy) {
    const Status status = barrier(*copy);
    ASSERT_FALSE(status.ok());
    const std::string& message = status.error().message;
    EXPECT_EQ(status.error().code, base::Code::rank_lost) << message;
    for (const std::string& part : {fmt::format("rank {}", victim), std::string("barrier"),
                                    std::string("unisono_comm_free")}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  });
}

TEST(Ends, AShrinkGoesOnWithoutAMemberThatHasFreed) {
  with_each_victim([](RankThread& self, int, std::unique_ptr<Communicator> copy) {
    auto smaller = copy->shrink();
    ASSERT_TRUE(smaller.ok()) << smaller.error().message;
    EXPECT_EQ((*smaller)->size(), self.job->ranks().count() - 1);
    copy.reset();  // while others may be in the shrink still
    expect_good(barrier(**smaller));
  });
}

// The next one lies in the same place, to which words of the last one may still come.
TEST(Ends, ACommunicatorsFreeIsNoneOfTheNextOneInItsPlace) {
  RankThreads ranks({0, 1, 1, 2});
  ranks.run([&](RankThread& self) {
    const Status entered = ranks.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    for (int round = 0; round < 100; ++round) {
      auto copy = self.world->duplicate();
      ASSERT_TRUE(copy.ok()) << copy.error().message;
      if (round % 3 == 0) expect_good(barrier(**copy));
    }
    expect_good(barrier(*self.world));
  });
}

TEST(Ends, AreNotSeenUnderAnotherMark) {
  alignas(64) std::array<std::byte, 1024> table{};
  ASSERT_LE(Ends::memory_bytes(3), static_cast<std::int64_t>(table.size()));
  Ends older(table.data(), 5);
  EXPECT_FALSE(older.of(1));
  older.tell(1, {.index = 7, .has_shrunk = true}, {}, nullptr);
  const auto end = older.of(1);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->index, 7U);
  EXPECT_TRUE(end->has_shrunk);
  EXPECT_FALSE(end->has_failed);
  EXPECT_FALSE(older.of(2));
  EXPECT_FALSE(Ends(table.data(), 6).of(1));
}

}  // namespace
}  // namespace unisono::comm::ends_test

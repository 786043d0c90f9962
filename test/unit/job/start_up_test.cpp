// SPDX-License-Identifier: BSD-3-Clause
// StartUp, and the exchanges of a job of one host: reach_probe, nic_capabilities.
#include "job/start/start_up.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "job/start/exchanges.hpp"
#include "transport/shm/shm.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"
#include "unit/job/tables.hpp"

namespace unisono::job::test::start_up_test {
namespace {

using base::Code;

base::Settings settings_with(const base::Environment& environment) {
  auto settings = base::Settings::from(environment);
  EXPECT_TRUE(settings.ok());
  return *settings;
}

struct Starting : Parts {
  Starting(Tables& tables, int rank, const base::Settings& settings,
           bootstrap::StartConnections* connections = nullptr)
      : Parts(tables, rank),
        start(ranks, tables.header(), losses, nullptr, connections, settings, [this] { ++turns; }) {
  }
  int turns = 0;
  StartUp start;
};

TEST(StartUp, WaitsAndWorksUntilTheConditionHolds) {
  Tables tables(2);
  const base::Settings settings;
  Starting own(tables, 0, settings);
  const auto after_turns = [&own] { return own.turns == 7; };
  EXPECT_TRUE(own.start.await(after_turns, [] { return ""; }).ok());
  EXPECT_EQ(own.turns, 7);
}

TEST(StartUp, TheDeadlineSaysWhoIsMissing) {
  Tables tables(3);
  const base::Settings settings = settings_with({{"UNISONO_START_TIMEOUT", "1ms"}});
  Starting own(tables, 0, settings);
  own.ranks.enter();
  const base::Status late = own.start.await_ranks();
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::timeout);
  EXPECT_NE(late.error().message.find("missing: ranks 1, 2"), std::string::npos)
      << late.error().message;
}

TEST(StartUp, ADeathEndsIt) {
  Tables tables(2);
  const base::Settings settings;
  Starting own(tables, 0, settings);
  own.ranks.enter();
  EXPECT_TRUE(own.losses.mark_gone(1, RankState::dead));
  const base::Status lost = own.start.await_ranks();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::rank_lost);
  EXPECT_NE(lost.error().message.find("rank 1"), std::string::npos) << lost.error().message;
}

TEST(StartUp, WhatOneRankThrowsIsTheErrorOfAll) {
  Tables tables(2);
  const base::Settings settings;
  Starting one(tables, 0, settings);
  Starting other(tables, 1, settings);
  const auto none = one.start.tell_errors_of([] { return base::success(); });
  EXPECT_TRUE(none.ok());
  const base::Status thrown = one.start.tell_errors_of(
      []() -> base::Status { throw std::runtime_error("a file changed meanwhile"); });
  ASSERT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.error().code, Code::system);
  EXPECT_EQ(thrown.error().message, "a file changed meanwhile");
  const base::Status failed = other.start.confirm();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message,
            "rank 1: the job cannot start, as rank 0 failed: a file changed meanwhile");
}

TEST(StartUp, AFailureOfOneRankIsTheErrorOfAll) {
  Tables tables(3);
  const base::Settings settings;
  Starting one(tables, 1, settings);
  Starting other(tables, 2, settings);
  EXPECT_EQ(one.start.fail({Code::resources, "no memory"}).message, "no memory");
  const base::Status failed = other.start.confirm();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::resources);
  EXPECT_EQ(failed.error().message, "rank 2: the job cannot start, as rank 1 failed: no memory");
  // It has a reason of its own, which its caller learns.
  EXPECT_EQ(other.start.fail({Code::argument, "bad"}).message, "bad");
}

// Three ranks, of which rank 0 has told the others over the rendezvous why it cannot start.
class ToldRanks : public testing::Test {
 protected:
  void SetUp() override {
    bootstrap::JobDescription job;
    job.ranks = 3;
    job.address = *bootstrap::random_unix_address();
    std::vector<bootstrap::JobDescription> jobs(3, job);
    for (int rank = 0; rank < 3; ++rank) jobs[static_cast<std::size_t>(rank)].rank = rank;
    infos_ = bootstrap::test::join_all(jobs, bootstrap::test::settings_with("10min"));
    for (const auto& info : infos_) ASSERT_TRUE(info.ok()) << info.error().message;
    infos_[0]->connections->tell({Code::resources, "no memory"});
  }
  bootstrap::StartConnections* connections_of(std::size_t rank) {
    return infos_[rank]->connections.get();
  }
  static void expect_told(const base::Status& status) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::resources);
    EXPECT_NE(status.error().message.find("rank 2: the job cannot start: rank 0 (pid "),
              std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find("no memory"), std::string::npos);
  }

  std::vector<base::Result<bootstrap::JobInfo>> infos_;
  Tables tables_{3};
  const base::Settings settings_;
};

// A rank that was told ends, and another one may see that first.
TEST_F(ToldRanks, EndIsNoLossForThoseThatAreToldNow) {
  Starting last(tables_, 2, settings_, connections_of(2));
  EXPECT_TRUE(last.losses.mark_gone(1, RankState::dead));
  expect_told(last.start.confirm());
}

TEST_F(ToldRanks, EndIsNoLossForThoseThatAreToldLater) {
  Starting told(tables_, 1, settings_, connections_of(1));
  const base::Status failed = told.start.confirm();
  ASSERT_FALSE(failed.ok());
  told.start.fail(failed.error());
  Starting last(tables_, 2, settings_);
  EXPECT_TRUE(last.losses.mark_gone(1, RankState::dead));
  expect_told(last.start.confirm());
}

TEST(StartUp, IsConfirmedWhenAllRanksHaveWhatTheyNeed) {
  Tables tables(2);
  const base::Settings settings = settings_with({{"UNISONO_START_TIMEOUT", "1ms"}});
  Starting first(tables, 0, settings);
  Starting second(tables, 1, settings);
  EXPECT_FALSE(first.start.confirm().ok());
  EXPECT_TRUE(second.start.confirm().ok());
}

TEST(StartUp, TheWorldIsWhereTheFirstRankSays) {
  Tables tables(2);
  const base::Settings settings;
  Starting first(tables, 0, settings);
  Starting second(tables, 1, settings);
  first.start.publish_world(4096);
  const auto offset = second.start.await_world();
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(*offset, 4096);
}

TEST(StartUp, AFirstRankThatLeavesBeforeIsNamed) {
  Tables tables(2);
  const base::Settings settings;
  Starting first(tables, 0, settings);
  Starting second(tables, 1, settings);
  first.ranks.enter();
  first.ranks.leave();
  const auto offset = second.start.await_world();
  ASSERT_FALSE(offset.ok());
  EXPECT_EQ(offset.error().code, Code::rank_lost);
}

// This process may read its own memory, and the setting forbids it.
TEST(ReachProbe, AllRanksOfTheHostReadOrNone) {
  for (const bool allowed : {true, false}) {
    Tables tables(2);
    const base::Settings settings =
        settings_with({{"UNISONO_SINGLE_COPY", allowed ? "auto" : "off"}});
    Starting first(tables, 0, settings);
    Starting second(tables, 1, settings);
    ReachProbe of_first(first.ranks);
    const ReachProbe of_second(second.ranks);
    tables.entries()[1].reach.store(static_cast<std::uint32_t>(Reach::all));
    transport::SharedMemory transport;
    ASSERT_TRUE(of_first.decide(first.start, transport).ok());
    EXPECT_EQ(transport.capabilities().pull, allowed);
  }
}

TEST(ReachProbe, ARankThatInsistsLearnsThatOthersCannot) {
  Tables tables(2);
  const base::Settings settings = settings_with({{"UNISONO_SINGLE_COPY", "on"}});
  Starting first(tables, 0, settings);
  Starting second(tables, 1, settings);
  ReachProbe of_first(first.ranks);
  const ReachProbe of_second(second.ranks);
  tables.entries()[1].reach.store(static_cast<std::uint32_t>(Reach::not_all));
  transport::SharedMemory transport;
  const base::Status decided = of_first.decide(first.start, transport);
  ASSERT_FALSE(decided.ok());
  EXPECT_EQ(decided.error().code, Code::unsupported);
  EXPECT_FALSE(transport.capabilities().pull);
}

TEST(NicCapabilities, AreNotExchangedOnOneHost) {
  Tables tables(2);
  const base::Settings settings;
  Starting own(tables, 0, settings);
  const auto all = exchange_nic_capabilities(own.start, nic::Capabilities{});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->empty());
}

}  // namespace
}  // namespace unisono::job::test::start_up_test

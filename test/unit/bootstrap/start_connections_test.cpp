// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/start_connections: ranks that have joined tell each other that they fail, where a
// launcher serves the rendezvous and where rank 0 does. Of several hosts: host_relay_test.cpp.
#include "bootstrap/start_connections.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>
#include <vector>

#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::start_connections_test {
namespace {

using base::Code;
using base::Result;
using test::expect_text;
using test::hello_from;
using test::Host;
using test::join_all;
using test::RawRank;
using test::settings_with;

void expect_told(const std::vector<Result<JobInfo>>& infos, Code code, const std::string& part) {
  for (const Result<JobInfo>& info : infos) {
    ASSERT_TRUE(info.ok()) << info.error().message;
  }
  for (const Result<JobInfo>& info : infos) {
    while (!info->connections->failure()) {
      for (const Result<JobInfo>& each : infos) each->connections->step();
      sched_yield();
    }
    const base::Error& failure = *info->connections->failure();
    EXPECT_EQ(failure.code, code);
    EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
    EXPECT_TRUE(info->connections->take_lost().empty());
  }
}

TEST(StartConnections, ALauncherTellsAllWhyARankCannotStart) {
  Host host(3);
  host.serve();
  Hello hello = hello_from(*own_host_id(), 2, 3);
  RawRank failing(host, hello);
  const auto infos = join_all({host.job(0, 3), host.job(1, 3)}, settings_with("10min"));
  EXPECT_EQ(failing.receive<Welcome>().hosts, 1U);
  failing.send(Withdrawal{hello.nonce, Withdrawal::Reason::failed, Code::system, "no socket"});
  expect_told(infos, Code::system, ") cannot start: no socket");
  EXPECT_TRUE(host.finish().ok()) << "the rendezvous itself has ended well";
}

TEST(StartConnections, OnlyTheRankItselfWithdraws) {
  Host host(2);
  host.serve();
  RawRank rank(host, hello_from(*own_host_id(), 1, 2));
  const auto infos = join_all({host.job(0, 2)}, settings_with("10min"));
  ASSERT_TRUE(infos[0].ok());
  EXPECT_EQ(rank.receive<Welcome>().hosts, 1U);
  rank.send(Withdrawal{*random_nonce(), Withdrawal::Reason::failed, Code::system, "no socket"});
  rank.disconnect();  // and its end is no failure either: the ranks see to that
  RawRank late(host, hello_from(*own_host_id(), 1, 2));
  test::expect_refused(late, Code::state, "is too late");
  infos[0]->connections->step();
  EXPECT_FALSE(infos[0]->connections->failure());
}

// Each of them fails once, and all are told, rank 0 included.
TEST(StartConnections, RankZeroTellsAllWhyARankCannotStart) {
  constexpr int kRanks = 3;
  for (int victim = 0; victim < kRanks; ++victim) {
    SCOPED_TRACE(victim);
    JobDescription job;
    job.ranks = kRanks;
    job.address = *random_unix_address();
    std::vector<JobDescription> jobs(kRanks, job);
    for (int rank = 0; rank < kRanks; ++rank) jobs[static_cast<std::size_t>(rank)].rank = rank;
    const auto infos = join_all(jobs, settings_with("10min"));
    ASSERT_TRUE(infos[static_cast<std::size_t>(victim)].ok());
    infos[static_cast<std::size_t>(victim)]->connections->tell({Code::resources, "no memory"});
    expect_told(infos, Code::resources, "no memory");
    const int other = victim == 0 ? 1 : 0;
    const base::Error& told = *infos[static_cast<std::size_t>(other)]->connections->failure();
    EXPECT_NE(told.message.find("rank " + std::to_string(victim) + " (pid "), std::string::npos)
        << told.message;
  }
}

TEST(StartConnections, TheyStayOpenAfterTheStart) {
  JobDescription job;
  job.ranks = 2;
  job.address = *random_unix_address();
  JobDescription other = job;
  other.rank = 1;
  const auto infos = join_all({job, other}, settings_with("10min"));
  for (const auto& info : infos) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    info->connections->end_start();
    EXPECT_TRUE(info->connections->is_connected());
  }
  EXPECT_EQ(infos[0]->connections->accepted().size(), 2U);
  EXPECT_TRUE(infos[1]->connections->accepted().empty());
}

}  // namespace
}  // namespace unisono::bootstrap::start_connections_test

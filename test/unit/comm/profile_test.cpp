// SPDX-License-Identifier: BSD-3-Clause
// The records of a job's calls: what each rank's file says of blocking and started calls, and of
// communicators that several threads use at once.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.hpp"
#include "harness/calls.hpp"
#include "harness/json_values.hpp"
#include "harness/rank_threads.hpp"
#include "harness/temporary_folder.hpp"

namespace unisono::comm::profile_test {
namespace {

using harness::JsonValues;
using test::allreduce;
using test::RankThread;
using test::RankThreads;

// The lines between the first and the last one.
std::vector<JsonValues> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<JsonValues> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(JsonValues::of(line));
  EXPECT_GE(lines.size(), 2U) << path;
  if (lines.size() < 2) return {};
  EXPECT_EQ(lines.front().text("schema"), "unisono-profile-rank");
  EXPECT_EQ(lines.back().integer("rows"), std::ssize(lines) - 2);
  return {lines.begin() + 1, lines.end() - 1};
}

std::int64_t calls_of(const std::vector<JsonValues>& rows, const std::string& collective,
                      const std::string& form) {
  std::int64_t calls = 0;
  for (const JsonValues& row : rows) {
    if (row.text("collective") == collective && row.text("form") == form) {
      calls += row.integer("calls");
    }
  }
  return calls;
}

void finish(RankThreads& job) {
  job.run([](RankThread& self) {
    self.world.reset();
    self.job.reset();
  });
}

TEST(ProfileOfAJob, SaysWhatTheCallsWere) {
  const test::TemporaryFolder folder;
  RankThreads job({0, 0, 0}, {{"UNISONO_PROFILE", folder.path() + "/p"}});
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    std::array<double, 100> values{};
    for (const std::int64_t count : {1, 8, 9, 9, 15}) {
      ASSERT_TRUE(self.world->run(allreduce(count), values.data(), values.data()).ok());
    }
    plan::Call barrier;
    ASSERT_TRUE(self.world->run(barrier, nullptr, nullptr).ok());
    Pending pending;
    const auto plan = self.world->plan(allreduce(9));
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(self.world->start(**plan, values.data(), values.data(), pending).ok());
    Communicator* const all[] = {self.world.get()};
    Pending* const awaited[] = {&pending};
    Communicator::wait_any(all, awaited);
  });
  finish(job);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<JsonValues> rows = rows_of(folder.path() + "/p." + std::to_string(rank));
    ASSERT_EQ(rows.size(), 4U);
    std::map<std::string, JsonValues> found;
    for (const JsonValues& row : rows) {
      found[row.text("collective") + row.text("form") + std::to_string(row.integer("size_class"))] =
          row;
    }
    EXPECT_EQ(found["barrierblocking0"].integer("calls"), 1);
    EXPECT_EQ(found["barrierblocking0"].text("operator"), "");
    EXPECT_EQ(found["allreduceblocking8"].integer("calls"), 1);
    EXPECT_EQ(found["allreducestarted64"].integer("calls"), 1);
    const JsonValues& row = found["allreduceblocking64"];
    EXPECT_EQ(row.integer("calls"), 4);
    EXPECT_EQ(row.integer("bytes"), 8 * (8 + 9 + 9 + 15));
    EXPECT_EQ(row.integer("least_bytes"), 64);
    EXPECT_EQ(row.integer("most_bytes"), 120);
    EXPECT_EQ(row.text("operator"), "sum");
    EXPECT_EQ(row.text("type"), "float64");
    EXPECT_EQ(row.integer("ranks"), 3);
    EXPECT_EQ(row.integer("hosts"), 1);
    EXPECT_NE(row.text("algorithm"), "");
    EXPECT_EQ(row.integer("unpredicted"), 0);
    EXPECT_GT(row.integer("predicted_ns"), 0);
    EXPECT_GE(row.integer("ns"), row.integer("most_ns"));
    EXPECT_GE(row.integer("most_ns"), row.integer("least_ns"));
    EXPECT_LE(row.integer("waited_ns"), row.integer("ns"));
    EXPECT_LE(row.integer("waits"), 4);
  }
}

TEST(ProfileOfAJob, CommunicatorsOfSeveralThreadsShareIt) {
  constexpr int kThreads = 3, kCalls = 200;
  const test::TemporaryFolder folder;
  RankThreads job({0, 0}, {{"UNISONO_PROFILE", folder.path() + "/p"}});
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    std::vector<std::unique_ptr<Communicator>> all;
    for (int t = 0; t < kThreads; ++t) {
      auto made = self.world->duplicate();
      ASSERT_TRUE(made.ok());
      all.push_back(std::move(*made));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&own = *all[static_cast<std::size_t>(t)], t] {
        std::array<double, 40> values{};
        for (int i = 0; i < kCalls; ++i) {
          ASSERT_TRUE(own.run(allreduce(1 + (i + t) % 40), values.data(), values.data()).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  finish(job);
  for (const char* const rank : {".0", ".1"}) {
    const std::vector<JsonValues> rows = rows_of(folder.path() + "/p" + rank);
    EXPECT_EQ(calls_of(rows, "allreduce", "blocking"), kThreads * kCalls);
    // The exchanges by which a communicator is made are calls of their own kind.
    EXPECT_GE(calls_of(rows, "comm_dup", "blocking"), kThreads);
  }
}

// An operation that fails is not counted, and ends no wait of the file's.
TEST(ProfileOfAJob, CountsOnlyWhatEndedWell) {
  const test::TemporaryFolder folder;
  RankThreads job({0, 0}, {{"UNISONO_PROFILE", folder.path() + "/p"}});
  job.run([&](RankThread& self) {
    ASSERT_TRUE(job.enter(self).ok());
    double value = 1;
    ASSERT_TRUE(self.world->run(allreduce(1), &value, &value).ok());
    plan::Call other;
    const auto ended = self.rank == 0 ? self.world->run(allreduce(1), &value, &value)
                                      : self.world->run(other, nullptr, nullptr);
    EXPECT_FALSE(ended.ok());
  });
  finish(job);
  const std::vector<JsonValues> rows = rows_of(folder.path() + "/p.0");
  EXPECT_EQ(calls_of(rows, "allreduce", "blocking"), 1);
}

}  // namespace
}  // namespace unisono::comm::profile_test

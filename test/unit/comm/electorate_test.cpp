// SPDX-License-Identifier: BSD-3-Clause
// electorate and agreement_messages, on the ranks of a job on three hosts.
#include "comm/agreement/electorate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/agreement/agreement_messages.hpp"
#include "harness/rank_threads.hpp"

namespace unisono::comm::electorate_test {
namespace {

using test::RankThread;
using test::RankThreads;

constexpr std::size_t kPayload = 5;

// Ranks 1 and 2 share a host.
const std::vector<int> kHosts{0, 1, 1, 2};

void enter(RankThreads& ranks) {
  ranks.run([&](RankThread& self) {
    const base::Status entered = ranks.enter(self);
    EXPECT_TRUE(entered) << entered.error().message;
  });
}

TEST(Electorate, AQuorumIsMoreThanHalfOfTheHosts) {
  RankThreads ranks(kHosts);
  enter(ranks);
  const Members members(*ranks.at(0).job, {0, 1, 2, 3}, 0);
  std::vector<int> ended;
  const Electorate electorate(members,
                              [&](int member) { return std::ranges::count(ended, member) != 0; });
  const auto is_quorum = [&](std::vector<int> saying) {
    return electorate.is_quorum([&](int m) { return std::ranges::count(saying, m) != 0; });
  };
  EXPECT_TRUE(is_quorum({0, 2}));
  EXPECT_TRUE(is_quorum({2, 3}));
  EXPECT_FALSE(is_quorum({1, 2})) << "one host, though two ranks";
  EXPECT_FALSE(is_quorum({}));
  EXPECT_TRUE(electorate.has_quorum());
  EXPECT_EQ(electorate.leader(), 0);
  ended = {0, 1};
  EXPECT_EQ(electorate.leader(), 2);
  EXPECT_FALSE(electorate.takes_part(1));
  EXPECT_TRUE(electorate.has_quorum()) << "rank 2 speaks for its host";
  ended = {0, 1, 2};
  EXPECT_FALSE(electorate.has_quorum());
  const base::Error error = electorate.no_quorum();
  EXPECT_EQ(error.code, base::Code::rank_lost);
  EXPECT_NE(error.message.find("ranks 0, 1, 2 are lost"), std::string::npos) << error.message;
  ended = {0, 1, 2, 3};
  EXPECT_EQ(electorate.leader(), 4);
}

TEST(Electorate, OfTwoHostsTheFirstDecides) {
  RankThreads ranks({0, 1});
  enter(ranks);
  const Members members(*ranks.at(1).job, {0, 1}, 1);
  const Electorate electorate(members, [](int) { return false; });
  EXPECT_TRUE(electorate.is_quorum([](int m) { return m == 0; }));
  EXPECT_FALSE(electorate.is_quorum([](int m) { return m == 1; }));
}

// Each rank has the table at the same place of its host's memory. Rank 1 tells all; rank 3 answers.
TEST(AgreementMessages, ReachAllHosts) {
  RankThreads ranks(kHosts);
  enter(ranks);
  const std::int64_t bytes = AgreementTable::bytes(ranks.size(), kPayload);
  const std::vector<int> firsts{0, 1, 3};  // of each host
  std::int64_t offset = 0;                 // beyond the memory that any host uses
  for (const int first : firsts) {
    const auto place = ranks.at(first).memory->allocate(bytes);
    ASSERT_TRUE(place.ok());
    offset = std::max(offset, *place);
  }
  for (const int first : firsts) {
    ASSERT_TRUE(ranks.at(first).memory->commit(offset, bytes, "a table for this test"));
  }
  ranks.run([&](RankThread& self) {
    job::Job& job = *self.job;
    const Members members(job, {0, 1, 2, 3}, self.rank);
    const AgreementTable table(job.memory().at(offset), members.size(), kPayload);
    const AgreementMessages messages(members, table);
    const std::vector<std::byte> text(static_cast<std::size_t>(members.size()) + kPayload,
                                      std::byte{7});
    const auto await = [&](const std::atomic<std::uint64_t>& word, int member) {
      while (word.load() == 0) {
        if (member != self.rank) messages.await(member);
        job.carry_network();
      }
    };
    if (self.rank == 1) {
      messages.tell_all({table.words(1).proposed, 1, table.proposal_text(1)}, text);
      await(table.answer(1, 3).acceptance, 3);
      EXPECT_EQ(table.answer(1, 3).acceptance.load(), 5U);
    } else {
      await(table.words(1).proposed, 1);
      EXPECT_EQ(messages.read(table.proposal_text(1)), text);
      if (self.rank == 3) messages.respond(1, table.answer(1, 3).acceptance, 5, -1);
    }
  });
}

}  // namespace
}  // namespace unisono::comm::electorate_test

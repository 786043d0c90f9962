// SPDX-License-Identifier: BSD-3-Clause
// The parts of an agreement that need no job: the acceptor of a host, and the table.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "comm/agreement/agreement_table.hpp"
#include "comm/agreement/host_acceptor.hpp"

namespace unisono::comm::agreement_parts_test {
namespace {

TEST(HostAcceptor, KeepsItsPromises) {
  std::atomic<std::uint64_t> word = 0;
  const HostAcceptor acceptor(word);
  const auto first = acceptor.promise(2);
  EXPECT_TRUE(first.given);
  EXPECT_EQ(first.accepted, 0U);
  EXPECT_FALSE(acceptor.promise(1).given) << "a higher ballot has one";
  EXPECT_FALSE(acceptor.accept(1));
  EXPECT_TRUE(acceptor.accept(2));
  EXPECT_TRUE(acceptor.accept(2)) << "any rank of the host may answer again";
  const auto second = acceptor.promise(7);
  EXPECT_TRUE(second.given);
  EXPECT_EQ(second.accepted, 2U) << "the next proposer has to know it";
  EXPECT_FALSE(acceptor.accept(2));
  EXPECT_TRUE(acceptor.promise(7).given) << "any rank of the host may answer again";
  EXPECT_TRUE(acceptor.accept(9)) << "no higher ballot has a promise";
  EXPECT_EQ(acceptor.promise(9).accepted, 9U);
}

// Two ranks of a host answer two proposers at the same time. Once the lower ballot was refused, it
// is not accepted any more; once it was accepted, the higher one learns of it.
TEST(HostAcceptor, RanksOfAHostAnswerAtTheSameTime) {
  for (int round = 0; round < 2'000; ++round) {
    std::atomic<std::uint64_t> word = 0;
    bool is_accepted = false;
    {
      const std::jthread other([&] {
        const HostAcceptor acceptor(word);
        if (acceptor.promise(1).given) is_accepted = acceptor.accept(1);
      });
      EXPECT_TRUE(HostAcceptor(word).promise(2).given);
    }
    const auto [given, accepted] = HostAcceptor(word).promise(2);
    EXPECT_TRUE(given);
    EXPECT_EQ(accepted, is_accepted ? 1U : 0U);
  }
}

// Writes all entries of a table, and checks that none has written to another.
TEST(AgreementTable, ItsEntriesDoNotOverlap) {
  for (const int members : {1, 2, 3, 65}) {
    for (const std::size_t payload_bytes : {0U, 1U, 40U}) {
      const auto bytes = static_cast<std::size_t>(AgreementTable::bytes(members, payload_bytes));
      std::vector<std::byte> memory(bytes + 64);
      std::byte* begin = memory.data();
      begin += (64 - reinterpret_cast<std::uintptr_t>(begin) % 64) % 64;
      const AgreementTable table(begin, members, payload_bytes);
      std::uint64_t next = 1;
      std::vector<std::pair<std::byte*, std::size_t>> entries;
      const auto add = [&](void* place, std::size_t size) {
        entries.emplace_back(static_cast<std::byte*>(place), size);
      };
      add(&table.acceptor(), sizeof(std::uint64_t));
      for (int m = 0; m < members; ++m) {
        add(&table.words(m), sizeof(AgreementWords));
        add(table.states_text(m).data(), table.states_text(m).size());
        add(table.proposal_text(m).data(), table.proposal_text(m).size());
        EXPECT_EQ(table.proposal_text(m).size(), static_cast<std::size_t>(members) + payload_bytes);
        for (int p = 0; p < members; ++p) add(&table.answer(p, m), sizeof(AgreementAnswer));
      }
      for (const auto& [place, size] : entries) {
        ASSERT_GE(place, begin);
        ASSERT_LE(place + size, begin + bytes);
        std::memset(place, static_cast<int>(next++ % 251), size);
      }
      next = 1;
      for (const auto& [place, size] : entries) {
        const auto value = static_cast<std::byte>(next++ % 251);
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(place[i], value);
      }
    }
  }
}

}  // namespace
}  // namespace unisono::comm::agreement_parts_test

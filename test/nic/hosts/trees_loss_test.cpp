// SPDX-License-Identifier: BSD-3-Clause
// Vectors in pieces, each by a tree of its own, of one packet or several, between hosts whose
// programs lose a share of received packets. Each packet is requested separately, and all arrive in
// the end.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "base/prng.hpp"
#include "nic/harness/frames.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/lowering/row.hpp"
#include "nic/port/tree_vector.hpp"

namespace unisono::nic::test::trees_loss_test {
namespace {

constexpr int kPieces = 2;
constexpr int kReductions = 100;

class NicTreesLoss : public LossyHosts {
 protected:
  static std::vector<std::int64_t> vector_of(int rank, int operation) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(2 + operation * 14));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = operation * 1000 + rank * 100 + static_cast<std::int64_t>(i);
    }
    return values;
  }

  static_assert((2 + (kReductions - 1) * 14) / kPieces <= static_cast<int>(kWordsMax));
  // Packets of all pieces of all vectors.
  static std::uint64_t packets() {
    std::uint64_t all = 0;
    for (int operation = 0; operation < kReductions; ++operation) {
      const auto piece = static_cast<std::uint64_t>(2 + operation * 14) / kPieces;
      all += kPieces * ((piece + UNISONO_NIC_WORDS_MAX - 1) / UNISONO_NIC_WORDS_MAX);
    }
    return all;
  }

  // A membership as a daemon gives it.
  struct Trees {
    TreePorts trees;
    std::vector<std::uint32_t> rows;
  };
  static base::Status add_tree(Trees& to, Device& device, const Node& node,
                               const GroupAddresses& group, double loss) {
    UNISONO_ASSIGN(unisono_nic_row row, make_row(node, group));
    row.loss = static_cast<std::uint32_t>(loss * 4294967295.0);
    UNISONO_ASSIGN(const std::uint32_t index, device.add_group(row));
    auto member = std::make_unique<Membership>();
    member->row = device.row(index);
    UNISONO_TRY(member->mapping.open(member->row, device.maps(index)));
    to.rows.push_back(index);
    return to.trees.add(node, std::move(member), std::nullopt);
  }

  static base::Status join(Trees& to, int rank, std::uint32_t number, double loss) {
    schedule::Shape shape;
    shape.collective = schedule::Collective::allreduce;
    shape.ranks = kHosts;
    shape.count = kPieces;
    const auto* const row = algorithm::find(shape.collective, "split-release");
    UNISONO_ASSIGN(const auto schedule, algorithm::build(*row, shape, {{1, 1}}, rank));
    UNISONO_ASSIGN(const auto nodes, lower_pieces(schedule));
    std::vector<unisono_nic_address> addresses;
    for (int host = 0; host < kHosts; ++host) addresses.push_back(host_address(host));
    GroupAddresses group;
    group.key = {11, 13};
    group.ranks = addresses;
    group.multicast = group_address();
    group.depth = kPacketsMax;
    for (const Node& node : nodes) {
      group.id = {4711, number++};
      UNISONO_TRY(add_tree(to, device_of(rank), node, group, loss));
    }
    return base::success();
  }

  // With `asks` false, a rank never requests packets, however late others arrive on a busy machine.
  static void operate(TreePorts& trees, int rank, bool asks) {
    TreeVector vector(trees);
    base::Prng random(static_cast<std::uint64_t>(rank));
    for (int operation = 0; operation < kReductions; ++operation) {
      std::vector<std::int64_t> values = vector_of(rank, operation);
      std::vector<std::int64_t> expected(values.size());
      for (int other = 0; other < kHosts; ++other) {
        const auto given = vector_of(other, operation);
        for (std::size_t i = 0; i < given.size(); ++i) expected[i] += given[i];
      }
      const std::size_t bytes = values.size() * sizeof values[0];
      const auto posted = vector.post(UNISONO_NIC_SUM_INT64,
                                      {.pieces = kPieces, .bounds = {0, bytes / kPieces, bytes}},
                                      {values.data(), 0, bytes});
      ASSERT_TRUE(posted.ok()) << posted.error().message;
      while (!vector.is_done()) {
        std::this_thread::yield();
        if (!asks) continue;
        const auto delay_ns = static_cast<std::int64_t>(1e6 * (0.5 + random.unit()));
        const auto asked = trees.repair(trees.ends(), base::now_ns(), delay_ns);
        ASSERT_TRUE(asked.ok()) << asked.error().message;
      }
      ASSERT_TRUE(vector.take(values.data()));
      ASSERT_EQ(values, expected) << "operation " << operation;
    }
    EXPECT_EQ(vector.lacking(), 0U);
    EXPECT_EQ(vector.given() & 3U, 3U);
  }
};

TEST_F(NicTreesLoss, EveryPieceComes) {
  for (const double loss : {0.0, 0.01, 0.1, 0.3}) {
    const Counters before = counts();
    const std::uint32_t first = communicator + 1;
    communicator += kPieces;
    std::barrier<> together(kHosts);
    std::atomic<int> ready = 0;
    hosts->run([&](int rank) {
      Trees own;
      const auto joined = join(own, rank, first, loss);
      EXPECT_TRUE(joined.ok()) << joined.error().message;
      if (joined.ok()) ++ready;
      together.arrive_and_wait();
      if (ready == kHosts) operate(own.trees, rank, loss > 0);
      together.arrive_and_wait();
      for (const std::uint32_t row : own.rows) {
        EXPECT_TRUE(device_of(rank).remove_group(row).ok());
      }
    });
    Counters counted = counts();
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    SCOPED_TRACE(text(counted));
    EXPECT_EQ(counted[UNISONO_NIC_SENT_DOWN], packets());
    EXPECT_EQ(counted[UNISONO_NIC_SENT_UP], packets() * (kHosts - 1));
    EXPECT_EQ(counted[UNISONO_NIC_LOST] > 0, loss > 0);
    EXPECT_EQ(counted[UNISONO_NIC_ASKED] > 0, loss > 0);
  }
}

}  // namespace
}  // namespace unisono::nic::test::trees_loss_test

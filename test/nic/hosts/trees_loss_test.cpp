// SPDX-License-Identifier: BSD-3-Clause
// Vectors in pieces, each by a tree of its own, of one packet or several, between hosts whose
// programs lose a share of received packets. Each packet is requested separately, and all arrive in
// the end. One vector is under way, or several, which are taken in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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
  static std::vector<std::int64_t> sum_of(int operation) {
    std::vector<std::int64_t> sum = vector_of(0, operation);
    for (int other = 1; other < kHosts; ++other) {
      const auto given = vector_of(other, operation);
      for (std::size_t i = 0; i < given.size(); ++i) sum[i] += given[i];
    }
    return sum;
  }
  static TreeCut cut_of(std::size_t words) {
    const std::size_t bytes = words * sizeof(std::int64_t);
    return {.pieces = kPieces, .bounds = {0, bytes / kPieces, bytes}};
  }
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
  static void look(TreePorts& trees, base::Prng& random, bool asks) {
    std::this_thread::yield();
    if (!asks) return;
    const auto delay_ns = static_cast<std::int64_t>(1e6 * (0.5 + random.unit()));
    const auto asked = trees.repair(trees.ends(), base::now_ns(), delay_ns);
    ASSERT_TRUE(asked.ok()) << asked.error().message;
  }

  static void operate(TreePorts& trees, int rank, bool asks) {
    TreeVector vector(trees);
    base::Prng random(static_cast<std::uint64_t>(rank));
    for (int operation = 0; operation < kReductions; ++operation) {
      std::vector<std::int64_t> values = vector_of(rank, operation);
      const auto posted = vector.post(UNISONO_NIC_SUM_INT64, cut_of(values.size()),
                                      {values.data(), 0, values.size() * sizeof values[0]});
      ASSERT_TRUE(posted.ok()) << posted.error().message;
      while (!vector.is_done()) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
      ASSERT_TRUE(vector.take(values.data()));
      ASSERT_EQ(values, sum_of(operation)) << "operation " << operation;
    }
    EXPECT_EQ(vector.lacking(), 0U);
    EXPECT_EQ(vector.given() & 3U, 3U);
  }

  // As many as the ports have room for are under way. Any one that is done is taken.
  static void operate_several(TreePorts& trees, int rank, bool asks) {
    struct Flight {
      TreeVector vector;
      int operation = -1;  // none is under way
    };
    std::vector<Flight> flights;
    for (std::uint64_t i = 0; i < kInFlightMax; ++i) flights.push_back({TreeVector(trees)});
    base::Prng random(static_cast<std::uint64_t>(rank));
    int posted = 0, taken = 0, most = 0;
    while (taken < kReductions) {
      const auto free = std::ranges::find(flights, -1, &Flight::operation);
      const auto words = static_cast<std::size_t>(2 + posted * 14);
      if (posted < kReductions && free != flights.end() && trees.has_room(cut_of(words))) {
        const std::vector<std::int64_t> given = vector_of(rank, posted);
        free->operation = posted++;
        most = std::max(most, posted - taken);
        const auto started = free->vector.post(UNISONO_NIC_SUM_INT64, cut_of(words),
                                               {given.data(), 0, words * sizeof given[0]});
        ASSERT_TRUE(started.ok()) << started.error().message;
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
      Flight& one = flights[random.below(flights.size())];
      if (one.operation < 0 || !one.vector.is_done()) continue;
      std::vector<std::int64_t> values(static_cast<std::size_t>(2 + one.operation * 14));
      ASSERT_TRUE(one.vector.take(values.data()));
      ASSERT_EQ(values, sum_of(one.operation)) << "operation " << one.operation;
      one.operation = -1;
      ++taken;
    }
    EXPECT_GE(most, 2);
  }

  // Each operation is for one rank. The others go on when their parts are on their way, and request
  // nothing until the ports have no room. So the programs alone answer for them.
  static void operate_for_one(TreePorts& trees, int rank, bool asks) {
    std::vector<TreeVector> vectors(kInFlightMax, TreeVector(trees));
    base::Prng random(static_cast<std::uint64_t>(rank));
    int taken = 0;
    const auto take = [&](int operation) {
      ASSERT_EQ(taken, operation);
      std::vector<std::int64_t> values = vector_of(rank, operation);
      ASSERT_TRUE(vectors[static_cast<std::size_t>(operation) % kInFlightMax].take(values.data()));
      ASSERT_EQ(values, sum_of(operation)) << "operation " << operation;
      ++taken;
    };
    const auto is_done = [&](int operation) {
      return vectors[static_cast<std::size_t>(operation) % kInFlightMax].is_done();
    };
    for (int operation = 0; operation < kReductions; ++operation) {
      const std::vector<std::int64_t> given = vector_of(rank, operation);
      while (operation - taken == static_cast<int>(kInFlightMax) ||
             !trees.has_room(cut_of(given.size()))) {
        while (!is_done(taken)) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
        ASSERT_NO_FATAL_FAILURE(take(taken));
      }
      TreeVector& vector = vectors[static_cast<std::size_t>(operation) % kInFlightMax];
      const auto posted = vector.post(UNISONO_NIC_SUM_INT64, cut_of(given.size()),
                                      {given.data(), 0, given.size() * sizeof given[0]});
      ASSERT_TRUE(posted.ok()) << posted.error().message;
      if (operation % kHosts != rank) {
        while (vector.given() != ~0U) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
        continue;
      }
      while (!vector.is_done()) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
      while (taken <= operation) {
        while (!is_done(taken)) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
        ASSERT_NO_FATAL_FAILURE(take(taken));
      }
    }
    while (taken < kReductions) {
      while (!is_done(taken)) ASSERT_NO_FATAL_FAILURE(look(trees, random, asks));
      ASSERT_NO_FATAL_FAILURE(take(taken));
    }
  }

  using Operate = void(TreePorts& trees, int rank, bool asks);
  // By all hosts, with each share of lost packets. Each packet is sent once, but for repairs.
  static void expect_all_right(Operate& operate_all);
};

void NicTreesLoss::expect_all_right(Operate& operate_all) {
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
      if (ready == kHosts) operate_all(own.trees, rank, loss > 0);
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

TEST_F(NicTreesLoss, EveryPieceComes) { expect_all_right(operate); }

TEST_F(NicTreesLoss, EveryPieceComesToTheOneThatTakesIt) { expect_all_right(operate_for_one); }

TEST_F(NicTreesLoss, EveryPieceOfSeveralVectorsComes) { expect_all_right(operate_several); }

}  // namespace
}  // namespace unisono::nic::test::trees_loss_test

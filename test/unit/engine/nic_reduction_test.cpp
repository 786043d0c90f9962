// SPDX-License-Identifier: BSD-3-Clause
// An operation on the trees is started, polled and taken, and none of that waits. The test stands
// in for the NIC program: it writes what the program would write to the memory that both share.
#include "engine/nic/nic_reduction.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/mman.h>

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace unisono::engine::test::nic_reduction_test {
namespace {

constexpr std::uint32_t kDepth = 2 * nic::kPacketsMax;  // half of the slots may be in flight

// The memory of host 1 in a tree in which host 3 is below it and host 0 above.
class SharedMemory {
 public:
  SharedMemory() {
    row_.id = {4711, 1};
    row_.rank = 1;
    row_.depth = kDepth;
    row_.children = 1;
    row_.child_rank[0] = 3;
    row_.interface = if_nametoindex("lo");
    row_.own.port = htons(9);
    row_.up.ipv4 = inet_addr("127.0.0.1");
    slots_ = base::Descriptor(memfd_create("slots", MFD_CLOEXEC));
    blocks_ = base::Descriptor(memfd_create("blocks", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(slots_.get(), kDepth * sizeof(unisono_nic_slot)), 0);
    EXPECT_EQ(ftruncate(blocks_.get(), kDepth * 2 * sizeof(unisono_nic_block)), 0);
    EXPECT_TRUE(
        program_.open(row_, {.slots = slots_.get(), .blocks = blocks_.get(), .wakes = {}}).ok());
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      const std::uint64_t before = std::uint64_t{i} - kDepth;
      unisono_nic_slot& slot = program_.memory().slots[i];
      slot.claimed = slot.done = slot.broken = slot.summed = slot.queried = before;
    }
  }

  static nic::Node node() {
    nic::Node node;
    node.rank = 1;
    node.ranks = 4;
    node.parent = 0;
    node.down_source = 0;
    node.children = {3};
    return node;
  }
  std::unique_ptr<nic::Membership> join() const {
    auto member = std::make_unique<nic::Membership>();
    member->row = row_;
    EXPECT_TRUE(
        member->mapping.open(row_, {.slots = slots_.get(), .blocks = blocks_.get(), .wakes = {}})
            .ok());
    return member;
  }

  unisono_nic_slot& slot(std::uint64_t sequence) {
    return program_.memory().slots[sequence % kDepth];
  }
  unisono_nic_block& block(std::uint64_t sequence, std::uint32_t number) {
    return program_.memory().blocks[sequence % kDepth * 2 + number];
  }
  void send_up(std::uint64_t sequence) { slot(sequence).summed = sequence; }
  void finish(std::uint64_t sequence, std::uint64_t value) {
    unisono_nic_block& own = block(sequence, 0);
    std::fill_n(own.data, own.words, value);
    slot(sequence).arrived = 0;
    slot(sequence).done_ns = 100 + sequence;
    slot(sequence).done = sequence;
  }
  void break_off(std::uint64_t sequence) {
    block(sequence, 1).words = block(sequence, 0).words + 1;
    slot(sequence).broken = sequence;
  }

 private:
  unisono_nic_row row_ = {};
  base::Descriptor slots_, blocks_;
  nic::GroupMapping program_;
};

plan::NicCall sum_of(std::size_t count) {
  plan::NicCall call;
  call.combine = UNISONO_NIC_SUM_INT64;
  call.bytes = call.gives = count * sizeof(std::uint64_t);
  call.kernel = arith::find_kernel(arith::Operator::sum, arith::Type::int64);
  call.count = static_cast<std::int64_t>(count);
  call.element_bytes = sizeof(std::uint64_t);
  return call;
}

class NicReductions : public ::testing::Test {
 protected:
  // A rank of the host, with several operations in flight.
  struct OneRank {
    nic::TreePorts ports;
    select::SplitChoice splits;
    std::unique_ptr<NicReduction> reduction, later;
  };
  std::unique_ptr<OneRank> rank_of(int trees = 1, std::unique_ptr<HostReduction> ranks = nullptr,
                                   std::unique_ptr<HostReduction> ranks_later = nullptr) {
    auto made = std::make_unique<OneRank>();
    made->splits = select::SplitChoice::forced(trees == 1 ? 0 : 1);
    for (int tree = 0; tree < trees; ++tree) {
      EXPECT_TRUE(made->ports
                      .add(SharedMemory::node(), trees_[static_cast<std::size_t>(tree)].join(),
                           std::nullopt)
                      .ok());
    }
    made->reduction = std::make_unique<NicReduction>(NicReduction::Rank{.host = 1}, made->ports,
                                                     made->splits, std::move(ranks));
    made->later = std::make_unique<NicReduction>(NicReduction::Rank{.host = 1}, made->ports,
                                                 made->splits, std::move(ranks_later));
    return made;
  }
  static void expect_under_way(NicReduction& reduction, const std::string& lacks) {
    const auto done = reduction.poll();
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_FALSE(*done);
    EXPECT_EQ(reduction.describe(), lacks);
  }

  std::array<SharedMemory, 2> trees_;
};

TEST_F(NicReductions, AreStartedPolledAndTaken) {
  const auto rank = rank_of();
  const auto& reduction = rank->reduction;
  for (std::uint64_t number = 0; number < 20; ++number) {
    std::vector<std::uint64_t> input(3, number);
    std::vector<std::uint64_t> output(3, 77);
    ASSERT_TRUE(reduction->start(sum_of(3), input.data(), output.data()).ok());
    EXPECT_EQ(trees_[0].block(number, 0).data[2], number);
    std::ranges::fill(input, 0);  // it is the caller's again
    const std::string name = "operation " + std::to_string(number) + " on host 1 ";
    expect_under_way(*reduction, name + "lacks a contribution of hosts 3");
    trees_[0].send_up(number);
    expect_under_way(*reduction, name + "lacks the result of host 0");
    EXPECT_EQ(output[0], 77U) << "nobody writes there before take()";
    trees_[0].finish(number, 5 + number);
    const auto done = reduction->poll();
    ASSERT_TRUE(done.ok() && *done);
    EXPECT_EQ(reduction->vector().done_ns(), static_cast<std::int64_t>(100 + number));
    EXPECT_EQ(reduction->describe(), name + "has its result");
    ASSERT_TRUE(reduction->take().ok());
    EXPECT_EQ(output, std::vector<std::uint64_t>(3, 5 + number));
  }
}

TEST_F(NicReductions, InPiecesLackWhatAnyTreeLacks) {
  const auto rank = rank_of(2);
  const auto& reduction = rank->reduction;
  const std::vector<std::uint64_t> input(5, 1);
  std::vector<std::uint64_t> output(5, 77);
  ASSERT_TRUE(reduction->start(sum_of(5), input.data(), output.data()).ok());
  EXPECT_EQ(trees_[0].block(0, 0).words, 3U);
  EXPECT_EQ(trees_[1].block(0, 0).words, 2U);
  trees_[0].send_up(0);
  expect_under_way(
      *reduction, "operation 0 on host 1 lacks a contribution of hosts 3 and the result of host 0");
  EXPECT_EQ(reduction->vector().lacking(), 3U);
  EXPECT_EQ(reduction->vector().given() & 3U, 1U);
  trees_[1].finish(0, 9);
  expect_under_way(*reduction, "operation 0 on host 1 lacks the result of host 0");
  trees_[0].finish(0, 8);
  EXPECT_TRUE(*reduction->poll());
  ASSERT_TRUE(reduction->take().ok());
  EXPECT_EQ(output, (std::vector<std::uint64_t>{8, 8, 8, 9, 9}));
}

TEST_F(NicReductions, OfSeveralRanksWaitForTheirOwnHostFirst) {
  constexpr int kRanks = 2;
  const auto bytes = static_cast<std::size_t>(HostReduction::memory_bytes(kRanks));
  std::vector<std::byte> memory(bytes + 64);
  void* start = memory.data();
  std::size_t room = memory.size();
  auto* const aligned = static_cast<std::byte*>(std::align(64, bytes, start, room));
  const auto one_rank = rank_of(1, std::make_unique<HostReduction>(aligned, 0, kRanks, 1));
  const auto other_rank = rank_of(1, std::make_unique<HostReduction>(aligned, 1, kRanks, 1));
  const auto& first = one_rank->reduction;
  const auto& second = other_rank->reduction;
  const std::uint64_t one = 1;
  const std::uint64_t two = 2;
  std::array<std::uint64_t, kRanks> outputs = {};
  ASSERT_TRUE(second->start(sum_of(1), &two, &outputs[1]).ok());
  expect_under_way(*second, "operation 0 on host 1 waits for other ranks of this host");
  ASSERT_TRUE(first->start(sum_of(1), &one, &outputs[0]).ok());
  EXPECT_EQ(trees_[0].block(0, 0).data[0], 3U) << "the sum of both";
  expect_under_way(*second, "operation 0 on host 1 lacks a contribution of hosts 3");
  trees_[0].finish(0, 10);
  for (auto* const reduction : {first.get(), second.get()}) {
    EXPECT_TRUE(*reduction->poll());
    EXPECT_TRUE(reduction->take().ok());
  }
  EXPECT_EQ(outputs, (std::array<std::uint64_t, kRanks>{10, 10}));
}

TEST_F(NicReductions, InFlightEndInAnyOrder) {
  const auto rank = rank_of();
  const std::uint64_t input = 1;
  std::uint64_t first = 77;
  std::uint64_t second = 77;
  ASSERT_TRUE(rank->reduction->start(sum_of(1), &input, &first).ok());
  ASSERT_TRUE(rank->later->start(sum_of(1), &input, &second).ok());
  EXPECT_EQ(rank->reduction->vector().number(), 0U);
  EXPECT_EQ(rank->later->vector().number(), 1U);
  trees_[0].finish(1, 6);
  EXPECT_FALSE(*rank->reduction->poll());
  ASSERT_TRUE(*rank->later->poll());
  ASSERT_TRUE(rank->later->take().ok());
  EXPECT_EQ(second, 6U);
  EXPECT_EQ(first, 77U);
  trees_[0].finish(0, 5);
  ASSERT_TRUE(*rank->reduction->poll());
  ASSERT_TRUE(rank->reduction->take().ok());
  EXPECT_EQ(first, 5U);
}

// A result that is not taken keeps its place. A rank that starts one operation after the other
// overwrites none of its own results.
TEST_F(NicReductions, HaveRoomForAsManyPacketsAsThePortAllows) {
  const auto rank = rank_of();
  const std::vector<std::uint64_t> input(nic::kWordsMax, 3);
  std::vector<std::uint64_t> output(nic::kWordsMax);
  const auto whole = [](int packets) {
    return sum_of(static_cast<std::size_t>(packets * UNISONO_NIC_WORDS_MAX));
  };
  std::uint64_t at = 0;
  for (int round = 0; round < 10; ++round) {
    ASSERT_TRUE(rank->reduction->has_room(whole(nic::kPacketsMax)));
    ASSERT_TRUE(rank->reduction->start(whole(3), input.data(), output.data()).ok());
    EXPECT_TRUE(rank->later->has_room(whole(1)));
    EXPECT_FALSE(rank->later->has_room(whole(2)));
    ASSERT_TRUE(rank->later->start(sum_of(1), input.data(), output.data()).ok());
    EXPECT_FALSE(rank->later->has_room(sum_of(0)));
    for (std::uint64_t packet = 0; packet < 4; ++packet) trees_[0].finish(at + packet, 9);
    EXPECT_FALSE(rank->later->has_room(sum_of(0))) << "the results are there, but not taken";
    ASSERT_TRUE(rank->later->take().ok());
    EXPECT_FALSE(rank->later->has_room(sum_of(0))) << "the oldest one is not taken";
    ASSERT_TRUE(rank->reduction->take().ok());
    EXPECT_EQ(output.front(), 9U);
    EXPECT_EQ(output[3 * UNISONO_NIC_WORDS_MAX - 1], 9U);
    at += 4;
  }
}

TEST_F(NicReductions, NameTheRankWhoseCallDiffers) {
  const auto rank = rank_of();
  const auto& reduction = rank->reduction;
  const std::uint64_t input = 1;
  std::uint64_t output = 77;
  ASSERT_TRUE(reduction->start(sum_of(1), &input, &output).ok());
  EXPECT_FALSE(reduction->mismatching_rank().has_value());
  trees_[0].break_off(0);
  EXPECT_EQ(reduction->poll().error().code, base::Code::mismatch);
  EXPECT_EQ(reduction->mismatching_rank().value_or(NicRank{}).host, 3);
  EXPECT_EQ(output, 77U);
}

}  // namespace
}  // namespace unisono::engine::test::nic_reduction_test

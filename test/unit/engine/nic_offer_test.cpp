// SPDX-License-Identifier: BSD-3-Clause
// Who may use the NIC path: all ranks of a group or nobody, by facts that all have.
#include "engine/nic/offer.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/nic/nic_group.hpp"

namespace unisono::engine::test {
namespace {

using schedule::Collective;

NicOffer offer(std::uint32_t host) {
  NicOffer made;
  made.address.ipv4 = htonl(0x0A000000 + host);
  made.mask = htonl(0xFFFFFF00);
  made.available = 1;
  return made;
}

std::string refusal(const std::vector<NicOffer>& offers) {
  const base::Status agreed = agree(offers);
  return agreed.ok() ? "none" : agreed.error().message;
}

TEST(NicOffer, AllOrNobody) {
  EXPECT_EQ(refusal({offer(1), offer(2), offer(3)}), "none");
  EXPECT_EQ(refusal({offer(1), {}, offer(3)}),
            "the NIC path is not used: rank 1 has none; `unisono nic status` on its host says what "
            "is missing");
  EXPECT_EQ(refusal({offer(1), offer(2), offer(0x102)}),
            "the NIC path is not used: rank 0 is at 10.0.0.1 and rank 2 at 10.0.1.2, which is "
            "another network");
  EXPECT_EQ(refusal({offer(1), offer(2), offer(2)}),
            "the NIC path is not used: ranks 1 and 2 share the interface of 10.0.0.2");
  NicOffer halved = offer(2);
  halved.wishes.splits = 1;
  EXPECT_EQ(refusal({offer(1), halved}),
            "the NIC path is not used: ranks 0 and 1 have different values of UNISONO_NIC_SPLITS");
  NicOffer rooted = offer(3);
  rooted.wishes.rooted = base::Toggle::on;
  EXPECT_EQ(refusal({offer(1), offer(2), rooted}),
            "the NIC path is not used: ranks 0 and 2 have different values of UNISONO_NIC_ROOTED");
}

TEST(NicCall, WhatItDoes) {
  NicShape shape;
  shape.collective = Collective::reduce;
  shape.count = 3;
  shape.root = 1;
  const auto root = lower_call(shape, 1);
  const auto other = lower_call(shape, 0);
  ASSERT_TRUE(root.ok() && other.ok());
  EXPECT_EQ(root->combine, static_cast<std::uint32_t>(UNISONO_NIC_SUM_INT64));
  EXPECT_EQ(root->bytes, 24U);
  EXPECT_TRUE(root->takes && other->gives);
  EXPECT_FALSE(other->takes);
  shape.collective = Collective::broadcast;
  shape.type = arith::Type::float64;
  const auto from = lower_call(shape, 1);
  ASSERT_TRUE(from.ok());
  EXPECT_EQ(from->combine, static_cast<std::uint32_t>(UNISONO_NIC_OR));
  EXPECT_TRUE(from->gives && !from->takes);
  EXPECT_FALSE(lower_call(shape, 0)->gives);
}

TEST(NicCall, WhatItDoesNot) {
  NicShape shape;
  shape.collective = Collective::scan;
  shape.count = 1;
  EXPECT_EQ(lower_call(shape, 0).error().message, "the NIC path does no scan");
  shape.collective = Collective::allreduce;
  shape.op = arith::Operator::prod;
  EXPECT_EQ(lower_call(shape, 0).error().code, base::Code::unsupported);
}

// The longest vectors that go there, and why longer ones do not.
TEST(NicCall, HowLongItsVectorsAre) {
  NicShape shape;
  const auto longest = [&](Collective collective, arith::Operator op, arith::Type type) {
    shape.collective = collective;
    shape.op = op;
    shape.type = type;
    shape.count = 1;
    while (lower_call(shape, 0).ok()) ++shape.count;
    return shape.count - 1;
  };
  using arith::Operator;
  using arith::Type;
  EXPECT_EQ(longest(Collective::allreduce, Operator::sum, Type::int64), 4 * 175);
  EXPECT_EQ(longest(Collective::reduce, Operator::bitwise_or, Type::uint8), 4 * 1400);
  EXPECT_EQ(longest(Collective::allreduce, Operator::max, Type::float64), 4 * 175);
  EXPECT_EQ(longest(Collective::reduce, Operator::sum, Type::float32), 2 * 350);
  EXPECT_EQ(longest(Collective::broadcast, Operator::sum, Type::float32), 350);
  EXPECT_EQ(longest(Collective::allreduce, Operator::sum, Type::float64), 2 * 175);
  EXPECT_EQ(lower_call(shape, 0).error().code, base::Code::unsupported);
  EXPECT_EQ(lower_call(shape, 0).error().message,
            "a vector of 2808 bytes is faster without it; up to 2800 bytes go by it");
}

TEST(NicOffer, HostsAreNamedByTheirRanks) {
  const std::vector<int> leaders = {0, 4, 5};
  const base::Status agreed = agree(std::vector<NicOffer>{offer(1), {}, offer(3)}, leaders);
  EXPECT_TRUE(agreed.error().message.find("rank 4 has none") != std::string::npos);
}

TEST(NicTree, IsNamedAsTheHostEngineRunsIt) {
  const auto name_of = [](const std::vector<int>& hosts, int splits = 0, bool multicasts = true) {
    return nic_tree_name(topology::HostMap::of_labels(hosts), splits, multicasts);
  };
  EXPECT_EQ(name_of({0, 1, 2, 3}), "gather-release(4)");
  EXPECT_EQ(name_of({0, 1, 0, 1}), "two-level(gather-release,4)");
  EXPECT_EQ(name_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "two-level(gather-release,7)");
  EXPECT_EQ(name_of({0, 1, 2, 3}, 2), "split-release(2,4)");
  EXPECT_EQ(name_of({0, 1, 0, 1}, 1), "two-level(split-release,4)");
  EXPECT_EQ(name_of({0, 1, 2, 3}, 0, false), "reduce-broadcast(4)");
  EXPECT_EQ(name_of({0, 1, 2, 0, 1, 2}, 0, false), "two-level(reduce-broadcast,6)");
  EXPECT_EQ(name_of({0, 1}, 0, false), "gather-release(2)") << "to all others is to one";
}

}  // namespace
}  // namespace unisono::engine::test

// SPDX-License-Identifier: BSD-3-Clause
// Rows of the NIC program's table, made from nodes and addresses; and the places they get.
#include "nic/lowering/row.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "nic/loader/device.hpp"
#include "nic/loader/places.hpp"

namespace unisono::nic::row_test {
namespace {

std::vector<unisono_nic_address> addresses(int ranks) {
  std::vector<unisono_nic_address> list;
  for (int rank = 0; rank < ranks; ++rank) {
    unisono_nic_address address = {};
    address.mac[5] = static_cast<std::uint8_t>(rank + 1);
    address.ipv4 = htonl(0x0A000001U + static_cast<std::uint32_t>(rank));
    address.port = htons(4000);
    list.push_back(address);
  }
  return list;
}

TEST(Row, OfAnInnerNode) {
  const auto ranks = addresses(6);
  GroupAddresses group;
  group.id = {7, 9};
  group.key = {11, 13};
  group.ranks = ranks;
  group.multicast = multicast_address(inet_addr("239.129.2.3"), htons(5000));
  group.depth = 4;
  Node node;
  node.rank = 3;
  node.ranks = 6;
  node.parent = 0;
  node.own_slot = 2;
  node.first_slot = 1;
  node.children = {4, 5};
  node.returns_values = true;
  node.down_source = 0;
  const auto row = make_row(node, group);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->id.job, 7U);
  EXPECT_EQ(row->id.communicator, 9U);
  EXPECT_EQ(row->key.high, 13U);
  EXPECT_EQ(row->rank, 3U);
  EXPECT_EQ(row->depth, 8U) << "results are kept as long again";
  EXPECT_EQ(row->children, 2U);
  EXPECT_EQ(row->child_rank[1], 5U);
  EXPECT_EQ(row->child[1].mac[5], 6);
  EXPECT_EQ(row->flags, UNISONO_NIC_RETURNS_VALUES);
  EXPECT_EQ(row->own.mac[5], 4);
  EXPECT_EQ(row->up.mac[5], 1);
  EXPECT_EQ(row->first_slot, 1U);
  EXPECT_EQ(row->own_slot, 2U);
  node.parent = -1;
  EXPECT_EQ(make_row(node, group)->flags, UNISONO_NIC_RETURNS_VALUES | UNISONO_NIC_ROOT);
}

TEST(Row, SendsTheResultOn) {
  const auto ranks = addresses(70);
  GroupAddresses group;
  group.ranks = ranks;
  Node node;
  node.ranks = 70;
  node.forwards = {2, 1};
  const auto row = make_row(node, group);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->forwards, 2U);
  EXPECT_EQ(row->forward[0].mac[5], 3);
  EXPECT_EQ(row->forward[1].mac[5], 2);
  node.forwards.assign(UNISONO_NIC_FORWARDS_MAX + 1, 1);
  EXPECT_EQ(
      make_row(node, group).error().message,
      "the NIC cannot send the result on from rank 0 to 252 ranks: it sends at most 251 clones");
}

TEST(MulticastAddress, HasTheLower23Bits) {
  const unisono_nic_address address = multicast_address(inet_addr("239.129.2.3"), htons(5000));
  const std::vector<int> mac(std::begin(address.mac), std::end(address.mac));
  EXPECT_EQ(mac, (std::vector<int>{0x01, 0x00, 0x5E, 0x01, 0x02, 0x03}));
  EXPECT_EQ(address.ipv4, inet_addr("239.129.2.3"));
}

TEST(Places, TakesTheLowestRunThatIsFree) {
  Places places(10);
  EXPECT_EQ(places.take(4), 0U);
  EXPECT_EQ(places.take(3), 4U);
  EXPECT_EQ(places.take(3), 7U);
  EXPECT_EQ(places.take(1), std::nullopt);
  places.free(4);
  EXPECT_EQ(places.take(4), std::nullopt);
  EXPECT_EQ(places.take(2), 4U);
  EXPECT_EQ(places.take(1), 6U);
  places.free(0);
  places.free(4);
  EXPECT_EQ(places.take(6), 0U);
}

TEST(CounterName, DiffersForEachCounter) {
  std::set<std::string> names;
  for (int i = 0; i < UNISONO_NIC_COUNTERS; ++i) {
    names.insert(counter_name(static_cast<unisono_nic_counter>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(UNISONO_NIC_COUNTERS));
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace unisono::nic::row_test

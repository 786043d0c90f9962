// SPDX-License-Identifier: BSD-3-Clause
// What unisonod lets into the program's tables: each row that could make the program or the network
// do harm is refused, with the reason.
#include "daemon/row_check.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <functional>

#include "nic/lowering/row.hpp"

namespace unisono::daemon::test::row_check_test {
namespace {

unisono_nic_address host(int number) {
  unisono_nic_address address = {};
  address.mac[0] = 2;
  address.mac[5] = static_cast<std::uint8_t>(number);
  address.ipv4 = htonl(0x0A000000U + static_cast<std::uint32_t>(number));
  address.port = htons(47300);
  return address;
}

nic::Served served() {
  nic::Served served;
  served.interface = "u0";
  served.own = host(1);
  served.mask = htonl(0xFFFFFF00);
  return served;
}

unisono_nic_row inner() {
  unisono_nic_row row = {};
  row.depth = 2;
  row.children = 1;
  row.child[0] = host(3);
  row.own = host(77);
  row.up = host(2);
  row.down = nic::multicast_address(htonl(0xEFFF0001), htons(47300));
  return row;
}

TEST(RowCheck, TheSenderIsThisHost) {
  const auto row = checked_row(inner(), served());
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->own.ipv4, host(1).ipv4);
  EXPECT_EQ(row->own.mac[5], 1);
}

TEST(RowCheck, NobodyMakesItLosePackets) {
  unisono_nic_row asked = inner();
  asked.loss = 1U << 31;
  const auto row = checked_row(asked, served());
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->loss, 0U);
}

TEST(RowCheck, ARootMulticastsOrSendsOn) {
  unisono_nic_row root = inner();
  root.flags = UNISONO_NIC_ROOT;
  root.up = {};
  EXPECT_TRUE(checked_row(root, served()).ok());
  root.down = {};
  EXPECT_FALSE(checked_row(root, served()).ok());
  root.forwards = 1;
  root.forward[0] = host(9);
  EXPECT_TRUE(checked_row(root, served()).ok());
}

struct Spoilt {
  const char* reason;
  std::function<void(unisono_nic_row&)> spoil;
};

void expect_refusals(const unisono_nic_row& good, const std::vector<Spoilt>& all) {
  for (const Spoilt& spoilt : all) {
    unisono_nic_row row = good;
    spoilt.spoil(row);
    const auto checked = checked_row(row, served());
    ASSERT_FALSE(checked.ok()) << spoilt.reason;
    EXPECT_EQ(checked.error().code, base::Code::argument);
    EXPECT_EQ(checked.error().message, std::string("unisonod: a group that ") + spoilt.reason);
  }
}

TEST(RowCheck, RefusesWithAReason) {
  const std::vector<Spoilt> all = {
      {"has 252 children, at most 251 are possible", [](auto& row) { row.children = 252; }},
      {"sends results on to 65 ranks, at most 64 are possible",
       [](auto& row) { row.forwards = 65; }},
      {"sends results on to 10.0.0.9, a host that is named twice or is this one",
       [](auto& row) {
         row.forwards = 3;
         row.forward[0] = row.forward[2] = host(9);
         row.forward[1] = host(8);
         row.forward[2].mac[5] = 7;  // an IP address belongs to one host, whatever the MAC address
                                     // is
       }},
      {"sends results on to 10.0.0.1, a host that is named twice or is this one",
       [](auto& row) {
         row.forwards = 1;
         row.forward[0] = host(1);
       }},
      {"has the child 10.0.0.3, a host that is named twice or is this one",
       [](auto& row) {
         row.children = 2;
         row.child[1] = host(3);
       }},
      {"has 17 waiters, at most 16 are possible", [](auto& row) { row.waiters = 17; }},
      {"has a depth of 0; it is a power of two from 2 to 32", [](auto& row) { row.depth = 0; }},
      {"has a depth of 1; it is a power of two from 2 to 32", [](auto& row) { row.depth = 1; }},
      {"has a depth of 3; it is a power of two from 2 to 32", [](auto& row) { row.depth = 3; }},
      {"has a depth of 64; it is a power of two from 2 to 32", [](auto& row) { row.depth = 64; }},
      {"has unknown flags (0x80000000)", [](auto& row) { row.flags = 1U << 31; }},
      {"sends to port 53; those below 1024 are the system's",
       [](auto& row) { row.up.port = htons(53); }},
      {"sends to 10.0.1.2 (02:00:00:00:00:02), which is no host of the network of 10.0.0.1 on u0",
       [](auto& row) { row.up.ipv4 = htonl(0x0A000102); }},
      {"sends to 10.0.1.3 (02:00:00:00:00:03), which is no host of the network of 10.0.0.1 on u0",
       [](auto& row) { row.child[0].ipv4 = htonl(0x0A000103); }},
      {"sends to 10.0.0.255 (02:00:00:00:00:02), which is no host of the network of 10.0.0.1 on u0",
       [](auto& row) { row.up.ipv4 = htonl(0x0A0000FF); }},
      {"sends to 10.0.0.2 (ff:ff:ff:ff:ff:ff), which is no host of the network of 10.0.0.1 on u0",
       [](auto& row) { std::fill(std::begin(row.up.mac), std::end(row.up.mac), 0xFF); }},
      {"multicasts to 224.0.0.1 (01:00:5e:00:00:01); it may to 239.0.0.0/8, by the Ethernet "
       "address "
       "that belongs to it",
       [](auto& row) { row.down = nic::multicast_address(htonl(0xE0000001), htons(47300)); }},
      {"multicasts to 239.255.0.1 (02:00:00:00:00:05); it may to 239.0.0.0/8, by the Ethernet "
       "address that belongs to it",
       [](auto& row) { std::copy_n(host(5).mac, 6, row.down.mac); }},
  };
  expect_refusals(inner(), all);
}

// Rank 1 of three, whose block goes to rank 2 and then to rank 0.
unisono_nic_row gatherer() {
  unisono_nic_row row = {};
  row.depth = 2;
  row.rank = 1;
  row.ranks = 3;
  for (int rank = 0; rank < 3; ++rank) row.at[rank] = host(rank);
  row.route[0] = {0, 0, 0, 0};
  row.route[1] = {0, 0, 2, 0};
  row.route[2] = {2, 2, 0, 0};
  row.target[0] = 2;
  row.target[1] = 0;
  return row;
}

TEST(RowCheck, AnAllgatherHopsOrMulticasts) {
  unisono_nic_row row = gatherer();
  EXPECT_TRUE(checked_row(row, served()).ok()) << checked_row(row, served()).error().message;
  row.route[1].targets = 1;
  row.target[0] = UNISONO_NIC_TO_ALL;
  EXPECT_FALSE(checked_row(row, served()).ok());
  row.down = nic::multicast_address(htonl(0xEFFF0001), htons(47300));
  EXPECT_TRUE(checked_row(row, served()).ok()) << checked_row(row, served()).error().message;
}

TEST(RowCheck, RefusesAnAllgatherWithAReason) {
  expect_refusals(
      gatherer(),
      {
          {"has two ranks at 10.0.0.2", [](auto& row) { row.at[0] = host(2); }},
          {"sends the block of rank 1 somewhere twice", [](auto& row) { row.target[1] = 2; }},
          {"sends the block of rank 1 somewhere twice", [](auto& row) { row.target[1] = 1; }},
          {"sends the block of rank 1 somewhere twice",
           [](auto& row) {
             row.down = nic::multicast_address(htonl(0xEFFF0001), htons(47300));
             row.target[1] = UNISONO_NIC_TO_ALL;
           }},
          {"is an allgather of 65 ranks for rank 1; at most 64 are possible",
           [](auto& row) { row.ranks = 65; }},
          {"is an allgather of 3 ranks for rank 3; at most 64 are possible",
           [](auto& row) { row.rank = 3; }},
          {"is an allgather and a tree", [](auto& row) { row.children = 1; }},
          {"is an allgather and a tree", [](auto& row) { row.forwards = 1; }},
          {"is an allgather and a tree", [](auto& row) { row.flags = UNISONO_NIC_ROOT; }},
          {"has a route for rank 2 that leaves its tables",
           [](auto& row) { row.route[2].from = 3; }},
          {"has a route for rank 1 that leaves its tables",
           [](auto& row) { row.route[1].first = 63; }},
          {"has a route for rank 0 that leaves its tables",
           [](auto& row) { row.route[0].targets = 65; }},
          {"has a route for rank 1 that leaves its tables", [](auto& row) { row.target[1] = 3; }},
          {"is an allgather that multicasts, and has no multicast address",
           [](auto& row) {
             row.route[1].targets = 1;
             row.target[0] = UNISONO_NIC_TO_ALL;
           }},
          {"sends to 10.0.1.2 (02:00:00:00:00:02), which is no host of the network of 10.0.0.1 on "
           "u0",
           [](auto& row) { row.at[2].ipv4 = htonl(0x0A000102); }},
          {"multicasts to 224.0.0.1 (01:00:5e:00:00:01); it may to 239.0.0.0/8, by the Ethernet "
           "address that belongs to it",
           [](auto& row) { row.down = nic::multicast_address(htonl(0xE0000001), htons(47300)); }},
      });
}

// The same ranks by Bruck, where each sends its own block twice.
unisono_nic_row joiner() {
  unisono_nic_row row = gatherer();
  for (auto& route : row.route) route = {};
  row.gives = row.takes = 2;
  row.largest = 1;
  row.give[0] = {2, 0, 0, 1, 1, 0};
  row.give[1] = {2, 2, 1, 1, 1, 0};
  row.take[0] = {4, 2, 0, 1, 2, 0};
  row.take[1] = {1, 0, 1, 1, 0, 0};
  return row;
}

TEST(RowCheck, AnAllgatherJoinsBlocks) {
  const auto checked = checked_row(joiner(), served());
  EXPECT_TRUE(checked.ok()) << checked.error().message;
}

TEST(RowCheck, RefusesMessagesWithAReason) {
  const char* const leaves = "has a message 1 that leaves its tables";
  expect_refusals(
      joiner(),
      {
          {"is a tree, and has messages of an allgather", [](auto& row) { row.ranks = 0; }},
          {"sends 9 and takes 2 messages of up to 1 blocks; 1 to 8 of up to 3 blocks are possible",
           [](auto& row) { row.gives = 9; }},
          {"sends 0 and takes 2 messages of up to 1 blocks; 1 to 8 of up to 3 blocks are possible",
           [](auto& row) { row.gives = 0; }},
          {"sends 2 and takes 9 messages of up to 1 blocks; 1 to 8 of up to 3 blocks are possible",
           [](auto& row) { row.takes = 9; }},
          {"sends 2 and takes 2 messages of up to 0 blocks; 1 to 8 of up to 3 blocks are possible",
           [](auto& row) { row.largest = 0; }},
          {"sends 2 and takes 2 messages of up to 4 blocks; 1 to 8 of up to 3 blocks are possible",
           [](auto& row) { row.largest = 4; }},
          {leaves, [](auto& row) { row.give[1].peer = 3; }},
          {leaves, [](auto& row) { row.give[1].peer = 1; }},
          {leaves, [](auto& row) { row.give[1].slot = 8; }},
          {leaves, [](auto& row) { row.give[1].blocks = 0; }},
          {leaves, [](auto& row) { row.give[1].blocks = 4; }},
          {leaves, [](auto& row) { row.give[1].blocks = 10; }},
          {leaves, [](auto& row) { row.give[1].count = 2; }},
          {leaves, [](auto& row) { row.give[1].first = 0; }},
          {leaves, [](auto& row) { row.give[1] = {6, 2, 1, 2, 1, 0}; }},
          {leaves, [](auto& row) { row.take[1] = row.give[1]; }},
          {leaves, [](auto& row) { row.take[1].peer = 64; }},
      });
}

}  // namespace
}  // namespace unisono::daemon::test::row_check_test

// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/kvs/place_note: what ranks write on a launcher's board, and whom they reach by it.
#include "bootstrap/kvs/place_note.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bootstrap/kvs/board.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using transport::IpAddress;

IpAddress ip(std::string_view text) { return *transport::parse_ip(text); }

HostNote host(char number, const std::vector<std::string>& addresses) {
  HostNote note;
  note.host.fill(number);
  note.key.fill(static_cast<std::uint8_t>(number + 1));
  for (const std::string& address : addresses) note.addresses.push_back(ip(address));
  return note;
}

TEST(HostNote, IsReadAsItWasWritten) {
  for (const HostNote& note : {host(1, {"10.0.0.1", "fd00::1"}), host(-1, {}), host(0, {"::"})}) {
    const auto again = read_host_note(write_note(note));
    ASSERT_TRUE(again.ok()) << write_note(note);
    EXPECT_EQ(*again, note);
  }
}

TEST(HostNote, TheLongestFits) {
  const std::string longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const HostNote note = host(1, std::vector<std::string>(HostNote::kMostAddresses, longest));
  EXPECT_LE(write_note(note).size(), Board::kMostNoteBytes);
  EXPECT_TRUE(read_host_note(write_note(note)).ok());
}

TEST(HostNote, WhatNoRankWritesIsRefused) {
  const std::string good = write_note(host(1, {"10.0.0.1"}));
  for (const std::string& text :
       {std::string(), std::string("x"), good.substr(1), "zz" + good.substr(2), good + ",eth0",
        good + std::string(Board::kMostNoteBytes, ',')}) {
    const auto note = read_host_note(text);
    ASSERT_FALSE(note.ok()) << text;
    EXPECT_EQ(note.error().code, Code::state);
  }
}

TEST(HostNote, OnlyAddressesThatOthersMayReach) {
  const std::vector<transport::LocalAddress> locals{
      {.interface = "lo", .address = ip("127.0.0.1")},
      {.interface = "eth0", .address = ip("10.0.0.1")},
      {.interface = "eth0", .address = ip("fe80::1")},
      {.interface = "docker0", .address = ip("172.17.0.1")}};
  using List = std::vector<IpAddress>;
  EXPECT_EQ(noted_addresses(locals, {}), (List{ip("10.0.0.1"), ip("172.17.0.1")}));
  EXPECT_EQ(noted_addresses(locals, *transport::NetworkList::parse("^docker0")),
            List{ip("10.0.0.1")});
}

TEST(HostNote, AnAddressThatAllHostsHaveLeadsNowhere) {
  const HostNote own = host(1, {"10.0.0.1", "172.17.0.1"});
  const std::vector<HostNote> notes{host(1, {"10.0.0.1"}), host(2, {"10.0.0.2", "172.17.0.1"}),
                                    host(2, {"10.0.0.2", "172.17.0.1"}), host(3, {"10.0.0.3"})};
  EXPECT_EQ(others_addresses(own, notes), (std::vector<IpAddress>{ip("10.0.0.2"), ip("10.0.0.3")}));
}

TEST(PlaceNote, IsReadAsItWasWritten) {
  PublicKey key{};
  key.back() = 0xab;
  for (const PlaceNote& note : {PlaceNote(MeetingPlace{{ip("10.0.0.1"), 4000}, key}),
                                PlaceNote(MeetingPlace{{ip("fd00::1"), 1}, {}})}) {
    const auto again = read_place_note(write_note(note));
    ASSERT_TRUE(again.ok()) << write_note(note);
    EXPECT_EQ(std::get<MeetingPlace>(*again), std::get<MeetingPlace>(note));
  }
}

TEST(PlaceNote, AnErrorReachesTheOthers) {
  const base::Error error{Code::argument, "no address: UNISONO_NETWORKS=a/b allows none\n"};
  const auto again = read_place_note(write_note(PlaceNote(error)));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<base::Error>(*again).code, Code::argument);
  EXPECT_EQ(std::get<base::Error>(*again).message, "no address: UNISONO_NETWORKS=a/b allows none ");
  const base::Error endless{Code::system, std::string(5000, 'x')};
  EXPECT_LE(write_note(PlaceNote(endless)).size(), Board::kMostNoteBytes);
  EXPECT_TRUE(read_place_note(write_note(PlaceNote(endless))).ok());
}

TEST(PlaceNote, WhatNoRankWritesIsRefused) {
  const std::string key(64, 'a');
  ASSERT_TRUE(read_place_note("place/10.0.0.1:1/" + key).ok());
  for (const std::string& text :
       {std::string(), std::string("place"), std::string("place/10.0.0.1:4000"),
        std::string("place/10.0.0.1:4000/"), "place/10.0.0.1/" + key, "place/host:1/" + key,
        "place/10.0.0.1:1/a b" + key.substr(3), "place/10.0.0.1:1/" + key.substr(1),
        "place/10.0.0.1:1/" + key + "a", std::string("trouble/0/x"), std::string("trouble/99/x"),
        std::string("trouble//x")}) {
    const auto note = read_place_note(text);
    ASSERT_FALSE(note.ok()) << text;
    EXPECT_EQ(note.error().code, Code::state);
    EXPECT_LT(note.error().message.size(), 256U);
  }
}

TEST(SealedNote, IsReadAsItWasWritten) {
  SealedSecret first{};
  first.front() = 0xab;
  SealedNote note{first};
  while (note.size() < kSealedInNote) note.push_back({});
  EXPECT_LE(write_note(note).size(), Board::kMostNoteBytes);
  for (; !note.empty(); note.pop_back()) {
    const auto again = read_sealed_note(write_note(note));
    ASSERT_TRUE(again.ok()) << write_note(note);
    EXPECT_EQ(*again, note);
  }
}

TEST(SealedNote, WhatNoRankWritesIsRefused) {
  const std::string good = write_note(SealedNote{SealedSecret{}});
  std::string many = good;
  for (std::size_t i = 0; i < kSealedInNote; ++i) many += "," + good;
  for (const std::string& text : {std::string(), good.substr(1), good + "0", good + ",x",
                                  "," + good, "g" + good.substr(1), many}) {
    const auto note = read_sealed_note(text);
    ASSERT_FALSE(note.ok()) << text;
    EXPECT_EQ(note.error().code, Code::state);
  }
}

}  // namespace
}  // namespace unisono::bootstrap

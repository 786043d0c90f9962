// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/kvs/rendezvous_values: the text form of the values, and which addresses count.
#include "bootstrap/kvs/rendezvous_values.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "bootstrap/kvs/key_value_store.hpp"

namespace unisono::bootstrap::rendezvous_values_test {
namespace {

using base::Code;
using transport::IpAddress;

IpAddress ip(std::string_view text) { return *transport::parse_ip(text); }

HostValue host(char number, const std::vector<std::string>& addresses) {
  HostValue value;
  value.host.fill(number);
  value.key.fill(static_cast<std::uint8_t>(number + 1));
  for (const std::string& address : addresses) value.addresses.push_back(ip(address));
  return value;
}

TEST(HostValue, ARoundTripChangesNothing) {
  for (const HostValue& value : {host(1, {"10.0.0.1", "fd00::1"}), host(-1, {}), host(0, {"::"})}) {
    const auto again = parse_host_value(format_value(value));
    ASSERT_TRUE(again.ok()) << format_value(value);
    EXPECT_EQ(*again, value);
  }
}

TEST(HostValue, TheLongestFits) {
  const std::string longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const HostValue value = host(1, std::vector<std::string>(HostValue::kMostAddresses, longest));
  EXPECT_LE(format_value(value).size(), KeyValueStore::kMostValueBytes);
  EXPECT_TRUE(parse_host_value(format_value(value)).ok());
}

TEST(HostValue, OtherTextsAreErrors) {
  const std::string good = format_value(host(1, {"10.0.0.1"}));
  for (const std::string& text :
       {std::string(), std::string("x"), good.substr(1), "zz" + good.substr(2), good + ",eth0",
        good + std::string(KeyValueStore::kMostValueBytes, ',')}) {
    const auto value = parse_host_value(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().code, Code::state);
  }
}

TEST(HostValue, OnlyAddressesThatOtherHostsMayReach) {
  const std::vector<transport::LocalAddress> locals{
      {.interface = "lo", .address = ip("127.0.0.1")},
      {.interface = "eth0", .address = ip("10.0.0.1")},
      {.interface = "eth0", .address = ip("fe80::1")},
      {.interface = "docker0", .address = ip("172.17.0.1")}};
  using List = std::vector<IpAddress>;
  EXPECT_EQ(reachable_addresses(locals, {}), (List{ip("10.0.0.1"), ip("172.17.0.1")}));
  EXPECT_EQ(reachable_addresses(locals, *transport::NetworkList::parse("^docker0")),
            List{ip("10.0.0.1")});
}

TEST(HostValue, AnAddressOfAllHostsIsLeftOut) {
  const HostValue own = host(1, {"10.0.0.1", "172.17.0.1"});
  const std::vector<HostValue> values{host(1, {"10.0.0.1"}), host(2, {"10.0.0.2", "172.17.0.1"}),
                                      host(2, {"10.0.0.2", "172.17.0.1"}), host(3, {"10.0.0.3"})};
  EXPECT_EQ(addresses_of_other_hosts(own, values),
            (std::vector<IpAddress>{ip("10.0.0.2"), ip("10.0.0.3")}));
}

TEST(AddressValue, ARoundTripChangesNothing) {
  PublicKey key{};
  key.back() = 0xab;
  for (const AddressValue& value : {AddressValue(RendezvousAddress{{ip("10.0.0.1"), 4000}, key}),
                                    AddressValue(RendezvousAddress{{ip("fd00::1"), 1}, {}})}) {
    const auto again = parse_address_value(format_value(value));
    ASSERT_TRUE(again.ok()) << format_value(value);
    EXPECT_EQ(std::get<RendezvousAddress>(*again), std::get<RendezvousAddress>(value));
  }
}

TEST(AddressValue, AnErrorReachesTheOtherRanks) {
  const base::Error error{Code::argument, "no address: UNISONO_NETWORKS=a/b allows none\n"};
  const auto again = parse_address_value(format_value(AddressValue(error)));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<base::Error>(*again).code, Code::argument);
  EXPECT_EQ(std::get<base::Error>(*again).message, "no address: UNISONO_NETWORKS=a/b allows none ");
  const base::Error endless{Code::system, std::string(5000, 'x')};
  EXPECT_LE(format_value(AddressValue(endless)).size(), KeyValueStore::kMostValueBytes);
  EXPECT_TRUE(parse_address_value(format_value(AddressValue(endless))).ok());
}

TEST(AddressValue, OtherTextsAreErrors) {
  const std::string key(64, 'a');
  ASSERT_TRUE(parse_address_value("address/10.0.0.1:1/" + key).ok());
  for (const std::string& text :
       {std::string(), std::string("address"), std::string("address/10.0.0.1:4000"),
        std::string("address/10.0.0.1:4000/"), "address/10.0.0.1/" + key, "address/host:1/" + key,
        "address/10.0.0.1:1/a b" + key.substr(3), "address/10.0.0.1:1/" + key.substr(1),
        "address/10.0.0.1:1/" + key + "a", std::string("error/0/x"), std::string("error/99/x"),
        std::string("error//x")}) {
    const auto value = parse_address_value(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().code, Code::state);
    EXPECT_LT(value.error().message.size(), 256U);
  }
}

TEST(SealedKeysValue, ARoundTripChangesNothing) {
  SealedSecret first{};
  first.front() = 0xab;
  SealedKeysValue value{first};
  while (value.size() < kSealedInValue) value.push_back({});
  EXPECT_LE(format_value(value).size(), KeyValueStore::kMostValueBytes);
  for (; !value.empty(); value.pop_back()) {
    const auto again = parse_sealed_keys_value(format_value(value));
    ASSERT_TRUE(again.ok()) << format_value(value);
    EXPECT_EQ(*again, value);
  }
}

TEST(SealedKeysValue, OtherTextsAreErrors) {
  const std::string good = format_value(SealedKeysValue{SealedSecret{}});
  std::string many = good;
  for (std::size_t i = 0; i < kSealedInValue; ++i) many += "," + good;
  for (const std::string& text : {std::string(), good.substr(1), good + "0", good + ",x",
                                  "," + good, "g" + good.substr(1), many}) {
    const auto value = parse_sealed_keys_value(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().code, Code::state);
  }
}

}  // namespace
}  // namespace unisono::bootstrap::rendezvous_values_test

// SPDX-License-Identifier: BSD-3-Clause
// Addresses as text and in socket form, the addresses that a user's network list allows, and the
// choice among a host's addresses.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "loopback.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/ip.hpp"
#include "transport/ip/network_list.hpp"

namespace unisono::transport::udp_address_test {
namespace {

IpAddress ip(const std::string& text) { return *parse_ip(text); }

TEST(Ip, AddressesAreReadAndWritten) {
  for (const char* text : {"127.0.0.1", "10.0.0.255", "::1", "fd00::2", "ff12::8000:1"}) {
    const auto address = parse_ip(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(ip_text(*address), text);
  }
  for (const std::string& text :
       {std::string(), std::string("localhost"), std::string("10.0.0"), std::string("10.0.0.256"),
        std::string("fe80::1%eth0"), std::string("::1::"), std::string("127.0.0.1\0", 10),
        std::string(100, '1')}) {
    const auto address = parse_ip(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, base::Code::argument);
  }
}

TEST(Ip, EndpointsAreReadAndWritten) {
  for (const char* text : {"127.0.0.1:1", "[fd00::2]:65535"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.ok()) << text;
    EXPECT_EQ(endpoint_text(*endpoint), text);
  }
  EXPECT_EQ(endpoint_text(*parse_endpoint("239.255.0.1")), "239.255.0.1:0");
  EXPECT_EQ(endpoint_text(*parse_endpoint("ff12::1")), "[ff12::1]:0");
  EXPECT_EQ(endpoint_text(*parse_endpoint("[ff12::1]")), "[ff12::1]:0");
  for (const char* text : {"", ":", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:x", "[::1]x",
                           "[::1]:", "[1.2.3.4]:5", "[::1", "::1]:5"}) {
    EXPECT_FALSE(parse_endpoint(text).ok()) << text;
  }
}

TEST(Ip, Kinds) {
  EXPECT_TRUE(ip("127.8.0.1").is_loopback());
  EXPECT_TRUE(ip("::1").is_loopback());
  EXPECT_FALSE(ip("::2").is_loopback());
  EXPECT_TRUE(ip("169.254.3.4").is_link_local());
  EXPECT_TRUE(ip("fe80::1").is_link_local());
  EXPECT_FALSE(ip("fec0::1").is_link_local());
  EXPECT_TRUE(ip("224.0.0.1").is_multicast());
  EXPECT_TRUE(ip("239.255.1.1").is_multicast());
  EXPECT_FALSE(ip("240.0.0.1").is_multicast());
  EXPECT_TRUE(ip("ff12::1").is_multicast());
}

TEST(Ip, SocketFormKeepsAddressAndPortAndTheScopeOfALink) {
  for (const char* text : {"10.1.2.3:400", "[fd00::2]:500", "[fe80::1]:1", "[ff12::1]:2"}) {
    const Endpoint endpoint = *parse_endpoint(text);
    const SocketAddress address = socket_address(endpoint, 7);
    EXPECT_EQ(endpoint_of(address.storage), endpoint);
    if (endpoint.address.family != Family::v6) continue;
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof(v6));
    EXPECT_EQ(v6.sin6_scope_id, endpoint.address.bytes[0] == 0xfd ? 0U : 7U) << text;
  }
}

TEST(NetworkList, ItemsAllowAndForbid) {
  const struct {
    const char* list;
    const char* interface;
    const char* address;
    bool allowed;
  } cases[] = {
      {"", "eth0", "10.0.0.1", true},
      {"eth0", "eth0", "10.0.0.1", true},
      {"eth0", "eth0.100", "10.0.0.1", false},
      {"eth0.100", "eth0.100", "10.0.0.1", true},
      {"eth0", "eth1", "fd00::1", false},
      {"10.0.0.0/8", "eth0", "10.255.0.1", true},
      {"10.0.0.7/8", "eth0", "10.255.0.1", true},
      {"10.0.0.0/8", "eth0", "11.0.0.1", false},
      {"10.0.0.0/8", "eth0", "fd00::1", false},
      {"10.128.0.0/9", "eth0", "10.127.255.255", false},
      {"10.128.0.0/9", "eth0", "10.128.0.0", true},
      {"0.0.0.0/0", "eth0", "192.168.1.1", true},
      {"0.0.0.0/0", "eth0", "fd00::1", false},
      {"fd00::/8", "eth0", "fdff::1", true},
      {"fd00::/8", "eth0", "fc00::1", false},
      {"10.1.2.3", "eth0", "10.1.2.3", true},
      {"10.1.2.3", "eth0", "10.1.2.4", false},
      {"^docker0", "docker0", "172.17.0.1", false},
      {"^docker0", "eth0", "172.17.0.1", true},
      {"10.0.0.0/8,^10.9.0.0/16", "eth0", "10.9.1.1", false},
      {"^10.9.0.0/16,10.0.0.0/8", "eth0", "10.9.1.1", false},
      {"10.0.0.0/8,^10.9.0.0/16", "eth0", "10.8.1.1", true},
      {"10.0.0.0/8,^10.9.0.0/16", "eth0", "192.168.0.1", false},
      {" eth1 ,\t10.0.0.0/8 ", "eth1", "192.168.0.1", true},
      {"^ eth1", "eth1", "192.168.0.1", false},
  };
  for (const auto& one : cases) {
    const auto list = NetworkList::parse(one.list);
    ASSERT_TRUE(list.ok()) << one.list << ": " << list.error().message;
    EXPECT_EQ(list->allows(one.interface, ip(one.address)), one.allowed)
        << one.list << ": " << one.interface << " " << one.address;
    EXPECT_EQ(*NetworkList::parse(list->text()), *list) << one.list;
  }
}

TEST(NetworkList, WrongItemsAreNamed) {
  std::string many = "eth0";
  for (std::size_t i = 0; i < NetworkList::kMostItems; ++i) many += ",eth0";
  const std::pair<std::string, std::string> cases[] = {
      {"eth0,,eth1", "is empty"},
      {"eth0,", "is empty"},
      {"^", "is empty"},
      {"^^eth0", "no interface has"},
      {"10.0.0.0/33", "prefix from 0 to 32"},
      {"fd00::/129", "prefix from 0 to 128"},
      {"10.0.0.0/", "prefix"},
      {"10.0.0.0/-1", "prefix"},
      {"10.0.0.0/8x", "prefix"},
      {"10.0.0", "10.0.0\" is not an address"},
      {"eth0/24", "is not an address"},
      {"an-interface-name-of-this-length", "longer"},
      {"eth 0", "no interface has"},
      {std::string("eth\0", 4), "no interface has"},
      {many, "more than 64 items"},
      {std::string(5000, 'x'), "5000 letters"},
  };
  for (const auto& [text, what] : cases) {
    const auto list = NetworkList::parse(text);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_EQ(list.error().code, base::Code::argument);
    EXPECT_NE(list.error().message.find(what), std::string::npos) << list.error().message;
  }
}

TEST(Interfaces, LoopbackIsThereAndLeadsToItself) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok()) << local.error().message;
  EXPECT_EQ(ip_text(local->address), "127.0.0.1");
  EXPECT_NE(local->index, 0U);
  EXPECT_GE(local->mtu, 1280);
  const auto source = source_towards(local->address);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(*source, local->address);
}

// A host with two networks and a bridge for containers, as a table.
class Choice : public testing::Test {
 protected:
  std::vector<LocalAddress> locals{{"lo", 1, ip("127.0.0.1"), 65536, false},
                                   {"eth0", 2, ip("192.168.1.5"), 1500, true},
                                   {"ib0", 3, ip("10.0.0.5"), 2044, true},
                                   {"ib0", 3, ip("fd00::5"), 2044, true},
                                   {"docker0", 4, ip("172.17.0.1"), 1500, true}};
  std::map<std::string, std::string> routes{{"192.168.1.6", "192.168.1.5"},
                                            {"192.168.1.7", "192.168.1.5"},
                                            {"10.0.0.6", "10.0.0.5"},
                                            {"fd00::6", "fd00::5"}};
  base::Result<ChosenAddress> choose(const std::vector<std::string>& peers,
                                     const std::string& list) const {
    std::vector<IpAddress> addresses;
    for (const std::string& peer : peers) addresses.push_back(ip(peer));
    return choose_address(addresses, *NetworkList::parse(list), locals,
                          [this](const IpAddress& peer) -> base::Result<IpAddress> {
                            const auto found = routes.find(ip_text(peer));
                            if (found != routes.end()) return ip(found->second);
                            return base::Error{base::Code::system, "no route to " + ip_text(peer)};
                          });
  }
};

TEST_F(Choice, TheRouteDecides) {
  const auto one = choose({"192.168.1.6"}, "");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->local.interface, "eth0");
  EXPECT_EQ(one->why, "route to 192.168.1.6");
  EXPECT_EQ(choose({"fd00::6"}, "")->local.address, ip("fd00::5"));
  // Most of the peers, and it is said that not all.
  const auto most = choose({"10.0.0.6", "192.168.1.6", "192.168.1.7"}, "^docker0");
  EXPECT_EQ(most->local.interface, "eth0");
  EXPECT_EQ(most->why, "route to 192.168.1.6 and 2 of 3 peers in all");
  // A peer without a route does not matter while another has one.
  EXPECT_EQ(choose({"203.0.113.1", "10.0.0.6"}, "")->local.interface, "ib0");
}

TEST_F(Choice, TheListDecidesWhereItIsAsked) {
  EXPECT_EQ(choose({"192.168.1.6"}, "10.0.0.0/8")->local.interface, "ib0");
  EXPECT_EQ(choose({"192.168.1.6"}, "docker0,ib0")->local.interface, "docker0");
  EXPECT_EQ(choose({"192.168.1.6"}, "ib0,docker0")->local.address, ip("10.0.0.5"));
  EXPECT_EQ(choose({"192.168.1.6"}, "ib0,docker0,eth0")->local.interface, "eth0");
  EXPECT_EQ(choose({"10.0.0.6", "192.168.1.6", "192.168.1.7"}, "^eth0")->local.interface, "ib0");
}

TEST_F(Choice, ErrorsSayWhatThereIs) {
  const auto forbidden = choose({"192.168.1.6"}, "^eth0");
  ASSERT_FALSE(forbidden.ok());
  EXPECT_EQ(forbidden.error().code, base::Code::argument);
  EXPECT_NE(forbidden.error().message.find("UNISONO_NETWORKS=^eth0"), std::string::npos);
  EXPECT_NE(forbidden.error().message.find("ib0 10.0.0.5"), std::string::npos);
  EXPECT_EQ(choose({"203.0.113.1"}, "").error().message, "no route to 203.0.113.1");
  EXPECT_EQ(choose({}, "").error().code, base::Code::argument);
}

}  // namespace
}  // namespace unisono::transport::udp_address_test

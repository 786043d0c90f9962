// SPDX-License-Identifier: BSD-3-Clause
// What a set of test hosts is planned to look like, and its record, without making one.
#include "hosts/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "hosts/registry.hpp"

namespace unisono::tools::hosts_plan_test {
namespace {

HostsPlan plan_of(int hosts, HostsShape shape = HostsShape::star, std::int64_t rate_bits = 0) {
  HostsPlan plan;
  plan.name = "h";
  plan.hosts = hosts;
  plan.shape = shape;
  plan.rate_bits = rate_bits;
  return plan;
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find(part) != std::string::npos) result.push_back(line);
  }
  return result;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HostsPlan, RatesAreReadAndWritten) {
  EXPECT_EQ(parse_rate("200mbit").value(), 200'000'000);
  EXPECT_EQ(parse_rate("1gbit").value(), 1'000'000'000);
  EXPECT_EQ(parse_rate("64kbit").value(), 64'000);
  EXPECT_EQ(parse_rate("8000bit").value(), 8'000);
  for (const char* wrong : {"", "mbit", "200", "200MB", "-1mbit", "0mbit", "1.5gbit", "200 mbit",
                            "9223372036854775807gbit", "101gbit"}) {
    const auto rate = parse_rate(wrong);
    ASSERT_FALSE(rate.ok()) << wrong;
    EXPECT_TRUE(contains(rate.error().message, wrong));
  }
  for (const std::int64_t rate : {200'000'000LL, 1'000'000'000LL, 1'500'000'000LL, 64'000LL}) {
    EXPECT_EQ(parse_rate(format_rate(rate)).value(), rate);
  }
}

TEST(HostsPlan, WhatCannotBeMadeIsRefused) {
  EXPECT_TRUE(check_plan(plan_of(1)).ok());
  EXPECT_TRUE(check_plan(plan_of(kMostHosts)).ok());
  EXPECT_FALSE(check_plan(plan_of(0)).ok());
  EXPECT_FALSE(check_plan(plan_of(kMostHosts + 1)).ok());
  for (const int hosts : {4, 9, 16, 25})
    EXPECT_TRUE(check_plan(plan_of(hosts, HostsShape::tree)).ok());
  for (const int hosts : {1, 2, 8, 15, 17}) {
    const base::Status refused = check_plan(plan_of(hosts, HostsShape::tree));
    ASSERT_FALSE(refused.ok()) << hosts;
    EXPECT_TRUE(contains(refused.error().message, "not " + std::to_string(hosts)));
  }
  for (const char* name : {"", "H", "h1", "a-b", "abcdefghi", "../x"}) {
    HostsPlan plan = plan_of(1);
    plan.name = name;
    EXPECT_FALSE(check_plan(plan).ok()) << name;
  }
  EXPECT_FALSE(check_plan(plan_of(2, HostsShape::star, 1)).ok());
}

TEST(HostsPlan, NamesFitAnInterface) {
  HostsPlan plan = plan_of(kMostHosts);
  plan.name = std::string(kMostSetName, 'x');
  EXPECT_LE(host_name(plan, kMostHosts - 1).size(), 15U);
  EXPECT_EQ(host_address(kMostHosts - 1), "10.77.0.250");
  EXPECT_TRUE(contains(hosts_file(plan_of(2)), "10.77.0.2 h2\n"));
}

TEST(HostsPlan, AStarHasOneSwitch) {
  const std::string links = switch_links(plan_of(3), {11, 12, 13});
  EXPECT_EQ(lines_with(links, "type bridge ").size(), 1U);
  EXPECT_TRUE(contains(links,
                       "link add name h3 type veth peer name eth0 address 02:77:00:00:00:03 "
                       "netns 13\n"));
  EXPECT_TRUE(switch_routes(plan_of(3)).empty());
  EXPECT_TRUE(switch_rates(plan_of(3)).empty());
  EXPECT_TRUE(host_rates(plan_of(3)).empty());
}

TEST(HostsPlan, EveryLinkIsLimitedAtBothEnds) {
  const HostsPlan star = plan_of(3, HostsShape::star, 200'000'000);
  EXPECT_EQ(lines_with(switch_rates(star), "tbf rate 200000000bit").size(), 3U);
  EXPECT_EQ(lines_with(host_rates(star), "dev eth0 root tbf rate 200000000bit").size(), 1U);
  const HostsPlan tree = plan_of(16, HostsShape::tree, 200'000'000);
  EXPECT_EQ(lines_with(switch_rates(tree), "tbf").size(), 16U + 2 * 16U);
}

// Follows the tables of the switches from every host to every other.
TEST(HostsPlan, RoutesOfATreeGoUpOnceAndDownOnce) {
  for (const int arity : {2, 3, 4, 5}) {
    for (int from = 0; from < arity * arity; ++from) {
      for (int to = 0; to < arity * arity; ++to) {
        const int leaf = from / arity;
        const TreePort up = leaf_port(arity, leaf, to);
        if (to / arity == leaf) {
          EXPECT_EQ(up, (TreePort{true, to}));
          continue;
        }
        ASSERT_FALSE(up.to_host);
        EXPECT_EQ(up.number, to % arity) << "the destination alone names the spine";
        const TreePort down = spine_port(arity, to);
        ASSERT_FALSE(down.to_host);
        EXPECT_EQ(leaf_port(arity, down.number, to), (TreePort{true, to}));
      }
    }
  }
}

TEST(HostsPlan, TablesOfATreeAreComplete) {
  const HostsPlan tree = plan_of(16, HostsShape::tree);
  const std::string routes = switch_routes(tree);
  EXPECT_EQ(lines_with(routes, "fdb add").size(), 8U * 16U);
  // Host 6 (number 5): leaf 0 sends it to spine 1, that to leaf 1, and that to its port.
  EXPECT_TRUE(contains(routes, "fdb add 02:77:00:00:00:06 dev l0s1 master static\n"));
  EXPECT_TRUE(contains(routes, "fdb add 02:77:00:00:00:06 dev s1l1 master static\n"));
  EXPECT_TRUE(contains(routes, "fdb add 02:77:00:00:00:06 dev h6 master static\n"));
}

TEST(HostsPlan, MulticastInATreeHasNoLoop) {
  const std::string links = switch_links(plan_of(16, HostsShape::tree), std::vector<pid_t>(16, 1));
  EXPECT_EQ(lines_with(links, "mcast_flood on bcast_flood on").size(), 8U);
  for (const std::string& line : lines_with(links, "mcast_flood on")) {
    EXPECT_TRUE(contains(line, "s0")) << line;
  }
  EXPECT_EQ(lines_with(links, "mcast_flood off bcast_flood off").size(), 24U);
}

TEST(HostsRecord, IsReadAsItWasWritten) {
  HostsRecord record;
  record.name = "h";
  record.keeper = 77;
  record.inside = 4026532000;
  record.shape = "tree";
  record.rate = "200mbit";
  record.hosts = {{"h1", "10.77.0.1", 2}, {"h2", "10.77.0.2", 3}};
  const std::string text = format_record(record);
  const auto read = parse_record("h", text);
  ASSERT_TRUE(read);
  EXPECT_EQ(format_record(*read), text);
  EXPECT_EQ(read->hosts[1].pid, 3);
  // Until its end is written, the set is being made.
  for (std::size_t length = 0; length + 4 < text.size(); ++length) {
    EXPECT_FALSE(parse_record("h", text.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_record("h", "nonsense\nend\n"));
}

}  // namespace
}  // namespace unisono::tools::hosts_plan_test

// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace unisono::tools {
namespace {

using base::Code;
using base::Error;

struct RateUnit {
  std::string_view name;
  std::int64_t bits;
};
constexpr std::array<RateUnit, 4> kRateUnits{
    {{"gbit", 1'000'000'000}, {"mbit", 1'000'000}, {"kbit", 1'000}, {"bit", 1}}};
// Below, a single full packet takes seconds; above, the filter's own arithmetic is the limit.
constexpr std::int64_t kLeastRate = 8'000;
constexpr std::int64_t kMostRate = 100'000'000'000;
// The filter's burst: a millisecond of the rate, but at least a few packets.
constexpr std::int64_t kLeastBurst = 15'000;
constexpr std::int64_t kBurstsPerSecond = 1'000;

std::string host_mac(int host) { return fmt::format("02:77:00:00:00:{:02x}", host + 1); }

std::string leaf_name(int leaf) { return fmt::format("leaf{}", leaf); }
std::string spine_name(int spine) { return fmt::format("spine{}", spine); }
std::string up_link(int leaf, int spine) { return fmt::format("l{}s{}", leaf, spine); }
std::string down_link(int spine, int leaf) { return fmt::format("s{}l{}", spine, leaf); }

// The links of a tree between its switches, by both of their ends' names.
std::vector<std::string> inner_ports(const HostsPlan& plan) {
  std::vector<std::string> result;
  const int arity = tree_arity(plan);
  for (int leaf = 0; leaf < arity; ++leaf) {
    for (int spine = 0; spine < arity; ++spine) {
      result.push_back(up_link(leaf, spine));
      result.push_back(down_link(spine, leaf));
    }
  }
  return result;
}

std::string add_switch(const std::string& name) {
  // Without a querier a snooping switch would forget the group's members; a querier would add
  // traffic.
  return fmt::format("link add name {0} type bridge mcast_snooping 0\nlink set dev {0} up\n", name);
}

std::string add_inner_link(int leaf, int spine) {
  const std::string up = up_link(leaf, spine);
  const std::string down = down_link(spine, leaf);
  std::string out = fmt::format("link add name {} type veth peer name {}\n", up, down);
  out += fmt::format("link set dev {} master {}\n", up, leaf_name(leaf));
  out += fmt::format("link set dev {} master {}\n", down, spine_name(spine));
  const std::string_view many = spine == 0 ? "on" : "off";
  for (const std::string& port : {up, down}) {
    out += fmt::format(
        "link set dev {} type bridge_slave learning off flood off mcast_flood {} bcast_flood {}\n",
        port, many, many);
    out += fmt::format("link set dev {} up\n", port);
  }
  return out;
}

std::string rate_line(const std::string& device, std::int64_t rate_bits) {
  const std::int64_t burst = std::max(kLeastBurst, rate_bits / 8 / kBurstsPerSecond);
  return fmt::format("qdisc add dev {} root tbf rate {}bit burst {} latency 50ms\n", device,
                     rate_bits, burst);
}

}  // namespace

base::Status check_plan(const HostsPlan& plan) {
  const bool letters =
      std::all_of(plan.name.begin(), plan.name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (!letters || plan.name.empty() || plan.name.size() > kMostSetName) {
    return Error{Code::argument,
                 fmt::format("'{}' cannot name a set of hosts: take 1 to {} lower-case letters",
                             plan.name, kMostSetName)};
  }
  if (plan.hosts < 1 || plan.hosts > kMostHosts) {
    return Error{Code::argument,
                 fmt::format("{} hosts are too many or too few: 1 to {} can be made", plan.hosts,
                             kMostHosts)};
  }
  if (plan.shape == HostsShape::tree) {
    const int arity = tree_arity(plan);
    if (arity < 2 || arity * arity != plan.hosts) {
      return Error{Code::argument,
                   fmt::format("a tree has 4, 9, 16, 25 ... hosts (k leaf switches with k hosts "
                               "each), not {}",
                               plan.hosts)};
    }
  }
  if (plan.rate_bits != 0 && (plan.rate_bits < kLeastRate || plan.rate_bits > kMostRate)) {
    return Error{Code::argument,
                 fmt::format("a rate of {} is outside {} ... {}", format_rate(plan.rate_bits),
                             format_rate(kLeastRate), format_rate(kMostRate))};
  }
  return base::success();
}

base::Result<std::int64_t> parse_rate(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, number);
  if (wrong == std::errc() && number > 0) {
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    for (const RateUnit& each : kRateUnits) {
      if (unit == each.name && number <= kMostRate / each.bits) return number * each.bits;
    }
  }
  return Error{Code::argument,
               fmt::format("'{}' is not a rate: write 200mbit, 1gbit or 64kbit, at most {}", text,
                           format_rate(kMostRate))};
}

std::string format_rate(std::int64_t bits_per_second) {
  for (const RateUnit& unit : kRateUnits) {
    if (bits_per_second >= unit.bits && bits_per_second % unit.bits == 0) {
      return fmt::format("{}{}", bits_per_second / unit.bits, unit.name);
    }
  }
  return "0bit";
}

std::string host_name(const HostsPlan& plan, int host) {
  return fmt::format("{}{}", plan.name, host + 1);
}

std::string host_address(int host) { return fmt::format("10.77.0.{}", host + 1); }

std::string hosts_file(const HostsPlan& plan) {
  std::string out = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  for (int host = 0; host < plan.hosts; ++host) {
    out += fmt::format("{} {}\n", host_address(host), host_name(plan, host));
  }
  return out;
}

int tree_arity(const HostsPlan& plan) {
  if (plan.shape != HostsShape::tree) return 0;
  int arity = 0;
  while ((arity + 1) * (arity + 1) <= plan.hosts) ++arity;
  return arity;
}

TreePort leaf_port(int arity, int leaf, int host) {
  if (host / arity == leaf) return {true, host};
  return {false, host % arity};
}

TreePort spine_port(int arity, int host) { return {false, host / arity}; }

std::string switch_links(const HostsPlan& plan, const std::vector<pid_t>& host_pids) {
  const int arity = tree_arity(plan);
  std::string out = "link set dev lo up\n";
  if (arity == 0) out += add_switch("switch");
  for (int row = 0; row < arity; ++row)
    out += add_switch(leaf_name(row)) + add_switch(spine_name(row));
  for (int leaf = 0; leaf < arity; ++leaf) {
    for (int spine = 0; spine < arity; ++spine) out += add_inner_link(leaf, spine);
  }
  for (int host = 0; host < plan.hosts; ++host) {
    const std::string port = host_name(plan, host);
    out += fmt::format("link add name {} type veth peer name eth0 address {} netns {}\n", port,
                       host_mac(host), host_pids[static_cast<std::size_t>(host)]);
    out += fmt::format("link set dev {} master {}\n", port,
                       arity == 0 ? "switch" : leaf_name(host / arity));
    if (arity != 0) out += fmt::format("link set dev {} type bridge_slave learning off\n", port);
    out += fmt::format("link set dev {} up\n", port);
  }
  return out;
}

std::string switch_routes(const HostsPlan& plan) {
  const int arity = tree_arity(plan);
  std::string out;
  const auto add = [&out](int host, const std::string& port) {
    out += fmt::format("fdb add {} dev {} master static\n", host_mac(host), port);
  };
  for (int row = 0; row < arity; ++row) {
    for (int host = 0; host < plan.hosts; ++host) {
      const TreePort up = leaf_port(arity, row, host);
      add(host, up.to_host ? host_name(plan, host) : up_link(row, up.number));
      add(host, down_link(row, spine_port(arity, host).number));
    }
  }
  return out;
}

std::string switch_rates(const HostsPlan& plan) {
  if (plan.rate_bits == 0) return "";
  std::string out;
  for (const std::string& port : inner_ports(plan)) out += rate_line(port, plan.rate_bits);
  for (int host = 0; host < plan.hosts; ++host) {
    out += rate_line(host_name(plan, host), plan.rate_bits);
  }
  return out;
}

std::string host_links(int host) {
  // The default route carries multicast and unknown addresses, as on most machines. nodad: no other
  // host can have these addresses, and a tentative one cannot be bound.
  return fmt::format(
      "link set dev lo up\n"
      "link set dev eth0 up\n"
      "addr add {}/16 broadcast 10.77.255.255 dev eth0\n"
      "addr add fd77::{:x}/64 dev eth0 nodad\n"
      "route add default dev eth0\n",
      host_address(host), host + 1);
}

std::string host_rates(const HostsPlan& plan) {
  return plan.rate_bits == 0 ? "" : rate_line("eth0", plan.rate_bits);
}

}  // namespace unisono::tools

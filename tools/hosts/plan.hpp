// SPDX-License-Identifier: BSD-3-Clause
// HostsPlan: a set of test hosts as a value, and the text that creates it: batches for ip(8),
// bridge(8) and tc(8). There are two shapes. A *star* is one switch with all hosts. A *tree* is a
// k-ary 2-tree of k*k hosts, k leaf and k spine switches, each leaf linked with each spine. In a
// tree a packet goes up to the spine given by its destination (number modulo k), so every pair of
// hosts has one route. Broadcast and multicast use spine 0 only, which makes them a tree without
// loops. Pure functions; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace unisono::tools {

enum class HostsShape { star, tree };

struct HostsPlan {
  std::string name;  // of the set: lower-case letters; host i is name + (i + 1)
  int hosts = 0;
  HostsShape shape = HostsShape::star;
  std::int64_t rate_bits = 0;  // of every link, each way, per second; 0: unlimited
};

// An interface name has at most 15 characters, and 3 are for the number.
inline constexpr std::size_t kMostSetName = 8;
// One for each number of the address 10.77.0.x.
inline constexpr int kMostHosts = 250;

// The error says which values do not fit.
base::Status check_plan(const HostsPlan& plan);
// "200mbit", "1gbit", "64kbit": bits per second, or an error.
base::Result<std::int64_t> parse_rate(const std::string& text);
std::string format_rate(std::int64_t bits_per_second);

std::string host_name(const HostsPlan& plan, int host);
std::string host_address(int host);  // IPv4, without the length of the prefix
// /etc/hosts of every host.
std::string hosts_file(const HostsPlan& plan);

// Leaf and spine switches of a tree; 0 for a star.
int tree_arity(const HostsPlan& plan);

// A port of a tree's switch leads to a host, or to a switch of the other row.
struct TreePort {
  bool to_host = false;
  int number = 0;  // of the host, or of the switch in its row
  friend bool operator==(const TreePort&, const TreePort&) = default;
};
// The port to which a switch sends packets for `host`.
TreePort leaf_port(int arity, int leaf, int host);
TreePort spine_port(int arity, int host);

// Standard input for `ip -batch -`, `bridge -batch -` and `tc -batch -` where the switches are;
// `host_pids` hold the hosts' network namespaces.
std::string switch_links(const HostsPlan& plan, const std::vector<pid_t>& host_pids);
std::string switch_routes(const HostsPlan& plan);
std::string switch_rates(const HostsPlan& plan);
// The same on a host.
std::string host_links(int host);
std::string host_rates(const HostsPlan& plan);

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// Network list: which of a host's addresses a job may use, as a user writes it: interfaces,
// addresses and networks, separated by commas; `^` before one forbids it. "eth0,10.0.0.0/8" allows
// only those, "^docker0" everything else, "10.0.0.0/8,^10.9.0.0/16" all of a network but a part of
// it. The text comes from outside: it is bounded and checked. Value types; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::transport {

struct NetworkItem {
  bool forbidden = false;
  std::string interface;  // empty: a network
  IpAddress network;      // its bits beyond the prefix are zero
  int prefix_bits = 0;

  bool matches(std::string_view interface_name, const IpAddress& address) const;
  bool operator==(const NetworkItem&) const = default;
};

class NetworkList {
 public:
  // Nobody needs more; it bounds what every look-up walks through.
  static constexpr std::size_t kMostItems = 64;
  static constexpr std::size_t kMostText = 4096;

  // An empty text allows everything. Errors: argument, with the item that is wrong.
  static base::Result<NetworkList> parse(std::string_view text);

  // Whether an address of an interface may be used: nothing forbids it, and something names it
  // if anything is named at all.
  bool allows(std::string_view interface, const IpAddress& address) const;
  // The place of the first item that names it, so that users can say what they prefer; empty if no
  // item does.
  std::optional<std::size_t> preference(std::string_view interface, const IpAddress& address) const;

  const std::vector<NetworkItem>& items() const { return items_; }
  bool names_some() const;  // at least one item is not forbidden
  std::string text() const;
  bool operator==(const NetworkList&) const = default;

 private:
  std::vector<NetworkItem> items_;
};

}  // namespace unisono::transport

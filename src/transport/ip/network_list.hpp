// SPDX-License-Identifier: BSD-3-Clause
// Network list: the user's list of local addresses that a job may use. It holds interfaces,
// addresses and networks, separated by commas; `^` before one forbids it. "eth0,10.0.0.0/8" allows
// only those, "^docker0" everything else, "10.0.0.0/8,^10.9.0.0/16" a network without one of its
// parts. The text is untrusted: it is bounded and checked. Value types; any thread.
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
  // Far above any use; it bounds the work of each look-up.
  static constexpr std::size_t kMostItems = 64;
  static constexpr std::size_t kMostText = 4096;

  // An empty text allows everything. Errors: argument, with the item that is wrong.
  static base::Result<NetworkList> parse(std::string_view text);

  // Whether an address of an interface may be used. No item may forbid it, and if the list has
  // allowing items, one of them must name it.
  bool allows(std::string_view interface, const IpAddress& address) const;
  // The index of the first item that names it, so that users can state a preference. Empty if no
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

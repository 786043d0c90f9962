// SPDX-License-Identifier: BSD-3-Clause
// Reading and asking a network list (network_list.hpp). Control path.
#include "transport/ip/network_list.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Error wrong(std::string_view item, std::string_view why) {
  return {Code::argument,
          fmt::format("network list: \"{}\" {}; an item is an interface (eth0), an address "
                      "(10.0.0.1) or a network (10.0.0.0/8), with ^ in front to forbid it",
                      item.substr(0, 64), why)};
}

void clear_beyond(IpAddress& address, int prefix_bits) {
  for (int bit = prefix_bits; bit < address.bits(); ++bit) {
    address.bytes[static_cast<std::size_t>(bit / 8)] &=
        static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
}

// Interfaces may have dots in their names (VLANs), so a dot alone does not make an address.
bool looks_like_a_network(std::string_view item) {
  return item.find_first_of("/:") != std::string_view::npos ||
         item.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<NetworkItem> parse_network(std::string_view text) {
  NetworkItem item;
  const std::size_t slash = text.find('/');
  const Result<IpAddress> address = parse_ip(text.substr(0, slash));
  if (!address.ok()) return wrong(text, "is not an address in numbers");
  item.network = *address;
  item.prefix_bits = item.network.bits();
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char* const end = digits.data() + digits.size();
    const auto [rest, failure] = std::from_chars(digits.data(), end, item.prefix_bits);
    if (failure != std::errc{} || rest != end || item.prefix_bits < 0 ||
        item.prefix_bits > item.network.bits()) {
      return wrong(text, fmt::format("has no prefix from 0 to {}", item.network.bits()));
    }
  }
  clear_beyond(item.network, item.prefix_bits);
  return item;
}

Result<NetworkItem> parse_item(std::string_view text) {
  const bool forbidden = text.starts_with('^');
  const std::string_view name = trimmed(forbidden ? text.substr(1) : text);
  if (name.empty()) return wrong(text, "is empty");
  NetworkItem item;
  if (looks_like_a_network(name)) {
    UNISONO_ASSIGN(item, parse_network(name));
  } else {
    if (name.size() >= IFNAMSIZ) {
      return wrong(name,
                   fmt::format("is longer than a name of an interface ({} letters)", IFNAMSIZ - 1));
    }
    const auto is_printable = [](char letter) { return letter > ' ' && letter < 0x7f; };
    if (!std::all_of(name.begin(), name.end(), is_printable) ||
        name.find('^') != std::string_view::npos) {
      return wrong(name, "has letters that no interface has");
    }
    item.interface = name;
  }
  item.forbidden = forbidden;
  return item;
}

}  // namespace

bool NetworkItem::matches(std::string_view interface_name, const IpAddress& address) const {
  if (!interface.empty()) return interface == interface_name;
  if (address.family != network.family) return false;
  IpAddress masked = address;
  clear_beyond(masked, prefix_bits);
  return masked == network;
}

Result<NetworkList> NetworkList::parse(std::string_view text) {
  if (text.size() > kMostText) {
    return Error{Code::argument, fmt::format("network list: {} letters, where {} are the most",
                                             text.size(), kMostText)};
  }
  NetworkList list;
  if (trimmed(text).empty()) return list;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    UNISONO_ASSIGN(NetworkItem item, parse_item(trimmed(rest.substr(0, comma))));
    if (list.items_.size() == kMostItems) {
      return Error{Code::argument,
                   fmt::format("network list: more than {} items", NetworkList::kMostItems)};
    }
    list.items_.push_back(std::move(item));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

bool NetworkList::names_some() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const NetworkItem& item) { return !item.forbidden; });
}

std::optional<std::size_t> NetworkList::preference(std::string_view interface,
                                                   const IpAddress& address) const {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].forbidden && items_[i].matches(interface, address)) return i;
  }
  return std::nullopt;
}

bool NetworkList::allows(std::string_view interface, const IpAddress& address) const {
  for (const NetworkItem& item : items_) {
    if (item.forbidden && item.matches(interface, address)) return false;
  }
  return !names_some() || preference(interface, address).has_value();
}

std::string NetworkList::text() const {
  std::string result;
  for (const NetworkItem& item : items_) {
    if (!result.empty()) result += ',';
    if (item.forbidden) result += '^';
    if (!item.interface.empty()) {
      result += item.interface;
    } else {
      result += ip_text(item.network);
      if (item.prefix_bits != item.network.bits()) {
        result += fmt::format("/{}", item.prefix_bits);
      }
    }
  }
  return result;
}

}  // namespace unisono::transport

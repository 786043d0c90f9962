// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/rendezvous_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"
#include "bootstrap/kvs/key_value_store.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using transport::IpAddress;

constexpr char kBlankInValue = '~';  // a value has no blanks
constexpr std::string_view kAddress = "address";
constexpr std::string_view kError = "error";
static_assert(kSealedInValue * (2 * sizeof(SealedSecret) + 1) <= KeyValueStore::kMostValueBytes);

Error unreadable(std::string_view text) {
  return {Code::state, fmt::format("the launcher's key-value store returned \"{}\", which no rank "
                                   "of this version of Unisono has put there",
                                   text.substr(0, 64))};
}

// Removes the text up to the separator, and the separator; returns the former.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <class Bytes>
std::string hex_text(const Bytes& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

template <class Bytes>
std::optional<Bytes> parse_hex(std::string_view digits) {
  Bytes bytes{};
  if (digits.size() != 2 * bytes.size()) return {};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint8_t byte = 0;
    const char* const end = digits.data() + 2 * i + 2;
    const auto [rest, failure] = std::from_chars(digits.data() + 2 * i, end, byte, 16);
    if (failure != std::errc{} || rest != end) return {};
    bytes[i] = static_cast<typename Bytes::value_type>(byte);
  }
  return bytes;
}

}  // namespace

std::vector<IpAddress> reachable_addresses(std::span<const transport::LocalAddress> locals,
                                           const transport::NetworkList& allowed) {
  std::vector<IpAddress> result;
  for (const transport::LocalAddress& local : locals) {
    const IpAddress& address = local.address;
    if (address.is_loopback() || address.is_link_local()) continue;
    if (!allowed.allows(local.interface, address)) continue;
    if (result.size() < HostValue::kMostAddresses) result.push_back(address);
  }
  return result;
}

std::string format_value(const HostValue& value) {
  std::string text = fmt::format("{}/{}", hex_text(value.host), hex_text(value.key));
  char separator = '/';
  for (const IpAddress& address : value.addresses) {
    text += fmt::format("{}{}", separator, transport::ip_text(address));
    separator = ',';
  }
  return text;
}

Result<HostValue> parse_host_value(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() > KeyValueStore::kMostValueBytes) return unreadable(whole);
  const auto host = parse_hex<HostId>(take_part(text, '/'));
  const auto key = parse_hex<PublicKey>(take_part(text, '/'));
  if (!host || !key) return unreadable(whole);
  HostValue value{*host, *key, {}};
  while (!text.empty()) {
    const auto address = transport::parse_ip(take_part(text, ','));
    if (!address.ok() || value.addresses.size() == HostValue::kMostAddresses) {
      return unreadable(whole);
    }
    value.addresses.push_back(*address);
  }
  return value;
}

std::vector<IpAddress> addresses_of_other_hosts(const HostValue& own,
                                                std::span<const HostValue> values) {
  std::vector<HostId> seen{own.host};
  std::vector<IpAddress> result;
  for (const HostValue& value : values) {
    if (std::ranges::find(seen, value.host) != seen.end()) continue;
    seen.push_back(value.host);
    std::ranges::copy_if(value.addresses, std::back_inserter(result), [&](const IpAddress& one) {
      return std::ranges::find(own.addresses, one) == own.addresses.end();
    });
  }
  return result;
}

std::string format_value(const AddressValue& value) {
  if (const RendezvousAddress* address = std::get_if<RendezvousAddress>(&value)) {
    return fmt::format("{}/{}/{}", kAddress, transport::endpoint_text(address->endpoint),
                       hex_text(address->key));
  }
  const Error& error = std::get<Error>(value);
  std::string text = error.message;
  for (char& letter : text) {
    if (letter <= ' ' || letter >= 0x7f) letter = kBlankInValue;
  }
  text = fmt::format("{}/{}/{}", kError, static_cast<int>(error.code), text);
  return text.substr(0, KeyValueStore::kMostValueBytes);
}

Result<AddressValue> parse_address_value(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() > KeyValueStore::kMostValueBytes) return unreadable(whole);
  const std::string_view kind = take_part(text, '/');
  const std::string_view first = take_part(text, '/');
  if (kind == kAddress) {
    const auto endpoint = transport::parse_endpoint(first);
    const auto key = parse_hex<PublicKey>(text);
    if (!endpoint.ok() || endpoint->port == 0 || !key) return unreadable(whole);
    return AddressValue(RendezvousAddress{*endpoint, *key});
  }
  const std::optional<std::int64_t> code = base::parse_integer(first);
  if (kind != kError || !code || *code < static_cast<int>(Code::argument) ||
      *code > static_cast<int>(Code::cancelled)) {
    return unreadable(whole);
  }
  std::string message(text);
  std::ranges::replace(message, kBlankInValue, ' ');
  return AddressValue(Error{static_cast<Code>(*code), message});
}

std::string format_value(const SealedKeysValue& value) {
  std::string text;
  for (const SealedSecret& sealed : value) {
    if (!text.empty()) text += ',';
    text += hex_text(sealed);
  }
  return text;
}

Result<SealedKeysValue> parse_sealed_keys_value(std::string_view text) {
  const std::string_view whole = text;
  SealedKeysValue value;
  do {
    const auto sealed = parse_hex<SealedSecret>(take_part(text, ','));
    if (!sealed || value.size() == kSealedInValue) return unreadable(whole);
    value.push_back(*sealed);
  } while (!text.empty());
  return value;
}

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// Internet addresses: text and socket form (ip.hpp). Control path.
#include "transport/ip/ip.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Result;

// The longest numeric form that inet_pton() reads is shorter.
constexpr std::size_t kMostText = INET6_ADDRSTRLEN;

Error not_an_address(std::string_view text) {
  return {Code::argument, fmt::format("\"{}\" is not an address; write it in numbers, as in "
                                      "10.0.0.1 or fd00::1",
                                      text.substr(0, 2 * kMostText))};
}

// ff01 and ff02, ff11 and ff12: of one interface or one link.
bool is_link_wide_multicast(const IpAddress& address) {
  return address.family == Family::v6 && address.is_multicast() && (address.bytes[1] & 0x0f) <= 2;
}

}  // namespace

IpAddress ipv4_address(std::uint32_t address) {
  IpAddress result;
  std::memcpy(result.bytes.data(), &address, sizeof(address));
  return result;
}

bool IpAddress::is_loopback() const {
  if (family == Family::v4) return bytes[0] == 127;
  IpAddress one{Family::v6, {}};
  one.bytes[15] = 1;
  return *this == one;
}

bool IpAddress::is_link_local() const {
  if (family == Family::v4) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::is_multicast() const {
  return family == Family::v4 ? (bytes[0] & 0xf0) == 0xe0 : bytes[0] == 0xff;
}

Result<IpAddress> parse_ip(std::string_view text) {
  if (text.empty() || text.size() > kMostText) return not_an_address(text);
  const std::string terminated(text);
  IpAddress address;
  if (text.find(':') != std::string_view::npos) address.family = Family::v6;
  const int family = address.family == Family::v4 ? AF_INET : AF_INET6;
  // A zero byte inside would end the text early.
  if (terminated.find('\0') != std::string::npos ||
      inet_pton(family, terminated.c_str(), address.bytes.data()) != 1) {
    return not_an_address(text);
  }
  return address;
}

std::string ip_text(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = address.family == Family::v4 ? AF_INET : AF_INET6;
  inet_ntop(family, address.bytes.data(), text.data(), text.size());
  return text.data();
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  std::string_view host = text;
  std::string_view digits;
  const std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return not_an_address(text);
    host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (host.find(':') == std::string_view::npos) return not_an_address(text);
    if (!rest.empty() && !rest.starts_with(':')) return not_an_address(text);
    if (!rest.empty()) digits = rest.substr(1);
    if (!rest.empty() && digits.empty()) return not_an_address(text);
  } else if (colon != std::string_view::npos && text.find(':') == colon) {
    host = text.substr(0, colon);
    digits = text.substr(colon + 1);
    if (digits.empty()) return not_an_address(text);
  }
  Endpoint endpoint;
  UNISONO_ASSIGN(endpoint.address, parse_ip(host));
  if (!digits.empty()) {
    const char* const end = digits.data() + digits.size();
    const auto [rest, failure] = std::from_chars(digits.data(), end, endpoint.port);
    if (failure != std::errc{} || rest != end) {
      return Error{Code::argument, fmt::format("\"{}\" is not a port from 0 to 65535",
                                               digits.substr(0, 2 * kMostText))};
    }
  }
  return endpoint;
}

std::string endpoint_text(const Endpoint& endpoint) {
  return endpoint.address.family == Family::v4
             ? fmt::format("{}:{}", ip_text(endpoint.address), endpoint.port)
             : fmt::format("[{}]:{}", ip_text(endpoint.address), endpoint.port);
}

SocketAddress socket_address(const Endpoint& endpoint, unsigned interface_index) {
  SocketAddress result;
  const IpAddress& address = endpoint.address;
  if (address.family == Family::v4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof(v4.sin_addr));
    std::memcpy(&result.storage, &v4, sizeof(v4));
    result.length = sizeof(v4);
    return result;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof(v6.sin6_addr));
  if (address.is_link_local() || is_link_wide_multicast(address)) {
    v6.sin6_scope_id = interface_index;
  }
  std::memcpy(&result.storage, &v6, sizeof(v6));
  result.length = sizeof(v6);
  return result;
}

Endpoint endpoint_of(const sockaddr_storage& address) {
  Endpoint endpoint;
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    std::memcpy(endpoint.address.bytes.data(), &v4.sin_addr, sizeof(v4.sin_addr));
    endpoint.port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof(v6));
    endpoint.address.family = Family::v6;
    std::memcpy(endpoint.address.bytes.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
    endpoint.port = ntohs(v6.sin6_port);
  }
  return endpoint;
}

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/address.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <system_error>

#include "bootstrap/identity.hpp"

namespace unisono::bootstrap {

using base::Code;
using base::Error;
using base::Result;

Result<Address> parse_address(std::string_view text) {
  const Error wrong{Code::argument,
                    fmt::format("UNISONO_RENDEZVOUS=\"{}\" is not valid: it takes unix:@NAME (at "
                                "most {} bytes) or tcp:HOST:PORT",
                                text, kMostNameBytes)};
  if (text.starts_with("unix:@")) {
    const std::string_view name = text.substr(6);
    if (name.empty() || name.size() > kMostNameBytes) return wrong;
    return Address{Address::Kind::unix_name, std::string(name), 0};
  }
  if (!text.starts_with("tcp:")) return wrong;
  text.remove_prefix(4);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failure != std::errc{} || rest != digits.data() + digits.size()) return wrong;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return wrong;
  return Address{Address::Kind::tcp, std::string(host), port};
}

std::string address_text(const Address& address) {
  switch (address.kind) {
    case Address::Kind::unix_name:
      return fmt::format("unix:@{}", address.name);
    case Address::Kind::unix_prefix:
      return fmt::format("unix:@{}-*", address.name);
    case Address::Kind::tcp:
      return address.name.find(':') == std::string::npos
                 ? fmt::format("tcp:{}:{}", address.name, address.port)
                 : fmt::format("tcp:[{}]:{}", address.name, address.port);
  }
  return "";
}

Result<Address> random_unix_address() {
  UNISONO_ASSIGN(const std::uint64_t number, random_number());
  return Address{Address::Kind::unix_name, fmt::format("unisono-{}-{:016x}", geteuid(), number), 0};
}

Address relay_address(std::uint64_t relay_socket) {
  return {Address::Kind::unix_name, fmt::format("unisono-relay-{:016x}", relay_socket), 0};
}

}  // namespace unisono::bootstrap

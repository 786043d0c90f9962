// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of the users' network lists and endpoints: an accepted one stays within its limits, means
// the same when it is written and read again, and can be queried.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "transport/ip/ip.hpp"
#include "transport/ip/network_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::transport;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  if (const auto endpoint = parse_endpoint(text); endpoint.ok()) {
    const auto again = parse_endpoint(endpoint_text(*endpoint));
    UNISONO_CHECK(again.ok() && *again == *endpoint, "an endpoint changed in a round trip");
    UNISONO_CHECK(endpoint_of(socket_address(*endpoint, 1).storage) == *endpoint, "socket form");
  } else {
    UNISONO_CHECK(!endpoint.error().message.empty(), "an error without a message");
  }

  const auto list = NetworkList::parse(text);
  if (!list.ok()) {
    UNISONO_CHECK(list.error().message.size() < 512, "a message as long as the text");
    return 0;
  }
  UNISONO_CHECK(list->items().size() <= NetworkList::kMostItems, "items of a list");
  const auto again = NetworkList::parse(list->text());
  UNISONO_CHECK(again.ok() && *again == *list, "a list changed in a round trip");
  for (const char* address : {"10.0.0.1", "127.0.0.1", "fd00::1", "255.255.255.255"}) {
    const IpAddress one = *parse_ip(address);
    const bool allowed = list->allows("eth0", one);
    UNISONO_CHECK(!allowed || !list->names_some() || list->preference("eth0", one).has_value(),
                  "allowed, but by what?");
  }
  return 0;
}

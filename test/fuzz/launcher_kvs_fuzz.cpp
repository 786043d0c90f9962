// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of a launcher's data: lines of PMI's wire protocol, and the values of other ranks.
// Accepted data means the same after a round trip.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "bootstrap/kvs/key_value_store.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "bootstrap/launchers/pmi_line.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::bootstrap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  if (const auto line = parse_pmi_line(text); line.ok()) {
    UNISONO_CHECK(text.size() <= PmiLine::kMostBytes && !line->command.empty(), "a line of PMI");
    for (const auto& [name, value] : line->values) {
      const std::string written = pmi_line(line->command, {{name, value}});
      const auto again = parse_pmi_line(std::string_view(written).substr(0, written.size() - 1));
      UNISONO_CHECK(again.ok() && again->value(name) == value, "a value changed in a round trip");
    }
  }
  if (const auto value = parse_host_value(text); value.ok()) {
    UNISONO_CHECK(value->addresses.size() <= HostValue::kMostAddresses, "addresses of a value");
    const auto again = parse_host_value(format_value(*value));
    UNISONO_CHECK(again.ok() && *again == *value, "a host's value changed in a round trip");
  }
  if (const auto sealed = parse_sealed_keys_value(text); sealed.ok()) {
    UNISONO_CHECK(!sealed->empty() && sealed->size() <= kSealedInValue, "keys of a value");
    const auto again = parse_sealed_keys_value(format_value(*sealed));
    UNISONO_CHECK(again.ok() && *again == *sealed, "sealed keys changed in a round trip");
  }
  const auto address = parse_address_value(text);
  if (!address.ok()) {
    UNISONO_CHECK(address.error().message.size() < 256, "a message as long as the text");
    return 0;
  }
  const std::string written = format_value(*address);
  UNISONO_CHECK(written.size() <= KeyValueStore::kMostValueBytes, "a value that is too long");
  const auto again = parse_address_value(written);
  UNISONO_CHECK(again.ok() && again->index() == address->index(),
                "an address changed in a round trip");
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of machine files. An accepted one is the same after it was written and read again, and has
// finite costs. A refusal gives file, line and what was expected.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "model/machine_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto machine = parse_machine(text, "fuzz.json");
  if (!machine.ok()) {
    UNISONO_CHECK(machine.error().message.starts_with("fuzz.json:"), "an error without its place");
    UNISONO_CHECK(machine.error().message.size() < 2048, "a message as long as the text");
    return 0;
  }
  const auto again = parse_machine(machine_text(*machine), "again.json");
  UNISONO_CHECK(again.ok() && *again == *machine, "a machine changed in a round trip");
  for (const std::int64_t bytes : {0, 1, 64, 1 << 20}) {
    const PathParameters& path = local_path(*machine, Engine::inline_, bytes);
    const double sum =
        path.latency.ns() + path.reception.ns(bytes) +
        reduction_ns(path, unisono::arith::Operator::sum, unisono::arith::Type::float64, bytes) +
        start_up_ns(remote_path(*machine, Engine::nic, bytes), std::nullopt);
    UNISONO_CHECK(std::isfinite(sum) && sum >= 0, "a cost that is no time");
  }
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as UNISONO_ALGORITHM. The parser never crashes, and a refusal has a message with the
// position. An accepted text survives print() and another reading, and gives every call an
// algorithm that can be built.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "select/override.hpp"
#include "select/select.hpp"

namespace {

using unisono::schedule::Collective;
using unisono::schedule::Shape;

void choose_all(const unisono::select::Overrides& overrides) {
  using namespace unisono;
  for (int c = 0; c < schedule::kCollectiveCount; ++c) {
    for (const int ranks : {1, 6}) {
      const auto collective = static_cast<Collective>(c);
      Shape shape{.collective = collective, .ranks = ranks};
      shape.count = collective == Collective::barrier ? 0 : 700;
      shape.ordered = schedule::is_reduction(collective) && ranks == 6;
      const auto choice = select::choose(shape, {.element_bytes = 8}, overrides);
      const auto built = algorithm::build(*choice.algorithm, shape, choice.parameters, 0);
      UNISONO_CHECK(built.ok(), choice.algorithm->name);
      UNISONO_CHECK(!choice.reason.empty(), choice.algorithm->name);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::select;
  const auto overrides = parse_overrides({reinterpret_cast<const char*>(data), size});
  if (!overrides.ok()) {
    const std::string& message = overrides.error().message;
    UNISONO_CHECK(message.starts_with("at character ") || message.starts_with("it leaves no "),
                  message);
    return 0;
  }
  const std::string text = print(*overrides);
  const auto again = parse_overrides(text);
  UNISONO_CHECK(again.ok(), text);
  UNISONO_CHECK(*again == *overrides, text);
  UNISONO_CHECK(print(*again) == text, text);
  choose_all(*overrides);
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a schedule text. parse() never crashes; an accepted text survives print() and
// parse(); a picture and a proof of it never crash either.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "check/check.hpp"
#include "schedule/text.hpp"

namespace {

using unisono::schedule::Schedule;

// A proof's memory grows with the elements at the worst, and a text of few bytes can ask for many.
constexpr std::int64_t kMaxElements = 1024;

bool is_small(const Schedule& schedule) {
  std::int64_t largest = schedule.scratch_count;
  for (const auto& slot : schedule.slots) largest = std::max(largest, slot.count);
  const auto& shape = schedule.shape;
  for (int rank = 0; shape.blocks.given() && rank < shape.ranks; ++rank) {
    largest = std::max({largest, input_count(shape, rank), output_count(shape, rank)});
  }
  return shape.count <= kMaxElements && largest <= kMaxElements;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto set = unisono::schedule::parse({reinterpret_cast<const char*>(data), size});
  if (!set.ok()) {
    UNISONO_CHECK(!set.error().message.empty(), "an error without a message");
    return 0;
  }
  const std::string text = print(set.value());
  const auto again = unisono::schedule::parse(text);
  UNISONO_CHECK(again.ok(), text);
  UNISONO_CHECK(again.value() == set.value(), text);
  UNISONO_CHECK(print(again.value()) == text, text);
  UNISONO_CHECK(!graphviz(set.value()).empty(), text);

  for (const Schedule& schedule : set.value()) {
    if (!is_small(schedule)) return 0;
  }
  for (const auto& violation : unisono::check::prove(set.value())) {
    UNISONO_CHECK(!violation.message.empty(), unisono::check::rule_name(violation.rule));
  }
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// The loops of elements.hpp. Most tests are optimized little, so that their copies of the inline
// functions are slow; `flatten` has the loops use none of these, whichever the linker keeps.
// For tests only; any thread.
#include "harness/elements.hpp"

namespace unisono::harness {

[[gnu::flatten]] std::vector<Element> reference(TypedOp pair, int ranks, std::int64_t count) {
  std::vector<Element> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Element sum = sample(pair, 0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      sum = combine(pair.op, pair.type, sum, sample(pair, rank, i));
    }
    result[static_cast<std::size_t>(i)] = sum;
  }
  return result;
}

[[gnu::flatten]] void store_samples(TypedOp pair, int rank, std::int64_t count, void* target) {
  auto* at = static_cast<unsigned char*>(target);
  const std::size_t size = size_of(pair.type);
  for (std::int64_t i = 0; i < count; ++i, at += size) {
    store(pair.type, at, sample(pair, rank, i));
  }
}

[[gnu::flatten]] std::int64_t first_unlike(unisono_type_t type, const void* found,
                                           std::span<const Element> wanted) {
  const auto* at = static_cast<const unsigned char*>(found);
  const std::size_t size = size_of(type);
  std::int64_t index = 0;
  for (const Element& each : wanted) {
    if (!(load(type, at) == each)) break;
    at += size;
    ++index;
  }
  return index;
}

[[gnu::flatten]] std::int64_t first_unlike_sample(TypedOp pair, int rank, const void* found,
                                                  std::int64_t count) {
  const auto* at = static_cast<const unsigned char*>(found);
  const std::size_t size = size_of(pair.type);
  std::int64_t index = 0;
  for (; index < count; ++index, at += size) {
    if (!(load(pair.type, at) == sample(pair, rank, index))) break;
  }
  return index;
}

}  // namespace unisono::harness

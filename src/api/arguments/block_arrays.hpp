// SPDX-License-Identifier: BSD-3-Clause
// One buffer's arrays of counts and displacements, with an entry for each rank: read once, checked,
// and copied, because they stay the caller's. Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/objects.hpp"
#include "api/registry.hpp"
#include "base/result.hpp"
#include "plan/call.hpp"

namespace unisono::api {

// Byte counts of whole vectors stay far from where 64 bits end.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

template <class... Parts>
base::Error wrong_argument(fmt::format_string<Parts...> format, Parts&&... parts) {
  return {base::Code::argument, fmt::format(format, std::forward<Parts>(parts)...)};
}

// The arrays, and the meaning of their numbers.
struct ArraySource {
  const BlockArray& arrays;
  int ranks;
  std::int64_t element_bytes;
  std::vector<TypeEntry> types{};  // of each block, if types differ
};

// In elements; in bytes if blocks have their own types.
struct ReadBlocks {
  std::vector<std::int64_t> counts;
  plan::Displacements places;  // null: packed
  std::int64_t extent = 0;     // from the buffer's start to the end of its last block
};

// The types of the blocks.
base::Result<std::vector<TypeEntry>> read_types(const BlockArray& arrays, int ranks);
base::Result<std::vector<std::int64_t>> read_counts(const ArraySource& source);

// The blocks of an output must not overlap; those of an input may.
enum class Overlap : std::uint8_t { allowed, refused };
base::Result<ReadBlocks> read_places(const ArraySource& source, std::vector<std::int64_t> counts,
                                     Overlap overlap);

}  // namespace unisono::api

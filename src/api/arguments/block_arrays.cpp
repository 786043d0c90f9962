// SPDX-License-Identifier: BSD-3-Clause
#include "api/arguments/block_arrays.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace unisono::api {
namespace {

using base::Result;
using base::Status;
using Numbers = std::vector<std::int64_t>;

std::string_view unit(const ArraySource& source) {
  return source.types.empty() ? "elements" : "bytes";
}

Status check_disjoint(const ArraySource& source, const Numbers& counts, const Numbers& places) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [&](std::size_t r) { return counts[r] == 0; });
  std::ranges::sort(order, {}, [&](std::size_t r) { return places[r]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t one = order[i - 1];
    const std::size_t next = order[i];
    if (places[one] + counts[one] <= places[next]) continue;
    return wrong_argument(
        "the blocks of ranks {} and {} overlap in the output: {} {} from displacement {}, and {} "
        "from {}",
        one, next, counts[one], unit(source), places[one], counts[next], places[next]);
  }
  return base::success();
}

std::int64_t extent_of(const Numbers& counts, const Numbers& places) {
  std::int64_t extent = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) extent = std::max(extent, places[r] + counts[r]);
  }
  return extent;
}

}  // namespace

Result<std::vector<TypeEntry>> read_types(const BlockArray& arrays, int ranks) {
  if (arrays.types == nullptr) {
    return wrong_argument("{}types is NULL; it must hold one type for each of the {} ranks",
                          arrays.prefix, ranks);
  }
  std::vector<TypeEntry> types;
  for (int r = 0; r < ranks; ++r) {
    const auto type = find_type(arrays.types[r]);
    if (!type) {
      return base::Error{
          base::Code::type,
          fmt::format("{}types[{}] is {}, which is unknown; use a UNISONO_ constant or a type of "
                      "unisono_type_create",
                      arrays.prefix, r, arrays.types[r])};
    }
    types.push_back(*type);
  }
  return types;
}

Result<Numbers> read_counts(const ArraySource& source) {
  const BlockArray& arrays = source.arrays;
  if (arrays.counts == nullptr) {
    return wrong_argument("{}counts is NULL; it must hold one count for each of the {} ranks",
                          arrays.prefix, source.ranks);
  }
  Numbers counts(arrays.counts, arrays.counts + source.ranks);
  std::int64_t left = kMostBytes;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < 0) {
      return wrong_argument("{}counts[{}] is {}; it must be 0 or more", arrays.prefix, r,
                            counts[r]);
    }
    const std::int64_t bytes = source.types.empty() ? source.element_bytes : source.types[r].bytes;
    if (counts[r] > left / bytes) {
      return wrong_argument(
          "{0}counts[0] to {0}counts[{1}] of {2} byte elements overflow (limit {3} bytes)",
          arrays.prefix, r, bytes, kMostBytes);
    }
    left -= counts[r] * bytes;
    if (!source.types.empty()) counts[r] *= bytes;
  }
  return counts;
}

Result<ReadBlocks> read_places(const ArraySource& source, Numbers counts, Overlap overlap) {
  const BlockArray& arrays = source.arrays;
  ReadBlocks blocks;
  blocks.counts = std::move(counts);
  if (arrays.displacements == nullptr) return blocks;
  const Numbers places(arrays.displacements, arrays.displacements + source.ranks);
  const std::int64_t most = kMostBytes / source.element_bytes;
  for (std::size_t r = 0; r < places.size(); ++r) {
    if (places[r] < 0) {
      return wrong_argument("{}displacements[{}] is {}; it must be 0 or more", arrays.prefix, r,
                            places[r]);
    }
    if (places[r] <= most - blocks.counts[r]) continue;
    return wrong_argument(
        "{}displacements[{}] is {}: {} {} ({} bytes each) from there overflow (limit {} bytes)",
        arrays.prefix, r, places[r], blocks.counts[r], unit(source), source.element_bytes,
        kMostBytes);
  }
  if (overlap == Overlap::refused) UNISONO_TRY(check_disjoint(source, blocks.counts, places));
  blocks.extent = extent_of(blocks.counts, places);
  blocks.places = std::make_shared<const Numbers>(places);
  return blocks;
}

}  // namespace unisono::api

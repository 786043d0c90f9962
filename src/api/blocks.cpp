// SPDX-License-Identifier: BSD-3-Clause
#include "api/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace unisono::api {
namespace {

using base::Error;
using base::Result;
using base::Status;

template <class... Parts>
Error wrong(fmt::format_string<Parts...> format, Parts&&... parts) {
  return {base::Code::argument, fmt::format(format, std::forward<Parts>(parts)...)};
}

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

Result<std::vector<std::int64_t>> read_counts(const BlockArrays& arrays, int ranks,
                                              std::int64_t element_bytes) {
  if (arrays.counts == nullptr) {
    return wrong("counts is NULL; it must hold one count for each of the {} ranks", ranks);
  }
  std::vector<std::int64_t> counts(arrays.counts, arrays.counts + ranks);
  std::int64_t left = kMostBytes / element_bytes;
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t count = counts[at(r)];
    if (count < 0) return wrong("counts[{}] is {}; it must be 0 or more", r, count);
    if (count > left) {
      return wrong("counts[0] to counts[{}] of {} byte elements overflow (limit {} bytes)", r,
                   element_bytes, kMostBytes);
    }
    left -= count;
  }
  return counts;
}

Result<std::vector<bool>> read_receivers(const BlockArrays& arrays, int ranks) {
  std::vector<bool> receivers;
  for (int r = 0; arrays.receives != nullptr && r < ranks; ++r) {
    const int mark = arrays.receives[r];
    if (mark != 0 && mark != 1) {
      return wrong(
          "receives[{}] is {}; it must be 1 for a rank that gets the blocks, and 0 for one that "
          "does not",
          r, mark);
    }
    receivers.push_back(mark == 1);
  }
  return receivers;
}

Status check_disjoint(const std::vector<std::int64_t>& counts,
                      const std::vector<std::int64_t>& places) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [&](std::size_t r) { return counts[r] == 0; });
  std::ranges::sort(order, {}, [&](std::size_t r) { return places[r]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t one = order[i - 1];
    const std::size_t next = order[i];
    if (places[one] + counts[one] <= places[next]) continue;
    return wrong(
        "the blocks of ranks {} and {} overlap in the output: {} elements from displacement {}, "
        "and {} from {}",
        one, next, counts[one], places[one], counts[next], places[next]);
  }
  return base::success();
}

Result<group::Displacements> read_places(const BlockArrays& arrays,
                                         const std::vector<std::int64_t>& counts,
                                         std::int64_t element_bytes) {
  if (arrays.displacements == nullptr) return group::Displacements{};
  const std::vector<std::int64_t> places(arrays.displacements,
                                         arrays.displacements + counts.size());
  const std::int64_t most = kMostBytes / element_bytes;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (places[r] < 0) return wrong("displacements[{}] is {}; it must be 0 or more", r, places[r]);
    if (places[r] <= most - counts[r]) continue;
    return wrong(
        "displacements[{}] is {}: {} elements of {} bytes from there overflow (limit {} "
        "bytes)",
        r, places[r], counts[r], element_bytes, kMostBytes);
  }
  UNISONO_TRY(check_disjoint(counts, places));
  return std::make_shared<const std::vector<std::int64_t>>(places);
}

std::int64_t extent_of(const std::vector<std::int64_t>& counts,
                       const std::vector<std::int64_t>& places) {
  std::int64_t extent = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) extent = std::max(extent, places[r] + counts[r]);
  }
  return extent;
}

}  // namespace

Result<CheckedBlocks> check_blocks(const Arguments& arguments, int rank, int ranks,
                                   std::int64_t element_bytes) {
  const BlockArrays& arrays = *arguments.blocks;
  UNISONO_ASSIGN(const std::vector<std::int64_t> counts, read_counts(arrays, ranks, element_bytes));
  UNISONO_ASSIGN(std::vector<bool> receivers, read_receivers(arrays, ranks));
  const bool gives_count = arguments.collective != schedule::Collective::reduce_scatter;
  if (gives_count && arguments.input != UNISONO_IN_PLACE && arguments.count != counts[at(rank)]) {
    return wrong("count is {}, but counts[{}], which is this rank's, is {}; they must be equal",
                 arguments.count, rank, counts[at(rank)]);
  }
  const bool has_output = receivers.empty() || receivers[at(rank)];
  CheckedBlocks checked;
  UNISONO_ASSIGN(checked.blocks, schedule::Blocks::of_ranks(counts, std::move(receivers)));
  if (has_output) {
    UNISONO_ASSIGN(checked.places, read_places(arrays, counts, element_bytes));
  }
  checked.extent =
      checked.places == nullptr ? checked.blocks.total() : extent_of(counts, *checked.places);
  return checked;
}

}  // namespace unisono::api

// SPDX-License-Identifier: BSD-3-Clause
// Shape: what a collective is asked to do, free of addresses, datatypes and bytes. From a shape, an
// algorithm writes each rank's schedule, and check/ knows what every rank's output has to be.
// Value types; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unisono::schedule {

enum class Collective : std::uint8_t { barrier, broadcast, reduce, allreduce, allgather };
inline constexpr int kCollectiveCount = 5;

std::string_view collective_name(Collective collective);
std::optional<Collective> collective_from_name(std::string_view name);

inline bool is_rooted(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce;
}
inline bool is_reduction(Collective c) {
  return c == Collective::reduce || c == Collective::allreduce;
}

struct Shape {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int root = 0;            // 0 where the collective has none
  std::int64_t count = 0;  // elements: of the vector; for allgather, of one rank's block
  bool ordered = false;    // reductions: the operator does not commute, keep the order of ranks

  bool operator==(const Shape&) const = default;
};

// How many elements a rank's input and output hold. A broadcast has its input at the root and its
// output everywhere else; a reduce has its output at the root only.
std::int64_t input_count(const Shape& shape, int rank);
std::int64_t output_count(const Shape& shape, int rank);

// One rank's part of a vector that consists of a block per rank, in the order of ranks.
struct Block {
  std::int64_t offset = 0, count = 0;  // elements

  bool operator==(const Block&) const = default;
};
// allgather: what `rank` gives, as a part of everyone's output.
Block block(const Shape& shape, int rank);

// In place: the input lies inside the output, at this element of it. A schedule must be right
// with and without (check/ proves both). nullopt where the collective has no in-place form at
// this rank (barrier, broadcast, non-root of a reduce).
std::optional<std::int64_t> in_place_offset(const Shape& shape, int rank);

}  // namespace unisono::schedule

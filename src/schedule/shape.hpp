// SPDX-License-Identifier: BSD-3-Clause
// Shape: what a collective is asked to do, free of addresses, datatypes and bytes. From a shape, an
// algorithm writes each rank's schedule, and check/ knows what every rank's output has to be.
// Value types; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "schedule/blocks.hpp"
#include "topology/host_map.hpp"

namespace unisono::schedule {

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  allgather,
  gather,
  scatter,
  alltoall,
  reduce_scatter,
  scan,
  exscan,
  many_to_many,
};
inline constexpr int kCollectiveCount = 12;

std::string_view collective_name(Collective collective);
std::optional<Collective> collective_from_name(std::string_view name);

inline bool is_rooted(Collective c) {
  return c == Collective::broadcast || c == Collective::reduce || c == Collective::gather ||
         c == Collective::scatter;
}
inline bool is_reduction(Collective c) {
  return c == Collective::reduce || c == Collective::allreduce || c == Collective::reduce_scatter ||
         c == Collective::scan || c == Collective::exscan;
}
// Whether the vectors consist of one block for each pair of ranks, instead of one for each rank.
inline bool has_pairs(Collective c) { return c == Collective::alltoall; }
inline bool has_blocks(Collective c) {
  return c == Collective::allgather || c == Collective::gather || c == Collective::scatter ||
         c == Collective::reduce_scatter || c == Collective::many_to_many || has_pairs(c);
}

struct Shape {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int root = 0;               // 0 if the collective has none
  std::int64_t count = 0;     // elements of the vector, or of each block; 0 if `blocks` are given
  bool ordered = false;       // reductions: the operator does not commute, keep the order of ranks
  Blocks blocks{};            // if blocks differ in length
  topology::HostMap hosts{};  // if ranks are on several hosts
  bool exact = false;         // reductions: no partial results, each output by one sum step
  bool by_one = false;        // reductions: one rank alone applies the operator

  bool operator==(const Shape&) const = default;
};

// Why the blocks do not fit the rest of the shape; empty if they do.
std::string_view blocks_fault(const Shape& shape);
// The same for the hosts.
std::string_view hosts_fault(const Shape& shape);

// The number of elements in a rank's input and output. A broadcast has its input at the root and
// its output at all other ranks. A reduce or gather has its output at the root only. Rank 0 of an
// exscan gets nothing, and neither do ranks of a many_to_many that are no receivers.
std::int64_t input_count(const Shape& shape, int rank);
std::int64_t output_count(const Shape& shape, int rank);

// The block of `rank` in the vector of all ranks' blocks. It is the rank's input of an allgather,
// gather or many_to_many, and its output of a scatter or reduce_scatter.
Block block(const Shape& shape, int rank);
// `ranks` neighbouring blocks as one.
Block neighbouring_blocks(const Shape& shape, int first, int ranks);
std::int64_t whole_count(const Shape& shape);  // all of them

// alltoall: the block of a pair, in the input of `from` and in the output of `to`.
Block sent_block(const Shape& shape, int from, int to);
Block received_block(const Shape& shape, int from, int to);

// many_to_many: whether the rank gets all blocks.
bool receives(const Shape& shape, int rank);

// In place: input and output lie in one buffer, each from this element of it. A schedule must be
// right with and without (check/ proves both). nullopt if the collective has no in-place form at
// this rank. This holds if the rank has no input or no output, and for an alltoall with asymmetric
// counts.
struct InPlace {
  std::int64_t input = 0, output = 0;

  bool operator==(const InPlace&) const = default;
};
std::optional<InPlace> in_place(const Shape& shape, int rank);

}  // namespace unisono::schedule

// SPDX-License-Identifier: BSD-3-Clause
#include "check/definition.hpp"

#include "base/check.hpp"

namespace unisono::check {
namespace {

using schedule::Block;
using schedule::Collective;
using schedule::Shape;

// The block that holds an element, where the blocks lie in rank order: the last that begins at or
// before it.
template <class BlockOf>
int holder(int ranks, const BlockOf& block_of, std::int64_t element) {
  int first = 0, beyond = ranks;
  while (beyond - first > 1) {
    const int middle = first + (beyond - first) / 2;
    (block_of(middle).offset <= element ? first : beyond) = middle;
  }
  return first;
}

}  // namespace

Definition definition(const Shape& shape, int rank, std::int64_t element) {
  const int last = shape.ranks - 1;
  const std::int64_t outputs = schedule::output_count(shape, rank);
  switch (shape.collective) {
    case Collective::barrier:
      break;
    case Collective::broadcast:
      return {shape.root, shape.root, element, outputs};
    case Collective::reduce:
    case Collective::allreduce:
      return {0, last, element, outputs};
    case Collective::scan:
      return {0, rank, element, outputs};
    case Collective::exscan:
      return {0, rank - 1, element, outputs};
    case Collective::allgather:
    case Collective::gather:
    case Collective::many_to_many: {
      const auto block_of = [&](int r) { return schedule::block(shape, r); };
      const int origin = holder(shape.ranks, block_of, element);
      const Block block = block_of(origin);
      return {origin, origin, element - block.offset, block.offset + block.count};
    }
    case Collective::scatter:
      return {shape.root, shape.root, schedule::block(shape, rank).offset + element, outputs};
    case Collective::reduce_scatter:
      return {0, last, schedule::block(shape, rank).offset + element, outputs};
    case Collective::alltoall: {
      const auto block_of = [&](int r) { return schedule::received_block(shape, r, rank); };
      const int origin = holder(shape.ranks, block_of, element);
      const Block block = block_of(origin);
      const Block sent = schedule::sent_block(shape, origin, rank);
      return {origin, origin, sent.offset + element - block.offset, block.offset + block.count};
    }
  }
  UNISONO_CHECK(false, "an output element of a collective without output");
  return {};
}

}  // namespace unisono::check

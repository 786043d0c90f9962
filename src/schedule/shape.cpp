// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/shape.hpp"

#include <array>

namespace unisono::schedule {
namespace {

constexpr std::array<std::string_view, kCollectiveCount> kNames = {
    "barrier", "broadcast", "reduce",         "allreduce", "allgather", "gather",
    "scatter", "alltoall",  "reduce_scatter", "scan",      "exscan",    "many_to_many"};

// Whether the rank sends as many elements to each other rank as it receives from it.
bool is_symmetric_at(const Shape& shape, int rank) {
  if (!shape.blocks.given()) return true;
  for (int peer = 0; peer < shape.ranks; ++peer) {
    if (sent_block(shape, rank, peer) != received_block(shape, peer, rank)) return false;
  }
  return true;
}

}  // namespace

std::string_view collective_name(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

std::optional<Collective> collective_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::string_view blocks_fault(const Shape& shape) {
  if (!shape.blocks.given()) return {};
  if (!has_blocks(shape.collective)) return "the collective has no blocks";
  if (shape.count != 0) return "a count beside the counts of blocks: leave it at 0";
  if (shape.blocks.are_pairs() != has_pairs(shape.collective)) {
    return shape.blocks.are_pairs() ? "blocks for each pair of ranks: give one for each rank"
                                    : "blocks for each rank: give one for each pair of ranks";
  }
  if (shape.blocks.ranks() != shape.ranks) return "blocks for another number of ranks";
  if (!shape.blocks.all_receive() && shape.collective != Collective::many_to_many) {
    return "only a many_to_many has receivers";
  }
  return {};
}

std::string_view hosts_fault(const Shape& shape) {
  if (!shape.hosts.given() || shape.hosts.ranks() == shape.ranks) return {};
  return "the hosts are of another number of ranks";
}

std::int64_t input_count(const Shape& shape, int rank) {
  switch (shape.collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return rank == shape.root ? shape.count : 0;
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan:
      return shape.count;
    case Collective::allgather:
    case Collective::gather:
    case Collective::many_to_many:
      return block(shape, rank).count;
    case Collective::scatter:
      return rank == shape.root ? whole_count(shape) : 0;
    case Collective::alltoall:
      return shape.blocks.given() ? shape.blocks.sent_total(rank) : whole_count(shape);
    case Collective::reduce_scatter:
      return whole_count(shape);
  }
  return 0;
}

std::int64_t output_count(const Shape& shape, int rank) {
  switch (shape.collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return rank == shape.root ? 0 : shape.count;
    case Collective::reduce:
      return rank == shape.root ? shape.count : 0;
    case Collective::allreduce:
    case Collective::scan:
      return shape.count;
    case Collective::exscan:
      return rank == 0 ? 0 : shape.count;
    case Collective::allgather:
      return whole_count(shape);
    case Collective::gather:
      return rank == shape.root ? whole_count(shape) : 0;
    case Collective::many_to_many:
      return receives(shape, rank) ? whole_count(shape) : 0;
    case Collective::scatter:
    case Collective::reduce_scatter:
      return block(shape, rank).count;
    case Collective::alltoall:
      return shape.blocks.given() ? shape.blocks.received_total(rank) : whole_count(shape);
  }
  return 0;
}

Block block(const Shape& shape, int rank) {
  if (shape.blocks.given()) return shape.blocks.of(rank);
  return {.offset = shape.count * rank, .count = shape.count};
}

Block neighbouring_blocks(const Shape& shape, int first, int ranks) {
  if (ranks == 0) return {};
  const Block last = block(shape, first + ranks - 1);
  const std::int64_t begin = block(shape, first).offset;
  return {.offset = begin, .count = last.offset + last.count - begin};
}

std::int64_t whole_count(const Shape& shape) {
  return shape.blocks.given() ? shape.blocks.total() : shape.count * shape.ranks;
}

Block sent_block(const Shape& shape, int from, int to) {
  if (shape.blocks.given()) return shape.blocks.sent(from, to);
  return {.offset = shape.count * to, .count = shape.count};
}

Block received_block(const Shape& shape, int from, int to) {
  if (shape.blocks.given()) return shape.blocks.received(from, to);
  return {.offset = shape.count * from, .count = shape.count};
}

bool receives(const Shape& shape, int rank) {
  return !shape.blocks.given() || shape.blocks.receives(rank);
}

std::optional<InPlace> in_place(const Shape& shape, int rank) {
  switch (shape.collective) {
    case Collective::barrier:
    case Collective::broadcast:
      return std::nullopt;
    case Collective::reduce:
      if (rank != shape.root) return std::nullopt;
      return InPlace{};
    case Collective::exscan:
      if (rank == 0) return std::nullopt;
      return InPlace{};
    case Collective::allreduce:
    case Collective::scan:
    case Collective::reduce_scatter:
      return InPlace{};
    case Collective::allgather:
      return InPlace{.input = block(shape, rank).offset, .output = 0};
    case Collective::gather:
      if (rank != shape.root) return std::nullopt;
      return InPlace{.input = block(shape, rank).offset, .output = 0};
    case Collective::many_to_many:
      if (!receives(shape, rank)) return std::nullopt;
      return InPlace{.input = block(shape, rank).offset, .output = 0};
    case Collective::scatter:
      if (rank != shape.root) return std::nullopt;
      return InPlace{.input = 0, .output = block(shape, rank).offset};
    case Collective::alltoall:
      if (!is_symmetric_at(shape, rank)) return std::nullopt;
      return InPlace{};
  }
  return std::nullopt;
}

}  // namespace unisono::schedule

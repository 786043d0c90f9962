// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/shape.hpp"

#include <array>

namespace unisono::schedule {
namespace {
constexpr std::array<std::string_view, kCollectiveCount> kNames = {"barrier", "broadcast", "reduce",
                                                                   "allreduce", "allgather"};
}

std::string_view collective_name(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

std::optional<Collective> collective_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::int64_t input_count(const Shape& shape, int rank) {
  switch (shape.collective) {
    case Collective::barrier:
      return 0;
    case Collective::broadcast:
      return rank == shape.root ? shape.count : 0;
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::allgather:
      return shape.count;
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
      return shape.count;
    case Collective::allgather:
      return shape.count * shape.ranks;
  }
  return 0;
}

Block block(const Shape& shape, int rank) {
  return {.offset = shape.count * rank, .count = shape.count};
}

std::optional<std::int64_t> in_place_offset(const Shape& shape, int rank) {
  switch (shape.collective) {
    case Collective::barrier:
    case Collective::broadcast:
      return std::nullopt;
    case Collective::reduce:
      if (rank != shape.root) return std::nullopt;
      return 0;
    case Collective::allreduce:
      return 0;
    case Collective::allgather:
      return block(shape, rank).offset;
  }
  return std::nullopt;
}

}  // namespace unisono::schedule

// SPDX-License-Identifier: BSD-3-Clause
// The numbers of a communicator's groups in the program's tables: its trees, its allgathers of both
// kinds, and the multicasts of roots. They differ from the communicator's own number in the highest
// bits. Pure.
#pragma once

#include <cstdint>

#include "nic/port/vector_limit.hpp"

namespace unisono::engine {

enum class NicWay : std::uint32_t {
  first_tree = 0,  // followed by the other trees
  singly = 8,      // allgathers of blocks that go singly
  from_root = 10,  // broadcasts whose root multicasts its block
  joined = 12      // allgathers of blocks that are joined
};
static_assert(nic::kPiecesMax <= 8, "the numbers of trees are below those of allgathers");

inline std::uint32_t group_number(std::uint32_t communicator, NicWay way, std::uint32_t tree = 0) {
  return communicator ^ (static_cast<std::uint32_t>(way) + tree) << 28;
}

}  // namespace unisono::engine

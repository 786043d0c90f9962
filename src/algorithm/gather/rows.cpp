// SPDX-License-Identifier: BSD-3-Clause
// Gathers. P ranks, m one rank's block.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::gather {

Build linear;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::gather,
     .idea = "all send to the root, which copies each block to its place",
     .source = "MPI 3.1, 5.5",
     .steps = "1",
     .bytes = "m",
     .wins = "few ranks; long blocks; ranks know their own counts only",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::gather

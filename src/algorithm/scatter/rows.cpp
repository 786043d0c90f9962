// SPDX-License-Identifier: BSD-3-Clause
// Scatters. P ranks, m one rank's block.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::scatter {

Build linear;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::scatter,
     .idea = "the root sends each rank its block",
     .source = "MPI 3.1, 5.6",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "few ranks; long blocks; ranks know their own counts only",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::scatter

// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatters. P ranks, m one rank's block.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::reduce_scatter {

Build pairwise;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "pairwise",
     .collective = Collective::reduce_scatter,
     .idea = "everyone sends each rank its block and combines the parts of its own",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.4",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "long vectors; operators that do not commute",
     .keeps_order = true,
     .parameters = {},
     .build = pairwise},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::reduce_scatter

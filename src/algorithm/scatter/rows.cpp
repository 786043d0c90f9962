// SPDX-License-Identifier: BSD-3-Clause
// Scatters. P ranks, m one rank's block, f the degree of a tree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::scatter {

Build linear, fnomial;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::scatter,
     .idea = "the root sends each rank its block",
     .source = "MPI 3.1, 5.6",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "few ranks; long blocks; ranks that know their own counts only",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
    {.name = "fnomial",
     .collective = Collective::scatter,
     .idea = "blocks go down an f-nomial tree, those of a subtree in one message",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.2; Moody et al. 2003, 5.2",
     .steps = "ceil(log_f P)",
     .bytes = "(P-1) m",
     .wins = "short blocks; many ranks",
     .keeps_order = true,
     .parameters = kDegree,
     .build = fnomial},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::scatter

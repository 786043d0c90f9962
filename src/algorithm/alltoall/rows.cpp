// SPDX-License-Identifier: BSD-3-Clause
// All-to-alls. P ranks, m the block of a pair of ranks.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::alltoall {

Build linear;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::alltoall,
     .idea = "everyone sends all its blocks, the next rank's first, then takes what arrives",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.3",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "few ranks; short blocks; sparse counts",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::alltoall

// SPDX-License-Identifier: BSD-3-Clause
// Scans. P ranks, n the vector.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::scan {

Build linear;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::scan,
     .idea = "the sum travels up the ranks, each adds its part",
     .source = "MPI 3.1, 5.11.1",
     .steps = "P-1",
     .bytes = "n",
     .wins = "few ranks; ranks outnumber cores",
     .keeps_order = true,
     .parameters = {},
     .build = linear},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::scan

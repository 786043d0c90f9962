// SPDX-License-Identifier: BSD-3-Clause
// Scans. P ranks, n the vector.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::scan {

Build linear, recursive_doubling;

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
    {.name = "recursive-doubling",
     .collective = Collective::scan,
     .idea = "in step s, send the sum 2^s ranks upwards and add what comes from as far below",
     .source = "Hillis and Steele 1986; Sanders and Träff 2006",
     .steps = "ceil(log2 P)",
     .bytes = "n ceil(log2 P)",
     .wins = "many ranks, each with a core",
     .keeps_order = true,
     .parameters = {},
     .build = recursive_doubling},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::scan

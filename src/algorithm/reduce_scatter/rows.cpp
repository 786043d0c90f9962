// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatters. P ranks, m one rank's block, f the degree of a tree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::reduce_scatter {

Build pairwise, recursive_halving, reduce_scatter, ring;

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
    {.name = "recursive-halving",
     .collective = Collective::reduce_scatter,
     .idea =
         "exchange halves in each dimension of a hypercube, furthest first, surplus ranks folded",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.4",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "(P-1) m; P m if P is no power of two",
     .wins = "short vectors; many ranks",
     .keeps_order = false,
     .parameters = {},
     .build = recursive_halving},
    {.name = "reduce-scatter",
     .collective = Collective::reduce_scatter,
     .idea =
         "combine up an f-nomial tree to rank 0, send the blocks of the result down the same tree",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.4; Moody et al. 2003, 5.2",
     .steps = "2 ceil(log_f P)",
     .bytes = "(P + f^(ceil(log_f P) - 1) - 1) m",
     .wins = "short vectors and operators that do not commute; one rank has to compute the result",
     .keeps_order = true,
     .parameters = kDegree,
     .build = reduce_scatter},
    {.name = "ring",
     .collective = Collective::reduce_scatter,
     .idea = "each block travels once around a ring to its rank and grows",
     .source = "Patarasuk and Yuan 2009",
     .steps = "P-1",
     .bytes = "(P-1) m",
     .wins = "long vectors; networks with contention",
     .keeps_order = false,
     .parameters = {},
     .build = ring},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::reduce_scatter

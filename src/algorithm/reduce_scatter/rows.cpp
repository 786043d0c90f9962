// SPDX-License-Identifier: BSD-3-Clause
// Reduce-scatters. P ranks, m one rank's block, f the degree of a tree.
#include "algorithm/rows.hpp"
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::reduce_scatter {

Build two_level, pairwise, recursive_halving, reduce_scatter, ring, exact_direct, circulant, pat;

namespace {

constexpr ParameterSpec kAggregated[] = {
    {.name = "blocks", .low = 1, .high = 0, .fallback = 64, .help = "most blocks in a message"}};
constexpr std::string_view kInner[] = {"pairwise", "recursive-halving", "reduce-scatter",
                                       "ring",     "circulant",         "pat"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner), kFanInOfHost};

constexpr Algorithm kRows[] = {
    {.name = "pairwise",
     .collective = Collective::reduce_scatter,
     .idea = "every rank sends each rank its block and combines the parts of its own",
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
     .alike = Alike::always,
     .parameters = {},
     .build = ring},
    {.name = "exact-direct",
     .collective = Collective::reduce_scatter,
     .idea = "every rank sends each rank its block, and sums the parts of its own in one step",
     .source = "Collange, Defour, Graillat and Iakymchuk 2015",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "reproducible sums",
     .keeps_order = false,
     .sums_exactly = true,
     .alike = Alike::always,
     .parameters = {},
     .build = exact_direct},
    {.name = "circulant",
     .collective = Collective::reduce_scatter,
     .idea = "send the sums of the upper half of the blocks left to the rank that far above",
     .source = "Träff 2024b",
     .steps = "ceil(log2 P)",
     .bytes = "(P-1) m",
     .wins = "any P that is no power of two: short vectors, and long ones where steps cost much",
     .keeps_order = false,
     .parameters = {},
     .build = circulant},
    {.name = "pat",
     .collective = Collective::reduce_scatter,
     .idea = "every block climbs its own binomial tree, nearest first, together with others",
     .source = "Jeaugey 2025",
     .steps = "ceil(log2 P)",
     .bytes = "(P-1) m",
     .wins = "short vectors; far ranks get the short messages; any P",
     .keeps_order = false,
     .rotates = true,
     .parameters = kAggregated,
     .build = pat},
    {.name = "two-level",
     .collective = Collective::reduce_scatter,
     .idea =
         "combine within hosts, distribute the hosts' blocks by inner, then from leaders to ranks",
     .source = "Moody et al. 2003; Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "ceil(log_{l+1} k) + 1, k the ranks of a host, and those of inner",
     .bytes = "P m, or (k-1) m and those of inner",
     .wins = "several hosts with several ranks each",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .only = two_level::kKeepsOrder,
     .refuse = two_level::breaks_order,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::reduce_scatter

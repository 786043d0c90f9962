// SPDX-License-Identifier: BSD-3-Clause
// Reductions to all. P ranks, n the vector, f the degree, l the fan-in, M the largest power
// of two <= P.
#include "algorithm/rows.hpp"
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::allreduce {

Build pairwise, reduce_broadcast, gather_release, split_release, ring, reduce_scatter_allgather,
    recursive_multiplying, two_level;

namespace {

constexpr ParameterSpec kFactor[] = {{.name = "k",
                                      .low = 2,
                                      .high = 0,
                                      .fallback = 4,
                                      .help = "ranks that exchange in a step; 2 is pairwise"}};

constexpr std::string_view kInner[] = {
    "pairwise",         "gather-release",           "ring",
    "reduce-broadcast", "reduce-scatter-allgather", "recursive-multiplying",
    "split-release"};
constexpr ParameterSpec kSplitRelease[] = {
    {.name = "splits",
     .low = 0,
     .high = 10,
     .fallback = 1,
     .help = "how often the vector is halved, with no more pieces than ranks"},
    kFanIn[0]};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner), kFanInOfHost};

constexpr Algorithm kRows[] = {
    {.name = "pairwise",
     .collective = Collective::allreduce,
     .idea = "exchange and combine in each dimension of a hypercube, surplus ranks folded",
     .source = "Kini 2003, 5.2.1 (RPE)",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "n log2 P; n (floor(log2 P) + 1) if P is no power of two",
     .wins = "short vectors; every rank has a core",
     .keeps_order = true,
     .alike = Alike::powers_of_two,
     .parameters = {},
     .build = pairwise},
    {.name = "reduce-broadcast",
     .collective = Collective::allreduce,
     .idea = "combine up an f-nomial tree to rank 0, send the result down the same tree",
     .source = "Moody et al. 2003, 5.2; Petrini et al. 2003, 4.5",
     .steps = "2 ceil(log_f P)",
     .bytes = "(f-1) ceil(log_f P) n",
     .wins = "one rank has to compute the result and there is no multicast",
     .keeps_order = true,
     .parameters = kDegree,
     .build = reduce_broadcast},
    {.name = "gather-release",
     .collective = Collective::allreduce,
     .idea = "combine up a tree to rank 0, multicast the result",
     .source = "Kini 2003, 5.2.2 (RGM); Petrini et al. 2003, 4.5",
     .steps = "ceil(log_{l+1} P) + 1",
     .bytes = "n",
     .wins = "ranks outnumber cores; a multicast is cheap; short vectors",
     .keeps_order = true,
     .parameters = kFanIn,
     .build = gather_release},
    {.name = "split-release",
     .collective = Collective::allreduce,
     .idea = "halve the vector; each piece goes up a tree of its own, whose root multicasts it",
     .source = "Moody et al. 2003, 5.3; Kini 2003, 5.2.2 (RGM)",
     .steps = "ceil(log_{l+1} P) + 1",
     .bytes = "n",
     .wins = "combining takes long, as in a NIC, and every rank has a core",
     .keeps_order = false,
     .parameters = kSplitRelease,
     .build = split_release},
    {.name = "ring",
     .collective = Collective::allreduce,
     .idea = "blocks travel around a ring and grow, then travel around again",
     .source = "Patarasuk and Yuan 2009",
     .steps = "2 (P-1)",
     .bytes = "2 n (P-1)/P",
     .wins = "very long vectors; networks with contention",
     .keeps_order = false,
     .alike = Alike::always,
     .alike_in_shares = true,
     .parameters = {},
     .build = ring},
    {.name = "reduce-scatter-allgather",
     .collective = Collective::allreduce,
     .idea = "recursive halving of the vector, then recursive doubling, surplus ranks folded",
     .source = "Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005",
     .steps = "2 log2 P; 2 floor(log2 P) + 2 if P is no power of two",
     .bytes = "2 n (M-1)/M; n more if P is no power of two",
     .wins = "long vectors",
     .keeps_order = true,
     .alike = Alike::powers_of_two,
     .alike_in_shares = true,
     .parameters = {},
     .build = reduce_scatter_allgather},
    {.name = "recursive-multiplying",
     .collective = Collective::allreduce,
     .idea = "exchange and combine among k ranks in each dimension of a grid, surplus ranks folded",
     .source = "Ruefenacht, Bull and Booth 2017",
     .steps = "log_k P; floor(log_k P) + 2 if P is no power of k",
     .bytes = "n log_k P; n (floor(log_k P) + 1) if P is no power of k",
     .wins = "short vectors where a multicast is cheap; every rank has a core",
     .keeps_order = true,
     .parameters = kFactor,
     .build = recursive_multiplying},
    {.name = "two-level",
     .collective = Collective::allreduce,
     .idea = "combine within hosts, then the sums of hosts by inner, then multicast within hosts",
     .source = "Moody et al. 2003; Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "ceil(log_{l+1} k) + 1, k the ranks of a host, and those of inner",
     .bytes = "n, and those of inner",
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

}  // namespace unisono::algorithm::allreduce

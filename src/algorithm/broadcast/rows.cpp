// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts. P ranks, n the vector, f the degree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::broadcast {

Build fnomial, flat, scatter_allgather, chain, double_tree, circulant, bine, two_level;

namespace {

constexpr std::string_view kInner[] = {
    "fnomial", "flat", "scatter-allgather", "chain", "double-tree", "circulant", "bine"};
constexpr std::string_view kLeaders[] = {"root", "first"};
constexpr ParameterSpec kTwoLevel[] = {
    inner_choice(kInner),
    {.name = "leader",
     .low = 0,
     .high = 1,
     .fallback = 0,
     .help = "leader of the root's host: the root, or, as in all other hosts, the first rank",
     .names = kLeaders}};

constexpr Algorithm kRows[] = {
    {.name = "fnomial",
     .collective = Collective::broadcast,
     .idea = "send down an f-nomial tree, largest subtree first, forwarding before copying",
     .source = "Moody et al. 2003, 5.2 and appendix A; Petrini et al. 2003, 4.2",
     .steps = "ceil(log_f P)",
     .bytes = "(f-1) ceil(log_f P) n",
     .wins = "no multicast; many ranks",
     .keeps_order = true,
     .parameters = kDegree,
     .build = fnomial},
    {.name = "flat",
     .collective = Collective::broadcast,
     .idea = "one multicast from the root to all",
     .source = "Petrini et al. 2003, 4.1 and 4.4",
     .steps = "1",
     .bytes = "n",
     .wins = "a multicast is cheap, as in shared memory",
     .keeps_order = true,
     .parameters = {},
     .build = flat},
    {.name = "scatter-allgather",
     .collective = Collective::broadcast,
     .idea =
         "scatter a block to each rank down a binomial tree, then forward the blocks around a ring",
     .source =
         "Barnett, Gupta, Payne, Shuler, van de Geijn and Watts 1994; Thakur, Rabenseifner and "
         "Gropp 2005",
     .steps = "P-1",
     .bytes = "2 n (P-1)/P",
     .wins = "long vectors without a multicast",
     .keeps_order = true,
     .parameters = {},
     .build = scatter_allgather},
    {.name = "chain",
     .collective = Collective::broadcast,
     .idea = "segments of the vector follow one another from rank to rank",
     .source = "Chan, Heimlich, Purkayastha and van de Geijn 2007",
     .steps = "P-1",
     .bytes = "n",
     .wins = "very long vectors on few ranks",
     .keeps_order = true,
     .repeats = true,
     .parameters = kSegments,
     .build = chain},
    {.name = "double-tree",
     .collective = Collective::broadcast,
     .idea = "half of the vector goes down each of two binary trees that share no inner node",
     .source = "Sanders, Speck and Träff 2009",
     .steps = "floor(log2 (P-1)) + 1",
     .bytes = "n",
     .wins = "long vectors on many ranks without a multicast",
     .keeps_order = true,
     .parameters = kSegments,
     .build = double_tree},
    {.name = "circulant",
     .collective = Collective::broadcast,
     .idea = "segments spread over a circulant graph: in each round a rank sends and gets one",
     .source = "Träff 2024a",
     .steps = "at most s - 1 + ceil(log2 P), s the segments",
     .bytes = "n (s - 1 + ceil(log2 P)) / s",
     .wins = "medium and long vectors without a multicast, any P",
     .keeps_order = true,
     .parameters = kTurningSegments,
     .build = circulant},
    {.name = "bine",
     .collective = Collective::broadcast,
     .idea = "a binomial tree with edges a third shorter, in alternating directions",
     .source = "De Sensi et al. 2025",
     .steps = "ceil(log2 P)",
     .bytes = "ceil(log2 P) n",
     .wins = "short vectors without a multicast where far ranks share links",
     .keeps_order = true,
     .parameters = {},
     .build = bine},
    {.name = "two-level",
     .collective = Collective::broadcast,
     .idea = "inner to a leader of each host, then a multicast within hosts",
     .source = "Petrini et al. 2003; Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "1 if a host has several ranks, or 2 if the root does not lead, and those of inner",
     .bytes = "n, and those of inner",
     .wins = "several hosts with several ranks each",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::broadcast

// SPDX-License-Identifier: BSD-3-Clause
// All-to-alls. P ranks, m the block of a pair of ranks.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::alltoall {

Build two_level, multi_leader, linear, pairwise, bruck, kbruck;

namespace {

constexpr ParameterSpec kRadix[] = {
    {.name = "k", .low = 2, .high = 0, .fallback = 4, .help = "base of the distances"}};
constexpr std::string_view kInner[] = {"linear", "pairwise"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner)};

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::alltoall,
     .idea = "every rank sends all its blocks, the next rank's first, then receives all",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.3",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "blocks of any length where the network is not the limit; sparse counts",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
    {.name = "pairwise",
     .collective = Collective::alltoall,
     .idea = "in each of P-1 steps, a rank sends to one rank and receives from one",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4.3",
     .steps = "P-1",
     .bytes = "(P-1) m",
     .wins = "long blocks; networks with contention",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = pairwise},
    {.name = "bruck",
     .collective = Collective::alltoall,
     .idea = "in step s, send all blocks with bit s in their distance 2^s ranks upwards",
     .source = "Bruck et al. 1997, 3; Thakur, Rabenseifner and Gropp 2005, 4.3",
     .steps = "ceil(log2 P)",
     .bytes = "m P/2 ceil(log2 P)",
     .wins = "short blocks; many ranks",
     .keeps_order = true,
     .unequal_blocks = false,
     .alike = Alike::always,
     .parameters = {},
     .build = bruck},
    {.name = "kbruck",
     .collective = Collective::alltoall,
     .idea = "bruck with distances of base k: a message for each value of a digit",
     .source = "Bruck et al. 1997, 3",
     .steps = "ceil(log_k P)",
     .bytes = "m P (k-1)/k ceil(log_k P)",
     .wins = "short and medium blocks; many ranks",
     .keeps_order = true,
     .unequal_blocks = false,
     .parameters = kRadix,
     .build = kbruck},
    {.name = "two-level",
     .collective = Collective::alltoall,
     .idea = "leaders exchange all blocks from one host to another as one message, by inner",
     .source = "Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "1 on one host; 2 if a host has several ranks, and those of inner",
     .bytes = "(P-1) m; at a leader 2 (k-1) (P-k) m more at the most, k the ranks of a host",
     .wins = "several hosts with several ranks each; short blocks",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .build = two_level},
    {.name = "multi-leader",
     .collective = Collective::alltoall,
     .idea =
         "one message from each host to each other, as two-level; each rank leads for some hosts",
     .source = "Kandalla, Subramoni, Santhanaraman, Koop and Panda 2009",
     .steps = "3; 1 on one host",
     .bytes = "(P-1) m; at a leader of l hosts of k ranks 2 (k-1) k l m more at the most",
     .wins = "several hosts with several ranks each, with a core for each rank; medium blocks",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = {},
     .build = multi_leader},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::alltoall

// SPDX-License-Identifier: BSD-3-Clause
// Gathers. P ranks, m one rank's block, f the degree of a tree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::gather {

Build two_level, linear, fnomial;

namespace {

constexpr std::string_view kInner[] = {"linear", "fnomial"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner)};

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::gather,
     .idea = "all send to the root, which copies each block to its place",
     .source = "MPI 3.1, 5.5",
     .steps = "1",
     .bytes = "m",
     .wins = "few ranks; long blocks; local counts",
     .keeps_order = true,
     .local_counts = true,
     .parameters = {},
     .build = linear},
    {.name = "fnomial",
     .collective = Collective::gather,
     .idea = "blocks go up an f-nomial tree, those of a subtree in one message",
     .source = "Thakur, Rabenseifner and Gropp 2005, 4; Moody et al. 2003, 5.2",
     .steps = "ceil(log_f P)",
     .bytes = "f^(ceil(log_f P) - 1) m",
     .wins = "short blocks; many ranks",
     .keeps_order = true,
     .parameters = kDegree,
     .build = fnomial},
    {.name = "two-level",
     .collective = Collective::gather,
     .idea = "ranks send to the leader of their host; leaders send the blocks of a host as one, by "
             "inner",
     .source = "Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "1 if a host has several ranks, and those of inner",
     .bytes = "m, or those of inner",
     .wins = "several hosts with several ranks each; short blocks",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::gather

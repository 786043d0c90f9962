// SPDX-License-Identifier: BSD-3-Clause
// Scatters. P ranks, m one rank's block, f the degree of a tree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::scatter {

Build two_level, linear, fnomial;

namespace {

constexpr std::string_view kInner[] = {"linear", "fnomial"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner)};

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::scatter,
     .idea = "the root sends each rank its block",
     .source = "MPI 3.1, 5.6",
     .steps = "1",
     .bytes = "(P-1) m",
     .wins = "few ranks; long blocks; local counts",
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
    {.name = "two-level",
     .collective = Collective::scatter,
     .idea = "leaders get the blocks of their hosts by inner, then send each rank its block",
     .source = "Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "1 if a host has several ranks, and those of inner",
     .bytes = "(k-1) m, k the ranks of a host, and those of inner",
     .wins = "several hosts with several ranks each; short blocks",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::scatter

// SPDX-License-Identifier: BSD-3-Clause
// Barriers. P ranks, f the degree, l the fan-in.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::barrier {

Build dissemination, pairwise, gather_release, gather_broadcast, kdissemination, test_and_set,
    two_level;

namespace {

constexpr ParameterSpec kPeers[] = {{.name = "k",
                                     .low = 1,
                                     .high = 0,
                                     .fallback = 3,
                                     .help = "ranks that every rank signals in a step"}};

constexpr std::string_view kInner[] = {"dissemination", "gather-release", "gather-broadcast",
                                       "pairwise", "kdissemination"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner), kFanInOfHost};

constexpr Algorithm kRows[] = {
    {.name = "dissemination",
     .collective = Collective::barrier,
     .idea = "in step s, signal the rank 2^s above and wait for the one 2^s below",
     .source = "Hensgen, Finkel and Manber 1988; Kini 2003, 4.1.2 (RDS)",
     .steps = "ceil(log2 P)",
     .bytes = "0",
     .wins = "any P, in particular no power of two; every rank has a core",
     .keeps_order = true,
     .alike = Alike::always,
     .parameters = {},
     .build = dissemination},
    {.name = "pairwise",
     .collective = Collective::barrier,
     .idea = "exchange signals in each dimension of a hypercube, surplus ranks folded",
     .source = "Kini 2003, 4.1.1 (RPE)",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "0",
     .wins = "powers of two; partners on one host first",
     .keeps_order = true,
     .alike = Alike::powers_of_two,
     .parameters = {},
     .build = pairwise},
    {.name = "gather-release",
     .collective = Collective::barrier,
     .idea = "gather signals up a tree, release all by one multicast",
     .source = "Kini 2003, 4.1.3 (RGM); Petrini et al. 2003, 4.3",
     .steps = "ceil(log_{l+1} P) + 1",
     .bytes = "0",
     .wins = "ranks outnumber cores; a multicast is cheap",
     .keeps_order = true,
     .parameters = kFanIn,
     .build = gather_release},
    {.name = "gather-broadcast",
     .collective = Collective::barrier,
     .idea = "gather signals up an f-nomial tree, release down the same tree",
     .source = "Buntinas, Panda and Sadayappan 2001; Petrini et al. 2003, 4.3",
     .steps = "2 ceil(log_f P)",
     .bytes = "0",
     .wins = "ranks outnumber cores and there is no multicast",
     .keeps_order = true,
     .parameters = kDegree,
     .build = gather_broadcast},
    {.name = "kdissemination",
     .collective = Collective::barrier,
     .idea = "in step s, signal the k ranks at i (k+1)^s above and wait for the k below",
     .source = "Hoefler, Mehlan, Mietke and Rehm 2006",
     .steps = "ceil(log_{k+1} P)",
     .bytes = "0",
     .wins = "a step costs more than a few signals; every rank has a core",
     .keeps_order = true,
     .alike = Alike::always,
     .parameters = kPeers,
     .build = kdissemination},
    {.name = "test-and-set",
     .collective = Collective::barrier,
     .idea = "ask all by one multicast, gather answers up a tree, release all by another one",
     .source = "Petrini et al. 2003, 4.3",
     .steps = "ceil(log_{l+1} P) + 2",
     .bytes = "0",
     .wins = "the NIC path, where a doorbell packet of each rank costs more than a question to all",
     .keeps_order = true,
     .parameters = kFanIn,
     .build = test_and_set},
    {.name = "two-level",
     .collective = Collective::barrier,
     .idea = "gather and release signals within hosts; inner runs among their leaders",
     .source = "Moody et al. 2003; Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "ceil(log_{l+1} k) + 1, k the ranks of a host, and those of inner",
     .bytes = "0",
     .wins = "several hosts with several ranks each",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::barrier

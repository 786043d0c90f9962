// SPDX-License-Identifier: BSD-3-Clause
// Allgathers. P ranks, m one rank's block, M the largest power of two <= P.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::allgather {

Build ring, recursive_doubling, hypercube, direct, gather_release, bruck, neighbor_exchange,
    concurrent_broadcast, prefix_send, kprefix, kshift;

using Refuse = const char*(const Shape& shape, const Parameters& parameters);
Refuse needs_even_ranks, needs_whole_partitions, needs_free_shift;

namespace {

constexpr ParameterSpec kZeta[] = {
    {.name = "zeta",
     .low = 0,
     .high = 10,
     .fallback = 3,
     .help = "the last dimensions, which are done directly; 0 is recursive doubling"}};

constexpr ParameterSpec kBatch = {
    .name = "batch",
    .low = 1,
    .high = 8,
    .fallback = 1,
    .help = "messages between two synchronisations; k is the variant with less barriers"};
constexpr ParameterSpec kPartition[] = {
    {.name = "k", .low = 1, .high = 8, .fallback = 8, .help = "ranks of a partition"}, kBatch};
constexpr ParameterSpec kReach[] = {
    {.name = "k", .low = 1, .high = 8, .fallback = 8, .help = "ranks that a round reaches"},
    kBatch};

constexpr Algorithm kRows[] = {
    {.name = "ring",
     .collective = Collective::allgather,
     .idea = "blocks travel around a ring, forwarded before they are copied",
     .source = "Kumar and Kalé 2004, 4.2",
     .steps = "P-1",
     .bytes = "(P-1) m",
     .wins = "long blocks; networks with contention",
     .keeps_order = true,
     .parameters = {},
     .build = ring},
    {.name = "recursive-doubling",
     .collective = Collective::allgather,
     .idea = "swap all that was gathered in each dimension of a hypercube, surplus ranks folded",
     .source = "Kumar and Kalé 2004, 3.2; Yu, Buntinas and Panda 2004, 4.3.2",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "(P-1) m; at most (2 (M-1) + P) m if P is no power of two",
     .wins = "short blocks without a cheap multicast",
     .keeps_order = true,
     .parameters = {},
     .build = recursive_doubling},
    {.name = "hypercube",
     .collective = Collective::allgather,
     .idea =
         "recursive doubling, but for the last zeta dimensions each subcube multicasts directly",
     .source = "Kumar and Kalé 2004, 3.2 (equations 4 to 6)",
     .steps = "log2 P - zeta + 1, zeta at most log2 P; 2 more if P is no power of two",
     .bytes = "(2 P/2^zeta - 1) m; at most (4 M/2^zeta - 2 + P) m if P is no power of two",
     .wins = "short blocks, and a multicast is cheaper than its sends",
     .keeps_order = true,
     .parameters = kZeta,
     .build = hypercube},
    {.name = "direct",
     .collective = Collective::allgather,
     .idea = "everyone multicasts its block to all others",
     .source = "Kumar and Kalé 2004, 3 (equation 2)",
     .steps = "1",
     .bytes = "m",
     .wins = "a multicast is cheap; every rank has a core",
     .keeps_order = true,
     .parameters = {},
     .build = direct},
    {.name = "gather-release",
     .collective = Collective::allgather,
     .idea = "all send to rank 0, which multicasts the whole vector",
     .source = "Kini 2003, 4.1.3 and 5.2.2 (RGM), applied to allgather",
     .steps = "2",
     .bytes = "P m",
     .wins = "ranks outnumber cores; short blocks",
     .keeps_order = true,
     .parameters = {},
     .build = gather_release},
    {.name = "bruck",
     .collective = Collective::allgather,
     .idea = "in step s, send the first 2^s of the blocks held to the rank 2^s below",
     .source = "Bruck, Ho, Kipnis, Upfal and Weathersby 1997",
     .steps = "ceil(log2 P)",
     .bytes = "(P-1) m",
     .wins = "short blocks on any P that is no power of two",
     .keeps_order = true,
     .parameters = {},
     .build = bruck},
    {.name = "neighbor-exchange",
     .collective = Collective::allgather,
     .idea = "swap the two blocks that came last with the left and the right neighbour in turn",
     .source = "Chen, Zhang, Zhang and Yuan 2005",
     .steps = "P/2",
     .bytes = "(P-1) m",
     .wins = "long blocks; half the steps of a ring",
     .keeps_order = true,
     .parameters = {},
     .only = "P is even, or 1",
     .refuse = needs_even_ranks,
     .build = neighbor_exchange},
    {.name = "concurrent-broadcast",
     .collective = Collective::allgather,
     .idea = "every block goes down its own binomial tree, sent on as it arrives",
     .source = "Yu, Buntinas and Panda 2004, 4.3.3",
     .steps = "ceil(log2 P)",
     .bytes = "at most floor(P/2) m",
     .wins = "long blocks where forwarding costs no processor; 2 log2 P peers",
     .keeps_order = true,
     .parameters = {},
     .build = concurrent_broadcast},
    {.name = "prefix-send",
     .collective = Collective::allgather,
     .idea = "in step i, swap blocks with rank xor i",
     .source = "Kumar and Kalé 2004, 4.3 (equation 8)",
     .steps = "P-1; at most 2M - 1 if P is no power of two",
     .bytes = "(P-1) m",
     .wins = "long blocks on a whole fat tree; powers of two",
     .keeps_order = true,
     .parameters = {},
     .build = prefix_send},
    {.name = "kprefix",
     .collective = Collective::allgather,
     .idea = "carry a block through a ring of partitions of k, giving it to rank xor i in each",
     .source = "Kumar and Kalé 2004, 4.4 (equation 9) and 4.6",
     .steps = "P-1; P/k if batch is k",
     .bytes = "(P-1) m; P/k m if batch is k",
     .wins = "long blocks on a whole fat tree, any size of it",
     .keeps_order = true,
     .parameters = kPartition,
     .only = "k is a power of two and divides P",
     .refuse = needs_whole_partitions,
     .build = kprefix},
    {.name = "kshift",
     .collective = Collective::allgather,
     .idea = "give a block to the k-1 nearest ranks, then to the one k above, which goes on",
     .source = "Kumar and Kalé 2004, 4.5 (equation 10) and 4.6",
     .steps = "P-1; ceil(P/k) if batch is k",
     .bytes = "(P-1) m; ceil(P/k) m if batch is k",
     .wins = "long blocks on a fat tree with missing nodes",
     .keeps_order = true,
     .parameters = kReach,
     .only = "k is 1, 2, 3, 4 or 8",
     .refuse = needs_free_shift,
     .build = kshift},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::allgather

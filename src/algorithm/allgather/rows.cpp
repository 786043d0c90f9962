// SPDX-License-Identifier: BSD-3-Clause
// Allgathers. P ranks, m one rank's block, M the largest power of two <= P.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::allgather {

Build ring, recursive_doubling, hypercube, direct, gather_release;

namespace {

constexpr ParameterSpec kZeta[] = {
    {.name = "zeta",
     .low = 0,
     .high = 10,
     .fallback = 3,
     .help = "the last dimensions, which are done directly; 0 is recursive doubling"}};

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
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::allgather

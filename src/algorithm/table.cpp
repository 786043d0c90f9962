// SPDX-License-Identifier: BSD-3-Clause
// The table of all algorithms. A new one is its file, its name in the declarations below, and its
// row. Formulas: P ranks, n the vector, m one rank's block, f the degree, l the fan-in, M the
// largest power of two <= P. A test computes both columns from the schedules.
#include "algorithm/algorithm.hpp"

namespace unisono::algorithm {

using Build = Schedule(const Shape& shape, const Parameters& parameters, int rank);

namespace barrier {
Build dissemination, pairwise, gather_release;
}
namespace broadcast {
Build fnomial, flat;
}
namespace reduce {
Build serial, fnomial;
}
namespace allreduce {
Build pairwise, reduce_broadcast, gather_release, ring, reduce_scatter_allgather;
}
namespace allgather {
Build ring, recursive_doubling, direct, gather_release;
}

namespace {

constexpr ParameterSpec kDegree[] = {
    {.name = "degree",
     .low = 2,
     .high = 0,
     .fallback = 4,
     .help = "degree f of the f-nomial tree: f-1 children a phase; 2 is binomial, P is flat"}};
constexpr ParameterSpec kFanIn[] = {
    {.name = "fanin",
     .low = 1,
     .high = 0,
     .fallback = 7,
     .help = "messages l that a parent takes a level; 1 is binomial, P-1 or more is flat"}};

constexpr Algorithm kTable[] = {
    {.name = "dissemination",
     .collective = Collective::barrier,
     .idea = "in step s, signal the rank 2^s above and wait for the one 2^s below",
     .source = "Hensgen, Finkel and Manber 1988; Kini 2003, 4.1.2 (RDS)",
     .steps = "ceil(log2 P)",
     .bytes = "0",
     .wins = "any P, in particular no power of two; every rank has a core",
     .keeps_order = true,
     .parameters = {},
     .build = barrier::dissemination},
    {.name = "pairwise",
     .collective = Collective::barrier,
     .idea = "exchange signals in each dimension of a hypercube, surplus ranks folded",
     .source = "Kini 2003, 4.1.1 (RPE)",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "0",
     .wins = "powers of two; partners on one host first",
     .keeps_order = true,
     .parameters = {},
     .build = barrier::pairwise},
    {.name = "gather-release",
     .collective = Collective::barrier,
     .idea = "gather signals up a tree, release all by one multicast",
     .source = "Kini 2003, 4.1.3 (RGM); Petrini et al. 2003, 4.3",
     .steps = "ceil(log_{l+1} P) + 1",
     .bytes = "0",
     .wins = "ranks outnumber cores; a multicast is cheap",
     .keeps_order = true,
     .parameters = kFanIn,
     .build = barrier::gather_release},
    {.name = "fnomial",
     .collective = Collective::broadcast,
     .idea = "send down an f-nomial tree, largest subtree first, forwarding before copying",
     .source = "Moody et al. 2003, 5.2 and appendix A; Petrini et al. 2003, 4.2",
     .steps = "ceil(log_f P)",
     .bytes = "(f-1) ceil(log_f P) n",
     .wins = "no multicast; many ranks",
     .keeps_order = true,
     .parameters = kDegree,
     .build = broadcast::fnomial},
    {.name = "flat",
     .collective = Collective::broadcast,
     .idea = "one multicast from the root to all",
     .source = "Petrini et al. 2003, 4.1 and 4.4",
     .steps = "1",
     .bytes = "n",
     .wins = "a multicast is cheap, as in shared memory",
     .keeps_order = true,
     .parameters = {},
     .build = broadcast::flat},
    {.name = "serial",
     .collective = Collective::reduce,
     .idea = "all send to the root, which combines in the order of ranks",
     .source = "Moody et al. 2003, 5.1",
     .steps = "1",
     .bytes = "n",
     .wins = "few ranks; ranks outnumber cores; short vectors",
     .keeps_order = true,
     .parameters = {},
     .build = reduce::serial},
    {.name = "fnomial",
     .collective = Collective::reduce,
     .idea = "combine up an f-nomial tree",
     .source = "Moody et al. 2003, 5.2 and appendix A",
     .steps = "ceil(log_f P); one more if ordered and the root is not 0",
     .bytes = "n",
     .wins = "many ranks, each with a core",
     .keeps_order = true,
     .parameters = kDegree,
     .build = reduce::fnomial},
    {.name = "pairwise",
     .collective = Collective::allreduce,
     .idea = "exchange and combine in each dimension of a hypercube, surplus ranks folded",
     .source = "Kini 2003, 5.2.1 (RPE)",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "n log2 P; n (floor(log2 P) + 1) if P is no power of two",
     .wins = "short vectors; every rank has a core",
     .keeps_order = true,
     .parameters = {},
     .build = allreduce::pairwise},
    {.name = "reduce-broadcast",
     .collective = Collective::allreduce,
     .idea = "combine up an f-nomial tree to rank 0, send the result down the same tree",
     .source = "Moody et al. 2003, 5.2; Petrini et al. 2003, 4.5",
     .steps = "2 ceil(log_f P)",
     .bytes = "(f-1) ceil(log_f P) n",
     .wins = "one rank has to compute the result and there is no multicast",
     .keeps_order = true,
     .parameters = kDegree,
     .build = allreduce::reduce_broadcast},
    {.name = "gather-release",
     .collective = Collective::allreduce,
     .idea = "combine up a tree to rank 0, multicast the result",
     .source = "Kini 2003, 5.2.2 (RGM); Petrini et al. 2003, 4.5",
     .steps = "ceil(log_{l+1} P) + 1",
     .bytes = "n",
     .wins = "ranks outnumber cores; a multicast is cheap; short vectors",
     .keeps_order = true,
     .parameters = kFanIn,
     .build = allreduce::gather_release},
    {.name = "ring",
     .collective = Collective::allreduce,
     .idea = "blocks travel around a ring and grow, then travel around again",
     .source = "Patarasuk and Yuan 2009",
     .steps = "2 (P-1)",
     .bytes = "2 n (P-1)/P",
     .wins = "very long vectors; networks with contention",
     .keeps_order = false,
     .parameters = {},
     .build = allreduce::ring},
    {.name = "reduce-scatter-allgather",
     .collective = Collective::allreduce,
     .idea = "recursive halving of the vector, then recursive doubling, surplus ranks folded",
     .source = "Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005",
     .steps = "2 log2 P; 2 floor(log2 P) + 2 if P is no power of two",
     .bytes = "2 n (M-1)/M; n more if P is no power of two",
     .wins = "long vectors",
     .keeps_order = true,
     .parameters = {},
     .build = allreduce::reduce_scatter_allgather},
    {.name = "ring",
     .collective = Collective::allgather,
     .idea = "blocks travel around a ring, forwarded before they are copied",
     .source = "Kumar and Kalé 2004, 4.2",
     .steps = "P-1",
     .bytes = "(P-1) m",
     .wins = "long blocks; networks with contention",
     .keeps_order = true,
     .parameters = {},
     .build = allgather::ring},
    {.name = "recursive-doubling",
     .collective = Collective::allgather,
     .idea = "swap all that was gathered in each dimension of a hypercube, surplus ranks folded",
     .source = "Kumar and Kalé 2004, 3.2",
     .steps = "log2 P; floor(log2 P) + 2 if P is no power of two",
     .bytes = "(P-1) m; at most (2 (M-1) + P) m if P is no power of two",
     .wins = "short blocks without a cheap multicast",
     .keeps_order = true,
     .parameters = {},
     .build = allgather::recursive_doubling},
    {.name = "direct",
     .collective = Collective::allgather,
     .idea = "everyone multicasts its block to all others",
     .source = "Kumar and Kalé 2004, 3 (equation 2)",
     .steps = "1",
     .bytes = "m",
     .wins = "a multicast is cheap; every rank has a core",
     .keeps_order = true,
     .parameters = {},
     .build = allgather::direct},
    {.name = "gather-release",
     .collective = Collective::allgather,
     .idea = "all send to rank 0, which multicasts the whole vector",
     .source = "Kini 2003, 4.1.3 and 5.2.2 (RGM), applied to allgather",
     .steps = "2",
     .bytes = "P m",
     .wins = "ranks outnumber cores; short blocks",
     .keeps_order = true,
     .parameters = {},
     .build = allgather::gather_release},
};

}  // namespace

std::span<const Algorithm> table() { return kTable; }

}  // namespace unisono::algorithm

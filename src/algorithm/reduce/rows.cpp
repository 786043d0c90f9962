// SPDX-License-Identifier: BSD-3-Clause
// Reductions to a root. P ranks, n the vector, f the degree.
#include "algorithm/rows.hpp"
#include "algorithm/two_level.hpp"

namespace unisono::algorithm::reduce {

Build two_level, serial, fnomial, fnomial_split, rabenseifner, binary, chain, exact_direct,
    exact_scatter;

namespace {

constexpr ParameterSpec kSplit[] = {
    {.name = "splits",
     .low = 1,
     .high = 10,
     .fallback = 3,
     .help = "how often the vector is halved, and the ranks with it"},
    kDegree[0]};

constexpr std::string_view kInner[] = {"serial", "fnomial", "binary", "rabenseifner", "chain"};
constexpr ParameterSpec kTwoLevel[] = {inner_choice(kInner), kFanInOfHost};

constexpr Algorithm kRows[] = {
    {.name = "serial",
     .collective = Collective::reduce,
     .idea = "all send to the root, which combines in the order of ranks",
     .source = "Moody et al. 2003, 5.1",
     .steps = "1",
     .bytes = "n",
     .wins = "few ranks; ranks outnumber cores; short vectors",
     .keeps_order = true,
     .parameters = {},
     .build = serial},
    {.name = "fnomial",
     .collective = Collective::reduce,
     .idea = "combine up an f-nomial tree",
     .source = "Moody et al. 2003, 5.2 and appendix A",
     .steps = "ceil(log_f P); one more if ordered and the root is not 0",
     .bytes = "n",
     .wins = "many ranks, each with a core",
     .keeps_order = true,
     .parameters = kDegree,
     .build = fnomial},
    {.name = "fnomial-split",
     .collective = Collective::reduce,
     .idea = "halve the vector s times, combine each piece up an f-nomial tree of its own",
     .source = "Moody et al. 2003, 5.3",
     .steps = "s + ceil(log_f floor(P/2^s)) + 1, s at most log2 P",
     .bytes = "n",
     .wins = "combining is slow: few elements on a network card, long vectors elsewhere",
     .keeps_order = true,
     .parameters = kSplit,
     .build = fnomial_split},
    {.name = "rabenseifner",
     .collective = Collective::reduce,
     .idea = "recursive halving of the vector, then a binomial tree gathers the pieces",
     .source = "Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005",
     .steps = "2 floor(log2 P)",
     .bytes = "n (M-1)/M + n/2",
     .wins = "long vectors",
     .keeps_order = true,
     .parameters = {},
     .build = rabenseifner},
    {.name = "binary",
     .collective = Collective::reduce,
     .idea = "segments of the vector climb an in-order binary tree",
     .source = "Pjesivac-Grbovic et al. 2007",
     .steps = "floor(log2 P); one more if ordered and the root is not P/2",
     .bytes = "n",
     .wins = "long vectors on many ranks",
     .keeps_order = true,
     .parameters = kSegments,
     .build = binary},
    {.name = "chain",
     .collective = Collective::reduce,
     .idea = "segments of the vector travel from both ends towards the root",
     .source = "Chan, Heimlich, Purkayastha and van de Geijn 2007",
     .steps = "P-1",
     .bytes = "n",
     .wins = "very long vectors on few ranks",
     .keeps_order = true,
     .parameters = kSegments,
     .build = chain},
    {.name = "exact-direct",
     .collective = Collective::reduce,
     .idea = "all send to the root, which sums in one step",
     .source = "Collange, Defour, Graillat and Iakymchuk 2015",
     .steps = "1",
     .bytes = "n",
     .wins = "reproducible sums of short vectors",
     .keeps_order = false,
     .sums_exactly = true,
     .parameters = {},
     .build = exact_direct},
    {.name = "exact-scatter",
     .collective = Collective::reduce,
     .idea = "every rank gets its block of all vectors, sums it in one step and sends the result "
             "to the root",
     .source = "Collange, Defour, Graillat and Iakymchuk 2015",
     .steps = "2",
     .bytes = "n",
     .wins = "reproducible sums of long vectors",
     .keeps_order = false,
     .sums_exactly = true,
     .parameters = {},
     .build = exact_scatter},
    {.name = "two-level",
     .collective = Collective::reduce,
     .idea = "combine within hosts, then the sums of hosts by inner",
     .source = "Moody et al. 2003; Kielmann, Hofman, Bal, Plaat and Bhoedjang 1999",
     .steps = "ceil(log_{l+1} k), k the ranks of a host, and those of inner",
     .bytes = "n, or those of inner",
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

}  // namespace unisono::algorithm::reduce

// SPDX-License-Identifier: BSD-3-Clause
// Reductions to a root. P ranks, n the vector, f the degree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::reduce {

Build serial, fnomial;

namespace {

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
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::reduce

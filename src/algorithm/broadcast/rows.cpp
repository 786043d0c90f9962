// SPDX-License-Identifier: BSD-3-Clause
// Broadcasts. P ranks, n the vector, f the degree.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::broadcast {

Build fnomial, flat;

namespace {

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
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::broadcast

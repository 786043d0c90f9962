// SPDX-License-Identifier: BSD-3-Clause
// Many-to-manys. P ranks, m one sender's block, f the degree of a tree. Formulas for the case that
// everyone sends and receives.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::many_to_many {

Build direct, ring, concurrent_broadcast;

namespace {

constexpr Algorithm kRows[] = {
    {.name = "direct",
     .collective = Collective::many_to_many,
     .idea = "every sender multicasts its block to the receivers",
     .source = "Kumar and Kalé 2004, 3 (equation 2)",
     .steps = "1",
     .bytes = "m",
     .wins = "a multicast is cheap; every rank has a core",
     .keeps_order = true,
     .parameters = {},
     .build = direct},
    {.name = "ring",
     .collective = Collective::many_to_many,
     .idea = "blocks travel around a ring of the receivers, forwarded before they are copied",
     .source = "Kumar and Kalé 2004, 4.2",
     .steps = "P-1; one more for a sender that does not receive",
     .bytes = "(P-1) m",
     .wins = "long blocks; networks with contention",
     .keeps_order = true,
     .parameters = {},
     .build = ring},
    {.name = "concurrent-broadcast",
     .collective = Collective::many_to_many,
     .idea = "each block goes down an f-nomial tree of its own",
     .source = "Kumar and Kalé 2004, 3; Moody et al. 2003, 5.2",
     .steps = "ceil(log_f P)",
     .bytes = "(P-1) m",
     .wins = "no multicast; short blocks; few senders",
     .keeps_order = true,
     .parameters = kDegree,
     .build = concurrent_broadcast},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::many_to_many

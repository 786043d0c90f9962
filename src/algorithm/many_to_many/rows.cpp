// SPDX-License-Identifier: BSD-3-Clause
// Many-to-manys. P ranks, m one sender's block.
#include "algorithm/rows.hpp"

namespace unisono::algorithm::many_to_many {

Build direct;

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
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::many_to_many

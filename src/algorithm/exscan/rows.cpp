// SPDX-License-Identifier: BSD-3-Clause
// Exclusive scans. P ranks, n the vector.
#include "algorithm/rows.hpp"
#include "algorithm/scan_of_hosts.hpp"

namespace unisono::algorithm::exscan {

Build two_level, linear, recursive_doubling, exact_direct, serial, exact_serial;

namespace {

constexpr ParameterSpec kTwoLevel[] = {inner_choice(two_level::kScans),
                                       within_choice(two_level::kScans)};

constexpr Algorithm kRows[] = {
    {.name = "linear",
     .collective = Collective::exscan,
     .idea = "the sum of the ranks below travels up the ranks; each adds its part for the next",
     .source = "MPI 3.1, 5.11.2",
     .steps = "P-1",
     .bytes = "n",
     .wins = "few ranks; ranks outnumber cores",
     .keeps_order = true,
     .parameters = {},
     .build = linear},
    {.name = "recursive-doubling",
     .collective = Collective::exscan,
     .idea = "as in the scan, with a second sum without the own part",
     .source = "Hillis and Steele 1986; Sanders and Träff 2006",
     .steps = "ceil(log2 P)",
     .bytes = "n ceil(log2 P)",
     .wins = "many ranks, each with a core",
     .keeps_order = true,
     .parameters = {},
     .build = recursive_doubling},
    {.name = "exact-direct",
     .collective = Collective::exscan,
     .idea = "all multicast their vectors to the higher ranks, which sum them in one step",
     .source = "Collange, Defour, Graillat and Iakymchuk 2015",
     .steps = "1",
     .bytes = "n",
     .wins = "reproducible sums",
     .keeps_order = false,
     .sums_exactly = true,
     .parameters = {},
     .build = exact_direct},
    {.name = "serial",
     .collective = Collective::exscan,
     .idea = "all send to rank 0, which combines in the order of ranks and sends each rank the sum "
             "of those below",
     .source = "Petrini et al. 2003, 4.5",
     .steps = "2",
     .bytes = "(P-1) n",
     .wins = "one rank has to compute all results",
     .keeps_order = true,
     .by_one = always_by_one,
     .only_for_by_one = true,
     .parameters = {},
     .build = serial},
    {.name = "exact-serial",
     .collective = Collective::exscan,
     .idea = "all send to rank 0, which makes each sum in one step and sends each rank the sum of "
             "those below",
     .source = "Collange, Defour, Graillat and Iakymchuk 2015",
     .steps = "2",
     .bytes = "(P-1) n",
     .wins = "reproducible sums; one rank has to compute all results",
     .keeps_order = false,
     .sums_exactly = true,
     .by_one = always_by_one,
     .only_for_by_one = true,
     .parameters = {},
     .build = exact_serial},
    {.name = "two-level",
     .collective = Collective::exscan,
     .idea =
         "exscan within hosts, exscan of the hosts' sums by inner, added on the left within hosts",
     .source = "Sanders and Träff 2006",
     .steps = "those of within and of inner, and 1",
     .bytes = "those of within and of inner, and n",
     .wins = "several hosts with several ranks each",
     .keeps_order = true,
     .uses_hosts = true,
     .parameters = kTwoLevel,
     .only = two_level::kHostsInOrder,
     .refuse = two_level::hosts_out_of_order,
     .build = two_level},
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::exscan

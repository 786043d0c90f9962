// SPDX-License-Identifier: BSD-3-Clause
#include "model/constants.hpp"

#include <array>

namespace unisono::model {
namespace {

// clang-format off
constexpr std::array<ConstantRow, kConstantCount> kRows = {{
    {Constant::split_from, "split_from", Quantity::bytes, "from here on a vector is worth splitting over the ranks"},
    {Constant::priced_from_barrier, "priced_from_barrier", Quantity::bytes, "from so many bytes on, of all blocks together, ranks that help each other choose by price. A barrier has 0 bytes"},
    {Constant::priced_from_broadcast, "priced_from_broadcast", Quantity::bytes, "the same for a broadcast"},
    {Constant::priced_from_reduce, "priced_from_reduce", Quantity::bytes, "the same for a reduce, of the vectors of all ranks"},
    {Constant::priced_from_allreduce, "priced_from_allreduce", Quantity::bytes, "the same for an allreduce"},
    {Constant::priced_from_allgather, "priced_from_allgather", Quantity::bytes, "the same for an allgather"},
    {Constant::priced_from_gather, "priced_from_gather", Quantity::bytes, "the same for a gather"},
    {Constant::priced_from_scatter, "priced_from_scatter", Quantity::bytes, "the same for a scatter"},
    {Constant::priced_from_alltoall, "priced_from_alltoall", Quantity::bytes, "the same for an alltoall"},
    {Constant::priced_from_reduce_scatter, "priced_from_reduce_scatter", Quantity::bytes, "the same for a reduce-scatter"},
    {Constant::priced_from_scan, "priced_from_scan", Quantity::bytes, "the same for a scan"},
    {Constant::priced_from_exscan, "priced_from_exscan", Quantity::bytes, "the same for an exscan"},
    {Constant::priced_from_many_to_many, "priced_from_many_to_many", Quantity::bytes, "the same for a many-to-many"},
    {Constant::few_ranks, "few_ranks", Quantity::ranks, "up to so many ranks, combining at one of them beats a tree"},
    {Constant::link_queue, "link_queue", Quantity::bytes, "what may arrive for one host at once: the capacity of its link's queue"},
    {Constant::link_bound_from, "link_bound_from", Quantity::bytes, "from here on links limit a vector, which is best kept to neighbours"},
    {Constant::folded_below, "folded_below", Quantity::bytes, "below this an allreduce takes few steps also where the number of hosts, a few, is no power of two"},
    {Constant::streamed_broadcast, "streamed_broadcast", Quantity::bytes, "from here on a broadcast between a few hosts goes by streams and not by multicast"},
    {Constant::streamed_block, "streamed_block", Quantity::bytes, "from here on a block of an allgather between a few hosts goes by streams and not by multicast"},
    {Constant::streamed_on_shared_cores, "streamed_on_shared_cores", Quantity::bytes, "the same for messages of broadcast, allgather and allreduce where hosts share the cores of one machine"},
    {Constant::combined_by_tree_below, "combined_by_tree_below", Quantity::bytes, "below this, and from streamed_on_shared_cores on, a tree reduces where more than two hosts share each core"},
    {Constant::streamed_piece, "streamed_piece", Quantity::bytes, "the pieces that streams of long broadcasts, reduces and allreduces carry one after another"},
    {Constant::tiny_block, "tiny_block", Quantity::bytes, "up to here a block is worth a longer way with fewer messages"},
    {Constant::joined_blocks, "joined_blocks", Quantity::bytes, "up to here an alltoall joins blocks into fewer messages where hosts share the cores of one machine"},
    {Constant::joined_by_hosts, "joined_by_hosts", Quantity::bytes, "up to here blocks of an alltoall travel as one with those of the same two hosts"},
    {Constant::combined_by_hosts, "combined_by_hosts", Quantity::bytes, "up to here a block of a reduce-scatter is combined within a host first"},
    {Constant::passed_on, "passed_on", Quantity::bytes, "up to here the first rank of a host may well pass on what a rank has for all others"},
    {Constant::many_of_host, "many_of_host", Quantity::ranks, "from so many ranks of a host on, two levels save more in packets than they cost in steps"},
    {Constant::single_copy_from, "single_copy_from", Quantity::bytes, "from here on one copy is faster than two through buffers, if each rank has a core and nothing is reduced"},
    {Constant::exchanged_whole, "exchanged_whole", Quantity::bytes, "up to here two hosts exchange whole vectors to reduce them; longer ones in halves, in two steps"},
    {Constant::exchanged_whole_by, "exchanged_whole_by", Quantity::ranks, "up to so many hosts, a rank on each, do so where they share the cores of one machine"},
    {Constant::pulled_from, "pulled_from", Quantity::bytes, "from here on messages of a call with single copies are read from their sender's memory; shorter ones are copied"},
    {Constant::staged_up_to, "staged_up_to", Quantity::bytes, "up to so many bytes of a call with local counts go through shared memory; the rest is read from its sender's memory"},
    {Constant::exchange_from, "exchange_from", Quantity::bytes, "from here on two ranks that know both lengths of an alltoallv exchange faster by an allgatherv"},
    {Constant::referred_from, "referred_from", Quantity::bytes, "from here on a message of a reduction in memory that all ranks share is read where it is"},
    {Constant::referred_in_place_from, "referred_in_place_from", Quantity::bytes, "the same where input and output are one buffer"},
    {Constant::moved_from, "moved_from", Quantity::bytes, "from here on the data of successive calls of two ranks of a host moves on through longer receive buffers"},
    {Constant::data_round, "data_round", Quantity::bytes, "the data that a rank of a host receives goes round so many bytes; more than the inner caches of its core"},
    {Constant::rank_spin, "rank_spin", Quantity::time, "a waiting rank that has a core of its own spins for so long before it yields"},
    {Constant::rank_turn, "rank_turn", Quantity::time, "a turn of a waiting rank, which looks and yields, where ranks share cores"},
    {Constant::background_spin, "background_spin", Quantity::time, "a thread that only communicates spins for so long before it sleeps, where ranks have a core each"},
    {Constant::nic_broadcast, "nic_broadcast", Quantity::bytes, "up to here a broadcast is faster in the NIC path than one multicast of a host process"},
    {Constant::nic_real_vector, "nic_real_vector", Quantity::bytes, "up to here sums of floating-point numbers are faster in the NIC path, which adds them in software"},
    {Constant::nic_gathered, "nic_gathered", Quantity::bytes, "up to so many bytes for each host, the blocks of all ranks are gathered faster by the tree of the NIC path"},
    {Constant::nic_host_block, "nic_host_block", Quantity::bytes, "up to so many bytes of all ranks of a host, the NIC path gathers the blocks of hosts faster than processes do"},
    {Constant::nic_block, "nic_block", Quantity::time, "a block of an allgather that comes by itself and is kept"},
    {Constant::nic_block_per_byte, "nic_block_per_byte", Quantity::time_per_byte, "the same, for each byte"},
    {Constant::nic_message, "nic_message", Quantity::time, "a message of joined blocks that is kept and sent on"},
    {Constant::nic_joined, "nic_joined", Quantity::time, "a block in such a message"},
    {Constant::nic_joined_per_byte, "nic_joined_per_byte", Quantity::time_per_byte, "the same, for each byte"},
    {Constant::nic_step, "nic_step", Quantity::time, "a further step of doubling"},
    {Constant::nic_back_off, "nic_back_off", Quantity::time, "after so long the root of a barrier that asks repeats its question, and each time after twice as long"},
    {Constant::nic_back_off_most, "nic_back_off_most", Quantity::time, "... up to so long"},
    {Constant::nic_root_multicast, "nic_root_multicast", Quantity::ranks, "on so many hosts and more, roots of broadcasts multicast in the NIC path"},
}};
// clang-format on

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].id != static_cast<Constant>(i)) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::span<const ConstantRow, kConstantCount> constant_rows() { return kRows; }

}  // namespace unisono::model

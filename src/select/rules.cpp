// SPDX-License-Identifier: BSD-3-Clause
#include "select/rules.hpp"

#include <bit>

namespace unisono::select {
namespace {

using schedule::Collective;
using schedule::Shape;

using model::Constant;

// A number of bytes or ranks that the machine's file gives.
std::int64_t limit(const Situation& call, Constant constant) {
  return model::constant_of(call.machine(), constant).count();
}
bool has_few(const Situation& call, std::int64_t number) {
  return number <= limit(call, Constant::few_ranks);
}

bool always(const Situation&) { return true; }
bool oversubscribed(const Situation& call) { return call.oversubscribed(); }
bool multicasts(const Situation& call) { return call.now.multicast; }
// One rank that gathers for all would have to release them one after another.
bool oversubscribed_without_multicast(const Situation& call) {
  return call.oversubscribed() && !multicasts(call);
}

bool one_combines(const Situation& call) {
  return call.now.oversubscribed || has_few(call, call.shape.ranks);
}
bool is_short(const Situation& call) { return call.bytes <= limit(call, Constant::split_from); }
bool can_split(const Situation& call) {
  return call.shape.count >= call.shape.ranks && !call.shape.ordered;
}
bool splits(const Situation& call) {
  const bool is_long =
      call.shape.hosts.given() ? !is_short(call) : call.bytes >= limit(call, Constant::split_from);
  return is_long && can_split(call);
}
// Between two ranks, a ring sends as many bytes as an exchange of whole vectors, and has two steps.
// It reduces only half of the vector, which pays where the vector is longer.
bool exchanged_by_two_hosts(const Situation& call) {
  return call.shape.ranks == 2 && call.shape.hosts.given() && call.shape.hosts.are_alone() &&
         call.bytes <= limit(call, Constant::exchanged_whole);
}
bool oversubscribed_and_long(const Situation& call) {
  return call.oversubscribed() && call.bytes >= limit(call, Constant::split_from);
}
bool oversubscribed_and_tiny(const Situation& call) {
  return call.oversubscribed() && call.bytes <= limit(call, Constant::tiny_block);
}
bool oversubscribed_and_tiny_without_multicast(const Situation& call) {
  return oversubscribed_and_tiny(call) && !multicasts(call);
}
// Trees and Bruck's way save messages where many ranks send; they need to know all counts.
bool saves_messages(const Situation& call) {
  return !call.shape.blocks.given() && !call.now.oversubscribed && !has_few(call, call.shape.ranks);
}
bool tree_of_blocks(const Situation& call) { return saves_messages(call) && is_short(call); }
bool tiny_blocks_of_many(const Situation& call) {
  return saves_messages(call) && call.bytes <= limit(call, Constant::tiny_block);
}
// Several hosts, some with several ranks: one contribution for each host.
bool shares_hosts(const Situation& call) { return call.shares_hosts(); }
bool shares_hosts_multicasts(const Situation& call) {
  return call.shares_hosts() && call.now.leaders_multicast;
}
bool shares_hosts_few(const Situation& call) {
  return call.shares_hosts() && has_few(call, call.shape.hosts.hosts());
}
bool shares_hosts_short(const Situation& call) { return call.shares_hosts() && is_short(call); }
bool shares_hosts_short_few(const Situation& call) {
  return shares_hosts_few(call) && is_short(call);
}
bool fills_hosts(const Situation& call) {
  return call.shares_hosts() &&
         call.shape.ranks >= limit(call, Constant::many_of_host) * call.shape.hosts.hosts();
}
bool blocks_joined_by_hosts(const Situation& call) {
  return call.shares_hosts() && !call.shape.blocks.given() &&
         call.bytes <= limit(call, Constant::joined_by_hosts);
}
bool blocks_combined_by_hosts(const Situation& call) {
  return call.shares_hosts() && call.bytes <= limit(call, Constant::combined_by_hosts);
}
bool shares_hosts_tree_of_blocks(const Situation& call) {
  return call.shares_hosts() && tree_of_blocks(call);
}
bool shares_hosts_tree_of_blocks_few(const Situation& call) {
  return shares_hosts_few(call) && tree_of_blocks(call);
}
bool fits_queues(const Situation& call) {
  return call.bytes * call.shape.ranks <= limit(call, Constant::link_queue);
}
bool shares_hosts_multicasts_short(const Situation& call) {
  return shares_hosts_multicasts(call) && fits_queues(call);
}
// The fewest messages of all: each host sends its vector once.
bool combined_on_shared_cores(const Situation& call) {
  return call.hosts_share_cores() && multicasts(call) && fits_queues(call);
}
bool tiny_blocks_on_shared_cores(const Situation& call) {
  return call.hosts_share_cores() && call.shape.hosts.hosts() > 2 && !call.shape.blocks.given() &&
         call.bytes <= limit(call, Constant::tiny_block);
}
// Bruck's way has a message for each halving of the hosts, with half of a rank's blocks. So three
// hosts send as many messages as otherwise.
bool blocks_joined_on_shared_cores(const Situation& call) {
  return call.hosts_share_cores() && call.shape.hosts.hosts() > 3 && !call.shape.blocks.given() &&
         (call.bytes <= limit(call, Constant::tiny_block) ||
          call.bytes * call.shape.ranks / 2 <= limit(call, Constant::joined_blocks));
}
// More than two ranks for each core: each further message of a rank waits for its turn.
bool crowds_shared_cores(const Situation& call) {
  return call.hosts_share_cores() && call.shape.ranks > 2 * call.now.shared_cores;
}
bool blocks_released_on_shared_cores(const Situation& call) {
  if (!multicasts(call)) return false;
  return tiny_blocks_on_shared_cores(call) ||
         (crowds_shared_cores(call) &&
          call.bytes * call.shape.ranks <= limit(call, Constant::passed_on));
}
// From about half of the limit on, the sums of all ranks are too long for each of them.
bool halved_on_shared_cores(const Situation& call) {
  const std::int64_t all = call.bytes * call.shape.ranks;
  return call.hosts_share_cores() && all >= limit(call, Constant::passed_on) / 2 &&
         all <= limit(call, Constant::split_from);
}
bool long_between_hosts(const Situation& call) {
  return call.shape.hosts.given() && !fits_queues(call);
}
// A multicast is sent at once, and queues on the way drop what they cannot hold. Streams adapt. In
// a chain each link carries the vector once, as with a multicast; its length counts where many
// hosts follow one another.
bool few_by_streams_from(const Situation& call, Constant least) {
  if (!call.shape.hosts.given() || !call.now.streams) return false;
  const std::int64_t hosts = call.shape.hosts.hosts();
  return hosts > 2 && has_few(call, hosts) && call.bytes >= limit(call, least);
}
bool long_by_streams(const Situation& call) {
  return few_by_streams_from(call, Constant::link_bound_from);
}
// A vector that links do not limit takes fewer steps down a tree. Where ranks share hosts, two
// levels with a multicast are as fast.
bool middle_by_streams(const Situation& call) {
  return !call.shares_hosts() && few_by_streams_from(call, Constant::streamed_broadcast);
}
bool blocks_by_streams(const Situation& call) {
  return !call.shares_hosts() && !(crowds_shared_cores(call) && fits_queues(call)) &&
         few_by_streams_from(call, Constant::streamed_block);
}
// There a message costs processor time, of which streams need less: the kernel sends and receives
// many packets at once.
bool on_shared_cores_by_streams(const Situation& call, std::int64_t message_bytes) {
  const Shape& shape = call.shape;
  const bool shares_cores = call.now.shared_cores > 0 && shape.ranks > call.now.shared_cores;
  return call.now.streams && shares_cores && shape.hosts.given() && !shape.blocks.given() &&
         has_few(call, shape.hosts.hosts()) &&
         message_bytes >= limit(call, Constant::streamed_on_shared_cores);
}
// On fast links, packets cost processor time, and the number of rounds decides. Many hosts make the
// folding of surplus ranks worthwhile, and so do vectors that are not too long. Where hosts share
// cores, no link limits a longer vector. Without surplus ranks it takes as many bytes as a ring.
bool splits_between_hosts(const Situation& call) {
  if (!call.shape.hosts.given() || is_short(call) || !can_split(call)) return false;
  const int hosts = call.shape.hosts.hosts();
  const bool has_surplus = !std::has_single_bit(static_cast<unsigned>(hosts));
  if (call.bytes >= limit(call, Constant::link_bound_from)) {
    return hosts > 2 && !has_surplus && on_shared_cores_by_streams(call, call.bytes / hosts);
  }
  return !has_surplus || !has_few(call, hosts) || call.bytes < limit(call, Constant::folded_below);
}
bool short_by_streams(const Situation& call) {
  return on_shared_cores_by_streams(call, call.bytes) && call.shape.hosts.hosts() > 2;
}
bool short_by_streams_of_single_ranks(const Situation& call) {
  return !call.shares_hosts() && short_by_streams(call);
}
// There a root that takes all vectors one by one waits for a turn with each of them. For longer
// ones, copies take more time than turns.
bool just_by_streams_where_ranks_wait(const Situation& call) {
  return crowds_shared_cores(call) && short_by_streams_of_single_ranks(call) &&
         call.bytes < limit(call, Constant::combined_by_tree_below);
}
bool shares_hosts_short_by_streams(const Situation& call) {
  return call.shares_hosts() && short_by_streams(call);
}
bool short_blocks_by_streams(const Situation& call) {
  return !call.shares_hosts() && short_by_streams(call) && fits_queues(call);
}
bool short_blocks_by_streams_doubling(const Situation& call) {
  return short_blocks_by_streams(call) &&
         std::has_single_bit(static_cast<unsigned>(call.shape.ranks));
}
bool shares_hosts_blocks_by_streams(const Situation& call) {
  return call.shares_hosts() && on_shared_cores_by_streams(call, call.bytes) && fits_queues(call);
}
// Each sends a part of its vector by a stream, in place of the whole to one that combines.
bool combined_by_one(const Situation& call) {
  return combined_on_shared_cores(call) &&
         !(call.shape.hosts.hosts() > 2 && can_split(call) &&
           on_shared_cores_by_streams(call, call.bytes / call.shape.ranks));
}
// A few hosts exchange whole vectors in half as many steps as parts of them. On shared cores each
// step costs turns, and up to some length these take longer than the additional bytes. With more
// than two hosts for each core, bytes count.
bool exchanged_in_few_steps(const Situation& call) {
  return call.shape.ranks <= limit(call, Constant::exchanged_whole_by) &&
         call.shape.hosts.hosts() > 2 && !call.shares_hosts() && can_split(call) &&
         !crowds_shared_cores(call) &&
         on_shared_cores_by_streams(call, call.bytes / call.shape.ranks) &&
         call.bytes <= limit(call, Constant::exchanged_whole);
}
// It pays while all that the one host receives is not much longer than such a message.
bool combined_by_one_host(const Situation& call) {
  return shares_hosts_multicasts(call) &&
         !on_shared_cores_by_streams(call, call.bytes * (call.shape.hosts.hosts() - 1) / 2);
}
bool shares_hosts_long_by_streams(const Situation& call) {
  return call.shares_hosts() && long_by_streams(call);
}
bool shares_hosts_splits(const Situation& call) { return call.shares_hosts() && splits(call); }
bool shares_hosts_splits_few_steps(const Situation& call) {
  return call.shares_hosts() && splits_between_hosts(call);
}
// The number of packets equals the number of hosts, instead of several for each.
bool multicasts_between_hosts(const Situation& call) {
  return call.shape.hosts.given() && multicasts(call);
}
// Two hosts exchange a packet in one step; gathering and releasing take two.
bool more_than_two_hosts_multicast(const Situation& call) {
  return multicasts_between_hosts(call) && call.shape.hosts.hosts() > 2;
}
bool shares_more_than_two_hosts_multicasts(const Situation& call) {
  return shares_hosts_multicasts(call) && call.shape.hosts.hosts() > 2;
}
// Every host sends one packet, and one multicast brings all the sums, instead of a packet for each
// pair of hosts.
bool sums_released_by_multicast(const Situation& call) {
  return more_than_two_hosts_multicast(call) && !call.shares_hosts() &&
         call.bytes * call.shape.ranks <= limit(call, Constant::passed_on);
}
bool doubles(const Situation& call) { return !call.now.oversubscribed && is_short(call); }
// A chain of neighbours sends one message between two hosts, and none but the next rank waits for
// it. Few steps save less than their messages cost, unless the chain is long.
bool chains_few_hosts(const Situation& call) {
  return doubles(call) && call.shape.hosts.given() && call.shape.hosts.are_neighbours() &&
         has_few(call, call.shape.hosts.hosts()) && !fills_hosts(call);
}
bool shares_hosts_doubles(const Situation& call) { return call.shares_hosts() && doubles(call); }
bool shares_hosts_doubles_few(const Situation& call) {
  return shares_hosts_few(call) && doubles(call);
}

// One rank applies the operator (UNISONO_HETEROGENEOUS).
bool by_one(const Situation& call) { return call.shape.by_one; }
bool by_one_without_multicast(const Situation& call) {
  return call.shape.by_one && !multicasts(call) && !has_few(call, call.shape.ranks);
}

// Reproducible sums.
bool exact(const Situation& call) { return call.shape.exact; }
bool exact_splits(const Situation& call) {
  return call.shape.exact && call.shape.count >= call.shape.ranks &&
         call.bytes >= limit(call, Constant::split_from);
}
// Two terms need one addition, which is not worth a second step.
bool exact_splits_with_cores(const Situation& call) {
  return exact_splits(call) && !call.oversubscribed() && call.shape.ranks > 2;
}
bool exact_by_one(const Situation& call) {
  return call.shape.exact && (call.oversubscribed() || !has_few(call, call.shape.ranks));
}

// clang-format off
constexpr Rule kRules[] = {
    {Collective::barrier, "two-level", false, shares_more_than_two_hosts_multicasts,
     "hosts share memory: each sends one signal, and a multicast releases all", "gather-release"},
    {Collective::barrier, "two-level", false, shares_hosts,
     "hosts share memory, so that one rank of each signals to others", "dissemination"},
    {Collective::barrier, "gather-release", false, more_than_two_hosts_multicast,
     "each host sends one signal, and a multicast releases all; the fan-in is the cheapest", {}, true},
    {Collective::barrier, "gather-broadcast", false, oversubscribed_without_multicast,
     "ranks outnumber cores and there is no multicast, so that a tree gathers and releases"},
    {Collective::barrier, "gather-release", true, oversubscribed,
     "ranks outnumber cores, so that one gathers and releases all"},
    {Collective::barrier, "dissemination", false, always,
     "every rank has a core, and this takes the fewest steps"},
    {Collective::broadcast, "two-level", false, shares_hosts_long_by_streams,
     "hosts share memory: segments of a long vector follow one another from host to host", "chain"},
    {Collective::broadcast, "chain", false, long_by_streams,
     "segments of a long vector follow one another from host to host"},
    {Collective::broadcast, "fnomial", false, middle_by_streams,
     "few hosts pass a vector on by streams, which lose nothing; few steps", "2"},
    {Collective::broadcast, "fnomial", false, short_by_streams_of_single_ranks,
     "few hosts share the cores of one machine: streams take less of them than a multicast", "2"},
    {Collective::broadcast, "two-level", false, shares_hosts_short_by_streams,
     "hosts share memory, and the cores of one machine: streams take less than a multicast",
     "fnomial"},
    {Collective::broadcast, "two-level", false, shares_hosts_multicasts,
     "hosts share memory: one multicast to them, and one in each", "flat,first"},
    {Collective::broadcast, "two-level", false, shares_hosts,
     "hosts share memory, so that each gets the vector once", "fnomial"},
    {Collective::broadcast, "flat", false, multicasts,
     "a message to all is staged once"},
    {Collective::broadcast, "fnomial", false, always,
     "there is no multicast, so that ranks pass it on"},
    {Collective::reduce, "serial", false, by_one,
     "the job is heterogeneous, so that the root applies the operator"},
    {Collective::reduce, "exact-scatter", false, exact_splits_with_cores,
     "a reproducible sum of a long vector, whose blocks are each summed by one rank"},
    {Collective::reduce, "exact-direct", false, exact,
     "a reproducible sum of a short vector, for which the root gets all"},
    {Collective::reduce, "two-level", false, shares_hosts_few,
     "hosts share memory, so that each sends one vector; few hosts", "serial"},
    {Collective::reduce, "two-level", false, shares_hosts,
     "hosts share memory, so that each sends one vector", "fnomial"},
    {Collective::reduce, "fnomial", false, just_by_streams_where_ranks_wait,
     "many hosts share the cores of one machine, and a tree spares the root most streams", "4"},
    {Collective::reduce, "serial", false, one_combines,
     "few ranks, or more ranks than cores, so that the root combines for all"},
    {Collective::reduce, "fnomial", false, always,
     "many ranks with a core each share the work"},
    {Collective::allreduce, "mock-reduce-broadcast", false, by_one_without_multicast,
     "the job is heterogeneous, so that rank 0 applies the operator; a tree brings all the result",
     "serial,usual,usual,fnomial"},
    {Collective::allreduce, "gather-release", true, by_one,
     "the job is heterogeneous, so that rank 0 applies the operator, and its result goes to all"},
    {Collective::allreduce, "exact-release", false, by_one,
     "a reproducible sum in a heterogeneous job, which rank 0 computes for all"},
    {Collective::allreduce, "exact-scatter", false, exact_splits,
     "a reproducible sum of a long vector, whose blocks are each summed by one rank"},
    {Collective::allreduce, "exact-release", false, exact_by_one,
     "a reproducible sum: one rank gets all vectors, and its result goes to all at once"},
    {Collective::allreduce, "exact-direct", false, exact,
     "a reproducible sum of a short vector, for which every rank gets all"},
    {Collective::allreduce, "two-level", false, shares_hosts_splits_few_steps,
     "hosts share memory, and a long vector is worth splitting over them; few steps",
     "reduce-scatter-allgather"},
    {Collective::allreduce, "two-level", false, shares_hosts_splits,
     "hosts share memory, and a long vector is worth splitting over them", "ring"},
    {Collective::allreduce, "two-level", false, combined_by_one_host,
     "hosts share memory: each sends one vector, and a multicast brings all the result",
     "gather-release"},
    {Collective::allreduce, "two-level", false, shares_hosts,
     "hosts share memory, so that one rank of each exchanges with others", "pairwise"},
    {Collective::allreduce, "reduce-broadcast", false, oversubscribed_and_long,
     "ranks outnumber cores, so that pieces of a long vector would wait for each rank's turn"},
    {Collective::allreduce, "pairwise", false, exchanged_by_two_hosts,
     "two hosts send no more bytes than by halves, in one step"},
    {Collective::allreduce, "pairwise", false, exchanged_in_few_steps,
     "few hosts share the cores of one machine: whole vectors take half the steps of parts"},
    {Collective::allreduce, "gather-release", false, combined_by_one,
     "hosts share the cores of one machine: each sends its vector once, and a multicast brings all the result"},
    {Collective::allreduce, "reduce-scatter-allgather", false, splits_between_hosts,
     "a long vector is worth splitting over the hosts; few steps"},
    {Collective::allreduce, "ring", false, splits,
     "a long vector is worth splitting over the ranks"},
    {Collective::allreduce, "reduce-broadcast", false, oversubscribed_without_multicast,
     "ranks outnumber cores and there is no multicast, so that a tree combines and releases"},
    {Collective::allreduce, "gather-release", true, oversubscribed,
     "ranks outnumber cores, so that one combines for all"},
    {Collective::allreduce, "gather-release", false, multicasts_between_hosts,
     "each host sends one vector, and a multicast brings all the result"},
    {Collective::allreduce, "pairwise", false, always,
     "every rank has a core, or the vector cannot be split; few steps"},
    {Collective::allgather, "two-level", false, shares_hosts_blocks_by_streams,
     "hosts share memory, and the cores of one machine: streams take less than multicasts",
     "recursive-doubling"},
    {Collective::allgather, "two-level", false, shares_hosts_multicasts_short,
     "hosts share memory: each multicasts its blocks to the others", "direct"},
    {Collective::allgather, "two-level", false, shares_hosts_short,
     "hosts share memory, so that one rank of each exchanges blocks; few steps",
     "recursive-doubling"},
    {Collective::allgather, "two-level", false, shares_hosts,
     "hosts share memory, so that one rank of each exchanges blocks, which are long", "ring"},
    {Collective::allgather, "gather-broadcast", false, oversubscribed_and_tiny_without_multicast,
     "ranks outnumber cores, blocks are tiny and there is no multicast, so that a tree gathers"},
    {Collective::allgather, "gather-release", false, oversubscribed_and_tiny,
     "ranks outnumber cores and blocks are tiny, so that one gathers for all"},
    {Collective::allgather, "gather-release", false, blocks_released_on_shared_cores,
     "hosts share the cores of one machine and blocks are short, so that one gathers for all"},
    {Collective::allgather, "ring", false, long_between_hosts,
     "blocks are long: they fill each host's link one after another, and none is lost to a crowd"},
    {Collective::allgather, "recursive-doubling", false, short_blocks_by_streams_doubling,
     "few hosts share the cores of one machine: streams take less of them than multicasts; few steps"},
    {Collective::allgather, "bruck", false, short_blocks_by_streams,
     "few hosts share the cores of one machine: streams take less of them than multicasts; few steps"},
    {Collective::allgather, "ring", false, blocks_by_streams,
     "few hosts pass blocks on by streams, which lose nothing; only neighbours talk"},
    {Collective::allgather, "direct", false, multicasts,
     "a block for all is staged once"},
    {Collective::allgather, "recursive-doubling", false, is_short,
     "there is no multicast and blocks are short; few steps"},
    {Collective::allgather, "ring", false, always,
     "there is no multicast and blocks are long; only neighbours talk"},
    {Collective::gather, "two-level", false, shares_hosts_tree_of_blocks_few,
     "short blocks of many ranks with a core each, those of a host as one; few hosts", "linear"},
    {Collective::gather, "two-level", false, shares_hosts_tree_of_blocks,
     "short blocks of many ranks with a core each, those of a host as one", "fnomial"},
    {Collective::gather, "fnomial", false, tree_of_blocks,
     "short blocks of many ranks with a core each; fewer messages for the root"},
    {Collective::gather, "linear", false, always,
     "few ranks, more ranks than cores, or blocks that are long or differ; one step"},
    {Collective::scatter, "two-level", false, shares_hosts_short_few,
     "hosts share memory, so that each gets its blocks as one; few hosts", "linear"},
    {Collective::scatter, "two-level", false, shares_hosts_short,
     "hosts share memory, so that each gets its blocks as one", "fnomial"},
    {Collective::scatter, "fnomial", false, tree_of_blocks,
     "short blocks for many ranks with a core each; fewer messages for the root"},
    {Collective::scatter, "linear", false, always,
     "few ranks, more ranks than cores, or blocks that are long or differ; one step"},
    {Collective::alltoall, "multi-leader", false, blocks_joined_by_hosts,
     "hosts share memory, so that two hosts exchange their short blocks as one message"},
    {Collective::alltoall, "bruck", false, blocks_joined_on_shared_cores,
     "hosts share the cores of one machine and blocks are short; fewer messages"},
    {Collective::alltoall, "bruck", false, tiny_blocks_of_many,
     "tiny blocks between many ranks with a core each; fewer messages"},
    {Collective::alltoall, "linear", false, always,
     "few ranks, more ranks than cores, or blocks that are not tiny or differ; one step"},
    {Collective::reduce_scatter, "serial", false, by_one,
     "the job is heterogeneous, so that rank 0 applies the operator"},
    {Collective::reduce_scatter, "exact-serial", false, by_one,
     "a reproducible sum in a heterogeneous job, which rank 0 computes for all"},
    {Collective::reduce_scatter, "exact-direct", false, exact,
     "a reproducible sum: every rank gets its block of all"},
    {Collective::reduce_scatter, "two-level", false, blocks_combined_by_hosts,
     "hosts share memory, so that each sends one vector", "pairwise"},
    {Collective::reduce_scatter, "ring", false, shares_hosts,
     "hosts share memory and blocks are long: each passes one link between two hosts at a time"},
    {Collective::reduce_scatter, "recursive-halving", false, halved_on_shared_cores,
     "hosts share the cores of one machine: fewer messages, which get shorter"},
    {Collective::reduce_scatter, "mock-allreduce", false, sums_released_by_multicast,
     "each host sends one short vector, and a multicast brings all the sums", "gather-release"},
    {Collective::reduce_scatter, "pairwise", false, always,
     "one step"},
    {Collective::scan, "serial", false, by_one,
     "the job is heterogeneous, so that rank 0 applies the operator"},
    {Collective::scan, "exact-serial", false, by_one,
     "a reproducible sum in a heterogeneous job, which rank 0 computes for all"},
    {Collective::scan, "exact-direct", false, exact,
     "a reproducible sum: every rank gets the vectors of all below"},
    {Collective::scan, "linear", false, chains_few_hosts,
     "a few hosts: one message from each to the next"},
    {Collective::scan, "two-level", false, shares_hosts_doubles_few,
     "hosts share memory, so that each sends its sum once; few hosts", "linear,linear"},
    {Collective::scan, "two-level", false, shares_hosts_doubles,
     "hosts share memory, so that each sends its sums; few steps", "recursive-doubling,linear"},
    {Collective::scan, "recursive-doubling", false, doubles,
     "every rank has a core and the vector is short; few steps"},
    {Collective::scan, "linear", false, always,
     "more ranks than cores, or a long vector; each rank sends once"},
    {Collective::exscan, "serial", false, by_one,
     "the job is heterogeneous, so that rank 0 applies the operator"},
    {Collective::exscan, "exact-serial", false, by_one,
     "a reproducible sum in a heterogeneous job, which rank 0 computes for all"},
    {Collective::exscan, "exact-direct", false, exact,
     "a reproducible sum: every rank gets the vectors of all below"},
    {Collective::exscan, "linear", false, chains_few_hosts,
     "a few hosts: one message from each to the next"},
    {Collective::exscan, "two-level", false, shares_hosts_doubles_few,
     "hosts share memory, so that each sends its sum once; few hosts", "linear,linear"},
    {Collective::exscan, "two-level", false, shares_hosts_doubles,
     "hosts share memory, so that each sends its sums; few steps", "recursive-doubling,linear"},
    {Collective::exscan, "recursive-doubling", false, doubles,
     "every rank has a core and the vector is short; few steps"},
    {Collective::exscan, "linear", false, always,
     "more ranks than cores, or a long vector; each rank sends once"},
    {Collective::many_to_many, "direct", false, multicasts,
     "a block for all receivers is staged once"},
    {Collective::many_to_many, "concurrent-broadcast", false, always,
     "there is no multicast, so that ranks pass blocks on"},
};
// clang-format on

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace unisono::select

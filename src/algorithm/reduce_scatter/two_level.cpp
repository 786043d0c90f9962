// SPDX-License-Identifier: BSD-3-Clause
// Two levels: each host's vectors are combined towards its leader, up a tree through shared memory;
// the leaders run a reduce-scatter of the hosts' sums, in which a host's block is those of its
// ranks; then each leader gives its host's ranks theirs. The network carries the vectors of as many
// ranks as there are hosts.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, inner pairwise
//   within     1 -> 0: 01, 3 -> 2: 23
//   between    0 -> 2 4, 2 -> 0 4, 4 -> 0 2    rank 0: ((01)(23))4 of blocks 0 1
//   within     0 -> 1: block 1, 2 -> 3: block 3
//
// Among leaders the vector is in the order of hosts. Where that is not the order of ranks, leaders
// sort their sums in scratch memory.
// Steps: ceil(log_{l+1} of the ranks of a host) + 1, and those of the inner reduce-scatter. Bytes:
// those of the inner one, and the whole vector, or the blocks of the other ranks of a host.
// Source: Moody et al., SC 2003 (a node combines in shared memory first); Kielmann, Hofman, Bal,
// Plaat and Bhoedjang, PPoPP 1999.
#include "algorithm/by_host.hpp"

namespace unisono::algorithm::reduce_scatter {

namespace {

// A leader gives each rank of its host its block of `blocks`, after all of `done`.
void hand_out(Builder& b, const two_level::Levels& levels, const two_level::ByHost& by_host,
              int host, Range blocks, const std::vector<OpId>& done) {
  for (int i = 1; i < levels.size(host); ++i) {
    b.send(levels.member(host, i), 0, by_host.part_of_host(blocks, host, i));
    for (const OpId before : done) b.also_after(before);
  }
  const Range own = by_host.part_of_host(blocks, host, 0);
  b.copy(schedule::output(0, own.count), own);
  for (const OpId before : done) b.also_after(before);
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::Levels levels(shape);
  const int fan_in = parameters.values[1];
  const auto branch = two_level::branch(shape, levels, rank, fan_in);
  const int host = levels.host(rank);
  const std::int64_t count = schedule::whole_count(shape);
  Builder b(shape, rank);
  // Slots: the own block (none at a leader), one a child, those among leaders.
  const bool leads = branch.parent < 0;
  if (!leads) b.slot(levels.leader(host), schedule::block(shape, rank).count);
  for (const int child : branch.children) b.slot(child, count);
  Value sum{schedule::input(0, count)};
  if (!branch.children.empty()) {
    sum = two_level::combine(b, sum, b.scratch(count), branch, leads ? 0 : 1);
  }
  if (!leads) {
    give_and_take(b, branch.parent, branch.child_number + (levels.leads(branch.parent) ? 0 : 1),
                  sum, 0);
    return std::move(b).take();
  }
  const two_level::ByHost by_host(shape, levels);
  if (levels.hosts() == 1) {
    hand_out(b, levels, by_host, host, sum.range, {sum.ready});
    return std::move(b).take();
  }
  sum = by_host.from_ranks(b, sum);
  const bool is_alone = levels.size(host) == 1;
  const Range blocks =
      is_alone ? schedule::output(0, by_host.count(host)) : b.scratch(by_host.count(host));
  const auto inner = two_level::inner_schedule(shape, parameters, levels, by_host.inner(), host);
  const auto done =
      two_level::embed(b, inner, {sum.range, blocks, {sum.ready}}, levels, [&](int other) {
        const auto there = two_level::branch(shape, levels, levels.leader(other), fan_in);
        return static_cast<SlotId>(there.children.size());
      });
  if (!is_alone) hand_out(b, levels, by_host, host, blocks, done);
  return std::move(b).take();
}

}  // namespace unisono::algorithm::reduce_scatter

// SPDX-License-Identifier: BSD-3-Clause
// Two levels: an exclusive scan within each host through shared memory, to which its highest rank
// adds its own part: the host's sum; an exclusive scan of these sums among the hosts' highest
// ranks; then each of them multicasts the sum of the hosts below in its host, where every rank puts
// it on the left of its own. The network carries a vector or a few for each host, and hosts scan at
// the same time.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, linear among leaders and within
//   within     0 -> 1: 0       2 -> 3: 2
//   between    1 -> 3: (01)    3 -> 4: (01)(23)
//   within     3 -> 2: (01)    rank 3 has (01)2, rank 2 has (01)
//
// A host's ranks have to follow one another, whether or not the operator commutes: what is below a
// rank would otherwise be no sum of hosts.
// Steps: those of the exscan within a host, of that among the leaders, and 1. Bytes: those of both,
// and n.
// Source: Sanders and Träff, EuroPVM/MPI 2006 (scans within and among nodes).
#include "algorithm/scan_of_hosts.hpp"

namespace unisono::algorithm::exscan {

namespace {

using two_level::ScanOfHosts;

void after_all(Builder& b, const std::vector<OpId>& done) {
  for (const OpId before : done) b.also_after(before);
}

// output = below op own, after all of `done`; the lowest rank of a host has no `own`.
void finish(Builder& b, const ScanOfHosts& hosts, Range below, Range own,
            const std::vector<OpId>& done) {
  const Range output = schedule::output(0, below.count);
  if (hosts.has_ranks_below()) {
    b.reduce(output, below, own);
  } else {
    b.copy(output, below);
  }
  after_all(b, done);
}

// The highest rank of a host sends its host's sum to the others and distributes theirs in this
// host.
void lead(Builder& b, const ScanOfHosts& hosts, const Shape& shape) {
  const Range input = schedule::input(0, shape.count);
  Value sum{input};
  Range own;
  std::vector<OpId> done;
  if (hosts.has_ranks_below()) {
    // Not in the output: in place, that is the input, which is still to be added.
    own = b.scratch(shape.count);
    done = hosts.within_host(b, input, own);
  }
  // No rank reads the highest host's sum.
  if (hosts.has_ranks_below() && hosts.has_hosts_above()) {
    sum.range = b.scratch(shape.count);
    sum.ready = b.reduce(sum.range, own, input);
    after_all(b, done);
    done = {sum.ready};
  }
  const Range below = hosts.has_hosts_below() ? b.scratch(shape.count) : Range{};
  std::vector<OpId> heard = hosts.among_leaders(b, {sum.range, below, {sum.ready}});
  if (hosts.has_hosts_below()) {
    hosts.release(b, below, heard);
    if (!hosts.has_hosts_above()) heard.insert(heard.end(), done.begin(), done.end());
    finish(b, hosts, below, own, heard);
  } else if (hosts.has_ranks_below()) {
    b.copy(schedule::output(0, shape.count), own, {sum.ready});
  }
}

}  // namespace

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const ScanOfHosts hosts(shape, parameters, rank);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  hosts.make_slot_of_hosts_below(b);
  if (hosts.leads() && hosts.hosts() > 1) {
    lead(b, hosts, shape);
    return std::move(b).take();
  }
  std::vector<OpId> done = hosts.within_host(b, schedule::input(0, shape.count), output);
  if (hosts.has_hosts_below()) {
    done.push_back(b.wait(0));
    finish(b, hosts, b.of(0), output, done);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::exscan

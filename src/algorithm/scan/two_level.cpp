// SPDX-License-Identifier: BSD-3-Clause
// Two levels: a scan within each host through shared memory, after which its highest rank has the
// host's sum; an exclusive scan of these sums among the hosts' highest ranks; then each of them
// multicasts the sum of the hosts below in its host, where every rank puts it on the left of its
// own. The network carries a vector or a few for each host, and hosts scan at the same time.
//
//   P = 5 on hosts 0 1 | 2 3 | 4, linear among leaders and within
//   within     0 -> 1: (01)    2 -> 3: (23)
//   between    1 -> 3: (01)    3 -> 4: (01)(23)
//   within     3 -> 2: (01)
//
// A host's ranks have to follow one another, whether or not the operator commutes: what is below a
// rank would otherwise be no sum of hosts.
// Steps: those of the scan within a host, of the exscan among the leaders, and 1. Bytes: those of
// both, and n.
// Source: Sanders and Träff, EuroPVM/MPI 2006 (scans within and among nodes).
#include "algorithm/scan_of_hosts.hpp"

namespace unisono::algorithm::scan {

Schedule two_level(const Shape& shape, const Parameters& parameters, int rank) {
  const two_level::ScanOfHosts hosts(shape, parameters, rank);
  const Range output = schedule::output(0, shape.count);
  Builder b(shape, rank);
  hosts.make_slot_of_hosts_below(b);
  std::vector<OpId> done = hosts.within_host(b, schedule::input(0, shape.count), output);
  if (hosts.hosts() == 1) return std::move(b).take();
  Range below;
  if (hosts.leads()) {
    if (hosts.has_hosts_below()) below = b.scratch(shape.count);
    done = hosts.among_leaders(b, {output, below, done});
    if (hosts.has_hosts_below()) hosts.release(b, below, done);
  } else if (hosts.has_hosts_below()) {
    below = b.of(0);
    done.push_back(b.wait(0));
  }
  if (hosts.has_hosts_below()) {
    b.reduce(output, below, output);
    for (const OpId before : done) b.also_after(before);
  }
  return std::move(b).take();
}

}  // namespace unisono::algorithm::scan

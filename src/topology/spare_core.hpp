// SPDX-License-Identifier: BSD-3-Clause
// SpareCore: where a thread may go that works beside the ranks of a host, such as a rank's agent. A
// rank that is bound to a core would have it on the same one, where each delays the other; if the
// process could use a core to which no rank of the host is bound, the thread may go there as well,
// and the scheduler puts it on the one that is idle: others may use the spare core, too. Where
// ranks are not bound, or have more cores than ranks, nothing is needed. Control path.
#pragma once

#include <sched.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "topology/cores.hpp"

namespace unisono::topology {

// Whether the rank `own` of `ranks`, which are all of this host, has no more cores than ranks that
// have the same ones. Pure.
bool fills_its_cores(const std::vector<UsableCores>& ranks, std::size_t own);

// The same; `allowed`: what its process could use if it were not bound. nullopt: no core is spare,
// or the rank has room where it is. Pure.
std::optional<int> spare_core(const std::vector<UsableCores>& ranks, std::size_t own,
                              const UsableCores& allowed);

// What the calling thread, which is bound, could use at most: its affinity is widened for a moment,
// and the kernel cuts that down to what the control group allows. Empty if it may not be changed.
UsableCores allowed_cores();

// While it lives, the calling thread may use the core as well as its own; threads that it starts
// may for good. Without a core nothing changes.
class WithCore {
 public:
  explicit WithCore(std::optional<int> core);
  ~WithCore();
  WithCore(const WithCore&) = delete;
  WithCore& operator=(const WithCore&) = delete;

  // Whether there is one, and the system lets it be used.
  bool added() const { return added_; }

 private:
  cpu_set_t before_;
  bool added_ = false;
};

}  // namespace unisono::topology

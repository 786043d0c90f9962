// SPDX-License-Identifier: BSD-3-Clause
// SpareCore: chooses a core for a thread that works beside the ranks of a host, such as a rank's
// agent. On the core to which its rank is bound, the thread and the rank would delay each other. If
// the process may use a core to which no rank of the host is bound, the thread may run there as
// well. The scheduler then puts it on the idle one, because other programs may use the spare core
// too. Nothing is needed where ranks are not bound, or have more cores than ranks. Control path.
#pragma once

#include <sched.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "topology/cores.hpp"

namespace unisono::topology {

// Whether the rank `own` of `ranks`, all on this host, has no more cores than there are ranks with
// the same cores. Pure.
bool fills_its_cores(const std::vector<UsableCores>& ranks, std::size_t own);

// The spare core of that rank. `allowed`: the cores that its process could use if it were not
// bound. nullopt: no core is spare, or the rank has room where it is. Pure.
std::optional<int> spare_core(const std::vector<UsableCores>& ranks, std::size_t own,
                              const UsableCores& allowed);

// The most cores that the calling thread could use if it were not bound. The affinity is widened
// for a moment; the kernel reduces it to the cores that the control group allows. Empty if the
// affinity may not be changed.
UsableCores allowed_cores();

// While it exists, the calling thread may use the core as well as its own. Threads that it starts
// keep this right for good. Without a core nothing changes.
class WithCore {
 public:
  explicit WithCore(std::optional<int> core);
  ~WithCore();
  WithCore(const WithCore&) = delete;
  WithCore& operator=(const WithCore&) = delete;

  // Whether there is a spare core and the system allows its use.
  bool added() const { return added_; }

 private:
  cpu_set_t before_;
  bool added_ = false;
};

}  // namespace unisono::topology

// SPDX-License-Identifier: BSD-3-Clause
// Cores: the cores that the ranks of this host share, and how a rank waits on them: whether there
// are more ranks than cores, whether other programs compute there, where an agent may run.
// Immutable once settle() has returned, but for the contention. Any thread.
#pragma once

#include <optional>
#include <vector>

#include "base/settings/settings.hpp"
#include "job/ranks.hpp"
#include "model/machine.hpp"
#include "topology/cores.hpp"
#include "wait/waiter.hpp"

namespace unisono::job {

class Cores {
 public:
  // Shows the others which cores this rank may use; before it enters.
  void publish(const Ranks& ranks);
  // When all ranks of the host have published theirs. `has_network`: a wait looks at a network.
  // `shared_by_hosts`: bootstrap::JobInfo::shared_cores.
  void settle(const Ranks& ranks, bool has_network, int shared_by_hosts,
              const base::Settings& settings, const model::Machine& machine);

  // More ranks than cores.
  bool are_oversubscribed() const { return oversubscribed_; }
  int count() const { return count_; }
  // So many ranks take turns on the core that most of them share; at least 1.
  int ranks_per_core() const { return ranks_per_core_; }
  // The cores of the machine that all hosts are on; 0: they are not known to be on one.
  int shared_by_hosts() const { return shared_by_hosts_; }
  // A core for each rank, and one for each agent.
  bool suffice_for_agents() const { return suffice_for_agents_; }
  // The core to which no rank is bound, for this rank's agent; nullopt: it shares the rank's.
  std::optional<int> place_of_agent() const;

  const wait::WaitPolicy& wait_policy() const { return wait_policy_; }
  wait::CoreContention& contention() { return contention_; }

 private:
  std::vector<topology::UsableCores> here_;  // by place among the ranks of this host
  std::size_t place_ = 0;
  bool oversubscribed_ = false;
  int count_ = 1, ranks_per_core_ = 1, shared_by_hosts_ = 0;
  bool suffice_for_agents_ = false;
  wait::WaitPolicy wait_policy_;
  wait::CoreContention contention_;
};

}  // namespace unisono::job

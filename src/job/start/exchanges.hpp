// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job tell each other once, at the start: whether they can read each other's
// memory, whether all can use remote memory, by which machine file they choose, how they sum,
// whether one of them computes for all, and which hosts have a NIC path. Each exchange ends alike
// on all ranks. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/job_info.hpp"
#include "job/start/start_up.hpp"
#include "memory/job_memory.hpp"
#include "model/machine.hpp"
#include "nic/service/capabilities.hpp"
#include "transport/transport.hpp"

namespace unisono::job {

// Whether the ranks of a host can read each other's memory. It exists until all have decided.
class ReachProbe {
 public:
  // Shows the others where to try; before this rank enters.
  explicit ReachProbe(const Ranks& ranks);
  ReachProbe(const ReachProbe&) = delete;
  ReachProbe& operator=(const ReachProbe&) = delete;

  // All ranks of the host read single-copy, or none.
  base::Status decide(StartUp& start, transport::Transport& transport);

 private:
  Reach probe_others(transport::Transport& transport) const;

  const Ranks& ranks_;
  std::uint64_t word_;
};

// All ranks carry long messages by remote memory, or none.
base::Status agree_on_bulk(StartUp& start, const bootstrap::JobInfo& info,
                           const std::shared_ptr<memory::JobMemory>& memory,
                           const model::Machine& machine);

// The machine file by which all ranks choose algorithms: that of the job's first rank. It reads the
// file before any rank waits (machine_to_share); a damaged or foreign file of `unisono tune` does
// not count, which the log says. Empty: the default machine, which all ranks have.
base::Result<std::string> machine_to_share(const StartUp& start);
// `own`: what that rank shares. All ranks read the same text, so that they compute the same prices.
base::Result<std::shared_ptr<const model::Machine>> agree_on_machine(StartUp& start,
                                                                     const bootstrap::JobInfo& info,
                                                                     memory::JobMemory& memory,
                                                                     const std::string& own);

// How all ranks sum: as the job's first rank does. A rank that asks for something else fails the
// start, with an error that names both.
base::Result<base::Reproducible> agree_on_sums(StartUp& start, const bootstrap::JobInfo& info);

// Whether the job is heterogeneous, by UNISONO_HETEROGENEOUS: as the job's first rank says, too.
base::Result<bool> agree_on_heterogeneity(StartUp& start, const bootstrap::JobInfo& info);

// Each host's abilities in the NIC path; empty if no rank asks. `own`: this host's; nullopt: no
// rank asks.
base::Result<std::vector<nic::Capabilities>> exchange_nic_capabilities(
    StartUp& start, const std::optional<nic::Capabilities>& own);

}  // namespace unisono::job

// SPDX-License-Identifier: BSD-3-Clause
// Job: the parts that a rank has of its job. The ranks of a host share a memory file, and every
// host has one of the same layout. One per rank; communicators live in it. Each part has its own
// thread rule. enter(), start_agent() and leave() are for one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "job/agent.hpp"
#include "job/cores.hpp"
#include "job/events.hpp"
#include "job/loss/losses.hpp"
#include "job/loss/rank_watch.hpp"
#include "job/loss/silence.hpp"
#include "job/ranks.hpp"
#include "job/retired_segments.hpp"
#include "job/start/multicast_vote.hpp"
#include "job/start/start_up.hpp"
#include "memory/job_memory.hpp"
#include "model/machine.hpp"
#include "network/network.hpp"
#include "nic/service/capabilities.hpp"
#include "profile/profile.hpp"
#include "select/override.hpp"
#include "transport/transport.hpp"
#include "wait/carry_on.hpp"
#include "wait/doorbells.hpp"
#include "wire/key.hpp"

namespace unisono::job {

class Job {
 public:
  // Returns when all ranks have entered. `nic`: this host's abilities in the NIC path; nullopt: no
  // rank asks the others for theirs. `so_far`: an error of this rank, because of which it cannot
  // enter. It tells the others instead, for which the memory's header is enough
  // (JobMemory::header_bytes).
  static base::Result<std::unique_ptr<Job>> enter(
      const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
      const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
      std::unique_ptr<network::Network> network = nullptr,
      const std::optional<nic::Capabilities>& nic = {},
      const base::Status& so_far = base::success());
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Ranks& ranks() const { return ranks_; }
  const network::Hosts& hosts() const { return ranks_.hosts(); }
  Events& events() { return events_; }
  Losses& losses() { return losses_; }
  RankWatch& watch() { return watch_; }
  Cores& cores() { return cores_; }
  StartUp& start_up() { return start_up_; }
  RetiredSegments& retired() { return retired_; }

  const base::Settings& settings() const { return settings_; }
  const select::Overrides& overrides() const { return overrides_; }
  // By which all ranks choose algorithms: the same on all.
  const model::Machine& machine() const { return *machine_; }
  const wire::Key& key() const { return key_; }
  memory::JobMemory& memory() { return *memory_; }
  wait::Doorbells& doorbells() { return doorbells_; }
  transport::Transport& transport() { return *transport_; }
  // The network to ranks on other hosts; null: there are none.
  network::Network* network() { return network_.get(); }
  // Each host's abilities in the NIC path, as at the start; empty: no rank has asked.
  const std::vector<nic::Capabilities>& nic_capabilities() const { return nic_capabilities_; }

  // From now on the network, and with an agent() split-phase operations, are carried on also while
  // no thread of the application does it.
  base::Status start_agent();
  Agent* agent() { return agent_.get(); }
  // Carries the network on, if there is one.
  void carry_network();
  // Waits until all puts of this rank have arrived on the other hosts. False if that takes longer
  // than a rank of another host may be silent, or the rank has left.
  bool settle_network();

  // Ends this rank's part; idempotent.
  void leave();

  base::Reproducible reproducible = base::Reproducible::no;  // the same on all, since the start
  bool heterogeneous = false;                                // UNISONO_HETEROGENEOUS; the same
  std::string differing_settings;                            // as of JobInfo
  wait::CarryOn carry_on{};  // set before the first call of a collective
  // Where this rank's calls are recorded, set before the first communicator; null: nowhere.
  profile::ProfileOfJob profile;

 private:
  Job(const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
      const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
      std::unique_ptr<network::Network> network);
  base::Status meet_all(const bootstrap::JobInfo& info,
                        const std::optional<nic::Capabilities>& nic);
  base::Status set_up_tables();
  void make_doorbells();
  void log_start(const std::string& name) const;
  base::Status start_network_thread();

  const base::Settings& settings_;
  select::Overrides overrides_;
  const wire::Key key_;
  const std::shared_ptr<memory::JobMemory> memory_;
  const std::unique_ptr<transport::Transport> transport_;
  JobHeader& header_;
  wait::Doorbells doorbells_;
  Ranks ranks_;
  Events events_;
  Losses losses_;
  MulticastVote multicast_;
  RankWatch watch_;
  StartUp start_up_;
  RetiredSegments retired_;
  Cores cores_;
  std::shared_ptr<const model::Machine> machine_;
  std::vector<nic::Capabilities> nic_capabilities_;  // by host
  std::atomic<bool> left_{false};
  std::unique_ptr<Agent> agent_;               // its thread uses all of this
  std::unique_ptr<network::Network> network_;  // its thread uses the rest
};

}  // namespace unisono::job

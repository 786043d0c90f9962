// SPDX-License-Identifier: BSD-3-Clause
// Job: this rank's place among all ranks: which ranks live, which sleep, how many cores there are.
// The ranks of a host share a memory file. Every host has one of the same layout, and updates the
// others by puts. One per rank; communicators live in it. Control path, except doorbells() and
// alarm(). Used by the rank's threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/job_info.hpp"
#include "job/agent.hpp"
#include "job/failure_record.hpp"
#include "job/liveness.hpp"
#include "job/silence.hpp"
#include "memory/job_memory.hpp"
#include "network/hosts.hpp"
#include "network/network.hpp"
#include "nic/service/capabilities.hpp"
#include "select/override.hpp"
#include "topology/cores.hpp"
#include "transport/transport.hpp"
#include "wait/carry_on.hpp"
#include "wait/doorbells.hpp"
#include "wait/waiter.hpp"
#include "wire/key.hpp"

namespace unisono::job {

// silent: it does not answer, on another host; or its process is stopped, on this one.
enum class RankState : std::uint64_t { absent, present, left, dead, silent };

// Whether a rank can read all others' memory.
enum class Reach : std::uint32_t { unknown, all, not_all };

enum class Verdict : std::uint64_t { unknown, no, yes };

// A rank's part of the job's header, in shared memory.
struct alignas(64) RankHeader {
  std::atomic<std::uint64_t> state;  // RankState; a word that a put can write
  std::atomic<std::uint32_t> quota_millicores;
  std::atomic<std::uint32_t> reach;  // Reach
  // An address in this rank's own memory where the others may test whether they can read it, and
  // the value that they should find there.
  std::atomic<std::uint64_t> probe_address, probe_value;
  std::atomic<std::uint64_t> stops;  // the word of a StopWatch; for the ranks of its host
  // For a rank of another host: the rank of this host that has logged its silence, + 1; 0: none.
  std::atomic<std::uint64_t> suspected_by;
  std::atomic<std::uint64_t> passed_on;  // 1: this host has reported to others that the rank is
                                         // lost
  // At the job's first rank, for each host's first: a `Verdict`, in a word that a put can write.
  // After the start, a no says that the multicasts of some host no longer reach it.
  std::atomic<std::uint64_t> hears_multicast;
  // It has all that it needs; of a host's first rank, at the job's first: so have all of its host.
  std::atomic<std::uint64_t> started, host_started;
  // For a rank of another host: why it could not start (confirm_start.cpp), if it could report it.
  // Written by a put.
  FailureNotice::Text start_failure;
  // For a host's first rank: the host's abilities, valid by the `Verdict`. Written by puts.
  nic::Capabilities nic_offer;
  std::atomic<std::uint64_t> has_nic;
  std::atomic<std::uint64_t> cores[topology::kMostCores / 64];
};

// The leave record for a segment of several hosts. failed: the segment is not to be reused.
enum class Farewell : std::uint64_t { none, clean, failed };

// In shared memory; zero is its initial state.
struct alignas(64) JobHeader {
  std::atomic<std::uint32_t> alarm;  // counts what may concern pending operations: deaths, failures
  std::atomic<std::uint32_t> first_dead;  // rank + 1; 0: none. The same for all reporting ranks
  // 0: not there yet
  std::atomic<std::int64_t> ranks_offset, doorbells_offset, bulk_offset, world_offset;
  std::atomic<std::uint64_t> least_sequence;  // with which a communicator of several hosts begins
  std::atomic<std::uint64_t> multicast;       // between the hosts: a `Verdict`
  std::atomic<std::uint64_t> news;            // by a put from another host: there may be updates
  wait::SleeperTable sleepers;
  // A rank that could not start (confirm_start.cpp), and which one of another host has told so.
  FailureRecord start_failure;
  std::atomic<std::uint64_t> start_failed_elsewhere;
  std::atomic<std::uint64_t> all_started;
};

struct BulkEntry;  // agree_on_bulk.cpp

class Job {
 public:
  // Returns when all ranks have entered. `nic`: this host's abilities in the NIC path; nullopt: no
  // rank asks the others for theirs.
  static base::Result<std::unique_ptr<Job>> enter(
      const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
      const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
      std::unique_ptr<network::Network> network = nullptr,
      const std::optional<nic::Capabilities>& nic = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  memory::JobMemory& memory() { return *memory_; }
  const base::Settings& settings() const { return settings_; }
  const select::Overrides& overrides() const { return overrides_; }
  wait::Doorbells& doorbells() { return doorbells_; }
  transport::Transport& transport() { return *transport_; }
  const network::Hosts& hosts() const { return hosts_; }
  // The network to ranks on other hosts; null: there are none.
  network::Network* network() { return network_.get(); }
  // From now on the network, and with an agent() split-phase operations, are carried on also while
  // no thread of the application does it.
  base::Status start_agent();
  Agent* agent() { return agent_.get(); }
  // Carries the network on, if there is one.
  void carry_network();
  // Makes a rank of another host check for updates that were put there before.
  void send_news(int rank);
  // Waits until all puts of this rank have arrived on the other hosts. False if that takes longer
  // than a rank of another host may be silent, or the rank has left.
  bool settle_network();

  // A segment of several hosts, at the leader that has reserved it. It is reused when the leave
  // records of all members are there. A newer communicator there begins beyond the operations of
  // the older one, so late words of that one count as old.
  struct Retired {
    std::int64_t offset = 0, bytes = 0;
    const std::atomic<std::uint64_t>* farewells = nullptr;  // by member: `Farewell`
    std::vector<int> members{};                             // ranks of the job
  };
  void retire(const Retired& segment, std::uint64_t next_sequence);
  void reclaim();
  std::uint64_t least_sequence() const {
    return header_->least_sequence.load(std::memory_order_relaxed);
  }
  // Each host's abilities in the NIC path, as at the start; empty: no rank has asked.
  const std::vector<nic::Capabilities>& nic_offers() const { return nic_offers_; }
  const wire::Key& key() const { return key_; }
  bool oversubscribed() const { return oversubscribed_; }
  const wait::WaitPolicy& wait_policy() const { return wait_policy_; }
  wait::ForeignLoad& foreign_load() { return foreign_load_; }
  wait::CarryOn carry_on{};  // set before the first call of a collective

  // Changes when something may have happened that ends pending operations.
  std::uint32_t alarm() const { return header_->alarm.load(std::memory_order_acquire); }
  // Tells all ranks to look.
  void raise_alarm();
  RankState state(int rank) const;
  // Looks for deaths and for silent ranks, at most a few times per UNISONO_DETECT_TIMEOUT; for
  // ranks that have waited, and agents.
  void watch(std::int64_t now_ns);
  // For a rank of this host that some rank has waited for: whether its process is stopped, as seen
  // within a fifth of UNISONO_DETECT_TIMEOUT. If that lasts for the whole of it, the rank counts as
  // silent, and all are informed.
  bool is_stopped(int rank);
  // False if the rank was known to be gone. Informs the other hosts; the caller raises the event
  // afterwards.
  bool mark_gone(int rank, RankState how);
  // Drops the packets that are kept for a rank of another host that is gone.
  void abandon(int rank);
  // If the rank is gone, reports it once more to the neighbours of this host, and to the rank.
  void pass_on_loss(int rank);
  // How long a sleeper may sleep before it has to watch().
  std::int64_t watch_interval_ns() const;

  // The offset of the world's segment, which the host's first rank publishes and the others wait
  // for.
  void publish_world(std::int64_t offset);
  base::Result<std::int64_t> await_world();
  // This rank has all that it needs (start.hpp): returns when that is so for all.
  base::Status confirm_start();
  // Tells the others that this rank cannot start; the error for its caller.
  base::Error fail_start(const base::Error& why);

  // Ends this rank's part; idempotent.
  void leave();

 private:
  Job(const bootstrap::JobInfo& info, std::shared_ptr<memory::JobMemory> memory,
      const base::Settings& settings, std::unique_ptr<transport::Transport> transport,
      std::unique_ptr<network::Network> network);
  base::Status meet_all(const bootstrap::JobInfo& info,
                        const std::optional<nic::Capabilities>& nic);
  std::optional<base::Error> failed_start() const;
  base::Status tell_judge();
  base::Status confirm_for_all();
  base::Status set_up_header();
  base::Status await_all();
  // Waits until the condition holds. Errors: rank_lost, at once; timeout, at the deadline of the
  // start, with the text of `missing`.
  base::Status await(const std::function<bool()>& condition,
                     const std::function<std::string()>& missing);
  std::optional<int> dead_rank() const;
  bool watch_hosts();
  void tell_of_silence(int rank, std::int64_t silence_ns);
  // Not limited in frequency, as watch() is: it is called for an event.
  void look_for_deaths();
  bool has_gone(int rank) const;
  void give_up_silent(std::int64_t patience_ns);
  void tell_state(int rank, RankState state);
  bool is_lost(int rank) const {
    return state(rank) == RankState::dead || state(rank) == RankState::silent;
  }
  bool has_living(int host) const;
  std::vector<int> neighbours() const;
  void pass_on_state(int rank);
  void pass_on_state_to(int host, int rank);
  void tell_state_to(int target, int rank, RankState state);
  void look_for_news();
  base::Error lost(int rank, std::string_view how) const;
  void publish_probe();
  base::Status judge_reach();
  Reach probe_others() const;
  base::Status judge_multicast(std::optional<base::Toggle> wish);
  base::Status hear_verdicts();
  void watch_multicast();
  base::Status tell_nic_offers(const std::optional<nic::Capabilities>& offer);
  base::Status agree_on_bulk(const bootstrap::JobInfo& info);
  base::Result<std::byte*> bulk_table();
  base::Status exchange_bulk(std::span<BulkEntry> entries, Verdict own_verdict);
  base::Status use_bulk(std::unique_ptr<transport::RemoteMemory> memory,
                        std::span<const transport::RegionCard> cards);
  void publish_cores();
  void judge_cores();
  std::string absent_ranks() const;

  int rank_;
  int ranks_;
  std::string name_;
  std::shared_ptr<memory::JobMemory> memory_;
  const base::Settings& settings_;
  select::Overrides overrides_;
  network::Hosts hosts_;
  wire::Key key_;
  std::vector<nic::Capabilities> nic_offers_;  // by host
  std::unique_ptr<transport::Transport> transport_;
  JobHeader* header_;
  RankHeader* rank_headers_ = nullptr;
  wait::Doorbells doorbells_;
  wait::WaitPolicy wait_policy_;
  wait::ForeignLoad foreign_load_;
  bool oversubscribed_ = false;
  std::int64_t deadline_ns_ = 0;  // of the start
  std::vector<pid_t> processes_;  // by rank
  std::uint64_t probe_word_ = 0;
  std::mutex watch_mutex_;
  Liveness liveness_;
  std::int64_t watched_ns_ = 0;
  bool has_warned_of_multicast_ = false;
  std::atomic<bool> left_{false};
  std::mutex retired_mutex_;
  std::vector<Retired> retired_;
  bool has_spare_cores_ = false;
  std::unique_ptr<Agent> agent_;               // its thread uses all of this
  std::unique_ptr<network::Network> network_;  // its thread uses the rest
};

}  // namespace unisono::job

// SPDX-License-Identifier: BSD-3-Clause
// World: all ranks of a job in one thread, over the real communicators and engines, and either real
// shared memory, the virtual network, or the reliable transport over virtual datagrams; that one
// between all ranks, or between hosts that have a memory each, and multicast if the datagrams do.
// A seed
// decides who makes a step next and when messages arrive, so a failing seed is a complete report.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/prng.hpp"
#include "comm/communicator.hpp"
#include "harness/memory_in_use.hpp"
#include "job/job.hpp"
#include "memory/memory_file.hpp"
#include "reliable/reliable.hpp"
#include "select/override.hpp"
#include "transport/shm/shm.hpp"
#include "transport/virtual/datagrams.hpp"
#include "transport/virtual/virtual.hpp"

namespace unisono::test {

struct WorldOptions {
  int ranks = 2;
  bool virtual_network = false;
  transport::VirtualOptions network;
  bool virtual_datagrams = false;  // and the reliable transport, whose seed is the network's
  std::vector<int> hosts{};        // by rank; only with virtual_datagrams. Empty: no shared memory
  transport::VirtualDatagramOptions datagrams{};
  std::size_t pool_packets = 256;
  base::Environment settings;
};

class World {
 public:
  explicit World(const WorldOptions& options) : prng_(options.network.seed) {
    base::set_log_level(base::LogLevel::error);  // warnings of the losses that tests bring about
    set({{"UNISONO_BULK", "udp"}});              // the network is virtual
    set(options.settings);
    hosts_ = options.hosts;
    for (int h = 0; h <= (hosts_.empty() ? 0 : std::ranges::max(hosts_)); ++h) {
      auto memory = memory::JobMemory::map(std::move(*memory::create_memory(kMemory)), kMemory);
      EXPECT_TRUE(memory.ok());
      memories_.push_back(std::move(*memory));
    }
    if (options.virtual_network) {
      network_ = std::make_unique<transport::VirtualNetwork>(options.ranks, options.network);
    }
    if (options.virtual_datagrams) {
      datagrams_ =
          std::make_unique<transport::VirtualDatagramNetwork>(options.ranks, options.datagrams);
      pool_packets_ = options.pool_packets;
      multicasts_ = options.datagrams.multicast;
    }
    const auto n = static_cast<std::size_t>(options.ranks);
    reliables_.resize(n);
    jobs_.resize(n);
    communicators_.resize(n);
    // Entering waits for the other ranks, so for this each has a thread.
    std::vector<std::thread> threads;
    for (int r = 0; r < options.ranks; ++r) {
      threads.emplace_back([&, r] { enter(r, options.ranks); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  ~World() {
    part();
    communicators_.clear();
    jobs_.clear();
  }

  // Before what its ranks have ends: nobody makes a step any more, so nobody need wait until others
  // have what it has put.
  void part() {
    for (const auto& job : jobs_) {
      if (job == nullptr || job->network() == nullptr) continue;
      for (int r = 0; r < ranks(); ++r) {
        if (!job->hosts().is_here(r)) {
          job->network()->forget(r, reliable::Departure::left);
        }
      }
    }
  }

  int ranks() const { return static_cast<int>(jobs_.size()); }
  comm::Communicator& at(int rank) { return *communicators_[static_cast<std::size_t>(rank)]; }
  transport::VirtualNetwork* network() { return network_.get(); }
  bool are_on_one_host(int rank, int other) const {
    const auto host = [this](int r) {
      return hosts_.empty() ? r : hosts_[static_cast<std::size_t>(r)];
    };
    return host(rank) == host(other);
  }
  comm::Links links() const {
    return datagrams_ == nullptr ? comm::Links::none : comm::Links::datagrams;
  }
  transport::VirtualDatagramNetwork* datagrams() { return datagrams_.get(); }
  reliable::Reliable& reliable_at(int rank) { return *reliables_[static_cast<std::size_t>(rank)]; }
  base::Prng& prng() { return prng_; }

  const base::Settings& settings() const { return settings_; }
  // The settings of all ranks, in addition to those set before. They hold from the next time that
  // ranks read them.
  void set(const base::Environment& more) {
    for (const auto& [name, value] : more) environment_[name] = value;
    auto settings = base::Settings::from(environment_);
    ASSERT_TRUE(settings.ok()) << settings.error().message;
    settings_ = *settings;
  }
  // Bytes of segments of a host's memory that are in use.
  std::int64_t given_out(int host) const {
    return bytes_in_use(memories_[static_cast<std::size_t>(host)]->header());
  }
  // That of the rank's host.
  memory::JobMemory& memory_at(int rank) const { return *memory_of(rank); }
  // The rank ends its communicator.
  void end(int rank) { communicators_[static_cast<std::size_t>(rank)].reset(); }
  int random_rank() { return static_cast<int>(prng_.below(jobs_.size())); }

  // From now on all ranks take this algorithm, wherever it is legal.
  void override_with(const algorithm::Algorithm& row, const algorithm::Parameters& parameters) {
    const select::OverrideRule rule{.algorithm = &row,
                                    .given = static_cast<int>(row.parameters.size()),
                                    .parameters = parameters};
    for (auto& communicator : communicators_) communicator->plans().override_with({{rule}});
  }

  // One step of somebody, or of the network.
  void step() {
    if (network_ && prng_.below(2) == 0) network_->advance();
    if (datagrams_) let_time_pass();
    at(random_rank()).progress();
  }

  // One collective, started by all in random order. False if it did not complete within a bound
  // on steps that only a deadlock can reach.
  bool run(const plan::Call& call, const std::vector<const void*>& inputs,
           const std::vector<void*>& outputs) {
    return run(std::vector<plan::Call>(jobs_.size(), call), inputs, outputs);
  }

  // The same with a call for each rank: its own counts, or places of its own.
  bool run(const std::vector<plan::Call>& calls, const std::vector<const void*>& inputs,
           const std::vector<void*>& outputs) {
    const std::size_t n = jobs_.size();
    std::vector<comm::Pending> pending(n);
    std::vector<std::size_t> order(n);
    for (std::size_t r = 0; r < n; ++r) order[r] = r;
    std::shuffle(order.begin(), order.end(), prng_);
    for (const std::size_t r : order) {
      auto plan = communicators_[r]->plan(calls[r]);
      EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
      EXPECT_TRUE(communicators_[r]->start(**plan, inputs[r], outputs[r], pending[r]).ok());
      if (prng_.below(2) == 0) step();
    }
    const auto all_ended = [&pending] {
      return std::ranges::all_of(
          pending, [](const auto& p) { return p.state != comm::Pending::State::running; });
    };
    constexpr int kMostSteps = 4'000'000;
    for (int steps = 0; steps < kMostSteps && !all_ended(); ++steps) step();
    bool complete = true;
    for (std::size_t r = 0; r < n; ++r) {
      complete &= pending[r].state == comm::Pending::State::complete;
    }
    return complete;
  }

 private:
  // To the next arrival, or a moment on: delays pass also where nothing is under way.
  void let_time_pass() {
    constexpr std::int64_t kMomentNs = 20'000;
    if (prng_.below(2) == 0 && datagrams_->advance()) return;
    if (prng_.below(4) == 0) datagrams_->advance_to(datagrams_->now_ns() + kMomentNs);
  }

  std::unique_ptr<reliable::Reliable> make_reliable(int rank, int ranks,
                                                    topology::HostMap hosts = {}) {
    reliable::ReliableOptions options;
    options.key = wire::key_of("world");
    options.ranks = ranks;
    options.hosts = std::move(hosts);
    options.region = memory_of(rank)->at(0);
    options.region_bytes = kMemory;
    options.pool_packets = pool_packets_;
    options.seed = static_cast<std::uint64_t>(rank) + 1;
    options.now_ns = [this] { return datagrams_->now_ns(); };
    auto made = std::make_unique<reliable::Reliable>(datagrams_->attach(rank), options);
    reliables_[static_cast<std::size_t>(rank)] = made.get();
    return made;
  }

  const std::shared_ptr<memory::JobMemory>& memory_of(int rank) const {
    return memories_[hosts_.empty()
                         ? 0
                         : static_cast<std::size_t>(hosts_[static_cast<std::size_t>(rank)])];
  }

  void enter(int rank, int ranks) {
    bootstrap::JobInfo info;
    info.rank = rank;
    info.ranks = ranks;
    info.job = "world";
    info.members.assign(static_cast<std::size_t>(ranks), bootstrap::RankLocation{getpid()});
    std::unique_ptr<transport::Transport> transport;
    std::unique_ptr<network::Network> network;
    for (std::size_t r = 0; r < hosts_.size(); ++r) {
      const bool here = hosts_[r] == hosts_[static_cast<std::size_t>(rank)];
      info.members[r] = {.pid = here ? getpid() : 0};
    }
    info.hosts = topology::HostMap::of_labels(hosts_);
    info.shares_machine = hosts_.empty();  // no packet arrives while ranks enter
    if (network_) {
      transport = network_->attach(rank);
    } else if (datagrams_ && hosts_.empty()) {
      transport = make_reliable(rank, ranks);
    } else {
      transport = std::make_unique<transport::SharedMemory>();
    }
    if (!hosts_.empty()) {
      network = std::make_unique<network::Network>(make_reliable(rank, ranks, info.hosts));
      if (multicasts_) network->allow_multicast();
    }
    auto job =
        job::Job::enter(info, memory_of(rank), settings_, std::move(transport), std::move(network));
    ASSERT_TRUE(job.ok()) << job.error().message;
    auto& kept = jobs_[static_cast<std::size_t>(rank)];
    kept = std::move(*job);
    auto world = comm::Communicator::create_world(*kept);
    ASSERT_TRUE(world.ok()) << world.error().message;
    communicators_[static_cast<std::size_t>(rank)] = std::move(*world);
  }

  static constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;

  base::Environment environment_;
  base::Settings settings_;
  base::Prng prng_;
  std::vector<int> hosts_;                                    // by rank
  std::vector<std::shared_ptr<memory::JobMemory>> memories_;  // by host
  std::unique_ptr<transport::VirtualNetwork> network_;
  std::unique_ptr<transport::VirtualDatagramNetwork> datagrams_;  // outlives what is attached
  std::size_t pool_packets_ = 0;
  bool multicasts_ = false;                     // between hosts
  std::vector<reliable::Reliable*> reliables_;  // the jobs own them
  std::vector<std::unique_ptr<job::Job>> jobs_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
};

}  // namespace unisono::test

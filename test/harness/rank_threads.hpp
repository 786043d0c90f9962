// SPDX-License-Identifier: BSD-3-Clause
// RankThreads: a job whose ranks are threads, below the C API, on one host or on several virtual
// ones. Each rank maps its host's memory for itself, as a process does, so that memory can be
// refused to one rank. Time is the machine's. For tests only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "comm/communicator.hpp"
#include "comm/start.hpp"
#include "harness/memory_in_use.hpp"
#include "harness/threads.hpp"
#include "job/job.hpp"
#include "memory/memory_file.hpp"
#include "reliable/reliable.hpp"
#include "transport/shm/shm.hpp"
#include "transport/virtual/datagrams.hpp"

namespace unisono::test {

// Virtual datagrams that several threads use, and that arrive at once.
class SharedDatagrams {
 public:
  explicit SharedDatagrams(int ranks) : network_(ranks, options()) {
    for (int r = 0; r < ranks; ++r) bells_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  std::unique_ptr<transport::Datagrams> attach(int rank) {
    const std::lock_guard lock(mutex_);
    return std::make_unique<End>(*this, network_.attach(rank));
  }

 private:
  class End final : public transport::Datagrams {
   public:
    End(SharedDatagrams& all, std::unique_ptr<transport::Datagrams> inner)
        : all_(all), inner_(std::move(inner)) {}
    const transport::DatagramLimits& limits() const override { return inner_->limits(); }
    int rank() const override { return inner_->rank(); }
    std::size_t send(std::span<const transport::Outgoing> datagrams) override {
      const std::lock_guard lock(all_.mutex_);
      const std::size_t taken = inner_->send(datagrams);
      while (all_.network_.advance()) {
      }
      for (const auto& datagram : datagrams) eventfd_write(all_.bell(datagram.target), 1);
      return taken;
    }
    std::size_t receive(std::span<transport::Incoming> datagrams) override {
      eventfd_t count = 0;
      eventfd_read(descriptor(), &count);
      const std::lock_guard lock(all_.mutex_);
      const std::size_t received = inner_->receive(datagrams);
      if (received == datagrams.size()) eventfd_write(descriptor(), 1);  // perhaps more
      return received;
    }
    int descriptor() const override { return all_.bell(inner_->rank()); }
    transport::DatagramCounts counts() const override { return inner_->counts(); }

   private:
    SharedDatagrams& all_;
    std::unique_ptr<transport::Datagrams> inner_;
  };

  static transport::VirtualDatagramOptions options() {
    transport::VirtualDatagramOptions options;
    options.delay_min_ns = options.delay_max_ns = 0;
    return options;
  }
  int bell(int rank) const { return bells_[static_cast<std::size_t>(rank)].get(); }

  std::mutex mutex_;  // of the network
  transport::VirtualDatagramNetwork network_;
  std::vector<base::Descriptor> bells_;
};

// Thrown where a rank ends without a word.
struct RankEnds {};

// The state of one rank.
struct RankThread {
  int rank = 0;
  std::shared_ptr<memory::JobMemory> memory;
  std::unique_ptr<job::Job> job;
  std::unique_ptr<comm::Communicator> world;
  bool is_dead = false;
};

class RankThreads {
 public:
  // hosts: by rank, as in WorldOptions. own: the settings of each rank besides; empty: none.
  RankThreads(std::vector<int> hosts, base::Environment settings = {},
              std::vector<base::Environment> own = {})
      : hosts_(std::move(hosts)), ranks_(hosts_.size()) {
    settings.emplace("UNISONO_BULK", "udp");
    own.resize(hosts_.size());
    for (base::Environment& each : own) {
      each.insert(settings.begin(), settings.end());
      auto read = base::Settings::from(each);
      EXPECT_TRUE(read.ok());
      settings_.push_back(*read);
    }
    const int count = std::ranges::max(hosts_) + 1;
    for (int h = 0; h < count; ++h) files_.push_back(std::move(*memory::create_memory(kBytes)));
    if (count > 1) datagrams_ = std::make_unique<SharedDatagrams>(size());
    for (int r = 0; r < size(); ++r) {
      const int file = files_[static_cast<std::size_t>(hosts_[static_cast<std::size_t>(r)])].get();
      base::Descriptor duplicate(fcntl(file, F_DUPFD_CLOEXEC, 0));
      at(r).rank = r;
      at(r).memory = *memory::JobMemory::map(std::move(duplicate), kBytes);
    }
  }
  ~RankThreads() {
    run([this](RankThread& self) {
      // Nobody answers the dead.
      for (int r = 0; self.is_dead && has_several_hosts() && r < size(); ++r) {
        if (!self.job->hosts().is_here(r)) {
          self.job->network()->forget(r, reliable::Departure::lost);
        }
      }
      self.world.reset();
      self.job.reset();
    });
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  RankThread& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  bool has_several_hosts() const { return files_.size() > 1; }

  // The body on all ranks at once. One that throws RankEnds is dead for the others from then on.
  void run(const std::function<void(RankThread&)>& body) {
    harness::HangGuard guard(size());
    std::vector<std::thread> threads;
    for (RankThread& rank : ranks_) {
      threads.emplace_back([&] {
        try {
          body(rank);
        } catch (const RankEnds&) {
          rank.is_dead = true;
          rank.job->losses().mark_gone(rank.rank, job::RankState::dead);
          rank.job->events().raise();
        }
        guard.done(rank.rank);
      });
    }
    guard.wait();
    for (std::thread& thread : threads) thread.join();
  }

  // The steps of unisono_init after the rendezvous.
  base::Status enter(RankThread& self) {
    bootstrap::JobInfo info;
    info.rank = self.rank;
    info.ranks = size();
    info.job = "threads";
    for (const int host : hosts_) {
      const bool here = host == hosts_[static_cast<std::size_t>(self.rank)];
      info.members.push_back({.pid = here ? getpid() : 0});
    }
    info.hosts = topology::HostMap::of_labels(hosts_);
    std::unique_ptr<network::Network> network;
    if (has_several_hosts()) {
      reliable::ReliableOptions options;
      options.hosts = info.hosts;
      options.key = wire::key_of("threads");
      options.ranks = size();
      options.region = self.memory->at(0);
      options.region_bytes = kBytes;
      options.seed = static_cast<std::uint64_t>(self.rank) + 1;
      options.now_ns = base::now_ns;
      network = std::make_unique<network::Network>(
          std::make_unique<reliable::Reliable>(datagrams_->attach(self.rank), options));
    }
    auto started =
        comm::start_rank(info, self.memory, settings_[static_cast<std::size_t>(self.rank)],
                         std::make_unique<transport::SharedMemory>(), std::move(network));
    if (!started) return started.error();
    self.job = std::move(started->job);
    self.world = std::move(started->world);
    return base::success();
  }

  // The real memory of a host.
  std::int64_t real_bytes(int host) const {
    struct stat status {};
    EXPECT_EQ(fstat(files_[static_cast<std::size_t>(host)].get(), &status), 0);
    constexpr std::int64_t kBlockBytes = 512;
    return status.st_blocks * kBlockBytes;
  }
  // That of it which was accessed, from an offset on.
  std::int64_t real_bytes_from(int host, std::int64_t offset) const {
    const int file = files_[static_cast<std::size_t>(host)].get();
    std::int64_t bytes = 0;
    while ((offset = lseek(file, offset, SEEK_DATA)) >= 0) {
      const std::int64_t end = lseek(file, offset, SEEK_HOLE);
      bytes += end - offset;
      offset = end;
    }
    return bytes;
  }
  bool has_living(int host) {
    return std::ranges::any_of(ranks_, [&](const RankThread& rank) {
      return hosts_[static_cast<std::size_t>(rank.rank)] == host && !rank.is_dead;
    });
  }
  int hosts() const { return static_cast<int>(files_.size()); }

  // Bytes of segments that the hosts' memories have given out.
  std::vector<std::int64_t> given_out() {
    std::vector<std::int64_t> all;
    for (int host = 0; host < static_cast<int>(files_.size()); ++host) {
      const auto first = std::ranges::find(hosts_, host) - hosts_.begin();
      all.push_back(bytes_in_use(at(static_cast<int>(first)).memory->header()));
    }
    return all;
  }

 private:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;

  std::vector<int> hosts_;
  std::vector<base::Settings> settings_;  // by rank
  std::vector<base::Descriptor> files_;   // by host
  std::unique_ptr<SharedDatagrams> datagrams_;
  std::vector<RankThread> ranks_;
};

}  // namespace unisono::test

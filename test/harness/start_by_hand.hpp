// SPDX-License-Identifier: BSD-3-Clause
// The first steps of unisono_init, one by one, for a rank that shall end between them. The rank is
// a process with the environment of its job, on one host or on one of several. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "bootstrap/bootstrap.hpp"
#include "comm/start.hpp"
#include "job/job.hpp"
#include "job/loss/silence.hpp"
#include "transport/shm/shm.hpp"

namespace unisono::harness {

class StartByHand {
 public:
  // After it, all ranks have been at the rendezvous, and this one has its place.
  void meet() {
    const base::Settings& settings = *base::process_settings();
    auto job = bootstrap::describe_own_job(settings);
    ASSERT_TRUE(job.ok()) << job.error().message;
    job->memory_layout = comm::memory_layout(settings);
    auto info = bootstrap::join_job(*job, settings);
    ASSERT_TRUE(info.ok()) << info.error().message;
    info_ = std::move(*info);
    auto memory = memory::JobMemory::map(std::move(info_.memory), info_.memory_bytes);
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    memory_ = std::move(*memory);
  }

  // After it, the rank has agreed with the others on all but the world communicator. Between hosts
  // it has no NIC path.
  base::Status enter() {
    const base::Settings& settings = *base::process_settings();
    std::unique_ptr<network::Network> network;
    std::optional<nic::Capabilities> nic;
    if (info_.datagrams != nullptr) {
      nic = nic::Capabilities{};
      network =
          network::Network::over(info_, *memory_, job::SilenceLimits::of(settings).suspect_ns);
    }
    auto job =
        job::Job::enter(info_, memory_, settings, std::make_unique<transport::SharedMemory>(),
                        std::move(network), nic);
    if (!job) return job.error();
    job_ = std::move(*job);
    return base::success();
  }

  void leave() { job_.reset(); }

  const bootstrap::JobInfo& info() const { return info_; }
  memory::JobMemory& memory() const { return *memory_; }

 private:
  bootstrap::JobInfo info_;
  std::shared_ptr<memory::JobMemory> memory_;
  std::unique_ptr<job::Job> job_;
};

}  // namespace unisono::harness

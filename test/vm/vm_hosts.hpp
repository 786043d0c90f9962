// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose ranks are processes on the hosts that scripts/vm/hosts.sh makes in the virtual
// machine. All are in one network namespace; a boot id of its own makes a host another host. Test
// programs without threads only.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/hosts.hpp"
#include "harness/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// 0 outside of the machine.
inline int vm_hosts() {
  const char* const text = getenv("VM_HOSTS");
  return text == nullptr ? 0 : std::stoi(text);
}

inline std::string vm_address(int host) { return "10.9.0." + std::to_string(host + 1); }
inline std::string vm_device(int host) { return "rxe" + std::to_string(host); }

// Packets that the device of a host has sent.
inline std::uint64_t rdma_packets_sent(int host) {
  std::uint64_t count = 0;
  std::ifstream("/sys/class/infiniband/" + vm_device(host) + "/ports/1/hw_counters/sent_pkts") >>
      count;
  return count;
}

struct VmRank {
  int rank;
  int ranks;
  unisono_comm_t world;
  const Line& line;
};
using VmBody = std::function<void(const VmRank&)>;
using VmSettings = std::vector<std::pair<std::string, std::string>>;

inline void enter_vm_host(int host) {
  ASSERT_EQ(unshare(CLONE_NEWNS), 0) << std::strerror(errno);
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0) << std::strerror(errno);
  const std::string own = "/run/hosts/" + std::to_string(host) + "/boot_id";
  ASSERT_EQ(mount(own.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr), 0)
      << std::strerror(errno);
  setenv("UNISONO_NETWORKS", ("e" + std::to_string(host)).c_str(), 1);
}

// Rank I runs on host I modulo the number of hosts. The body contains the expectations.
class VmJob {
 public:
  VmJob(int ranks, VmSettings settings) : ranks_(ranks), settings_(std::move(settings)) {}

  // kOddRank takes this device instead of that at its address.
  static constexpr int kOddRank = 2;
  void use_odd_device(const std::string& name) { odd_device_ = name; }

  // Calls `start` in each rank's process when its environment is set.
  void start_each(const std::function<void(int rank, const Line& line)>& start) {
    for (int rank = 0; rank < ranks_; ++rank) {
      processes_.push_back(start_process([&](const Line& line) {
        ASSERT_NO_FATAL_FAILURE(enter_vm_host(rank % vm_hosts()));
        setenv("UNISONO_RANK", std::to_string(rank).c_str(), 1);
        setenv("UNISONO_SIZE", std::to_string(ranks_).c_str(), 1);
        setenv("UNISONO_RENDEZVOUS", ("tcp:" + vm_address(0) + ":7000").c_str(), 1);
        setenv("UNISONO_JOB_KEY", "the key of this test job", 1);
        setenv("UNISONO_START_TIMEOUT", "150s", 1);  // emulated processors are slow
        for (const auto& [name, value] : settings_) setenv(name.c_str(), value.c_str(), 1);
        if (rank == kOddRank && !odd_device_.empty()) {
          setenv("UNISONO_VERBS_DEVICE", odd_device_.c_str(), 1);
        }
        start(rank, line);
      }));
    }
  }
  void start(const VmBody& body) {
    start_each([&](int rank, const Line& line) {
      unisono_comm_t world = nullptr;
      ASSERT_TRUE(succeeded(unisono_init(&world))) << "rank " << rank;
      body({rank, ranks_, world, line});
    });
  }

  HostProcess& operator[](int rank) { return processes_[static_cast<std::size_t>(rank)]; }
  // No expectation failed in them.
  void expect_clean(int but = -1) {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == but) continue;
      EXPECT_EQ((*this)[rank].wait(), 0) << "rank " << rank;
    }
  }

 private:
  const int ranks_;
  const VmSettings settings_;
  std::string odd_device_;
  std::vector<HostProcess> processes_;
};

}  // namespace unisono::harness

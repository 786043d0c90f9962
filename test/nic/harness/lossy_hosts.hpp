// SPDX-License-Identifier: BSD-3-Clause
// A fixture: hosts, each with the NIC program on its interface, loaded so that rows may lose
// packets. Skips, and says why, where the kernel does not let us.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nic/harness/hosts.hpp"
#include "nic/harness/may_load.hpp"
#include "nic/loader/device.hpp"

namespace unisono::nic::test {

template <int Count>
class LossyHostsOf : public testing::Test {
 protected:
  static constexpr int kHosts = Count;

  static void SetUpTestSuite() {
    auto made = may_load().ok() ? Hosts::make(kHosts) : may_load().error();
    if (!made.ok()) {
      problem = made.error();
      return;
    }
    hosts = *std::move(made);
    devices.resize(kHosts);
    hosts->run([](int host) {
      DeviceOptions options = host_options();
      options.loses_packets = true;
      auto loaded = load_device(options);
      if (loaded.ok())
        devices[static_cast<std::size_t>(host)] = *std::move(loaded);
      else
        ADD_FAILURE() << loaded.error().message;
    });
  }
  static void TearDownTestSuite() {
    devices.clear();
    hosts.reset();
  }
  void SetUp() override {
    if (hosts == nullptr && problem.code == base::Code::unsupported)
      GTEST_SKIP() << problem.message;
    ASSERT_NE(hosts, nullptr) << problem.message;
    for (const auto& device : devices) ASSERT_NE(device, nullptr);
  }

  static Device& device_of(int rank) { return *devices[static_cast<std::size_t>(rank)]; }

  // The counts of the first `count` hosts together.
  static Counters counts(int count = kHosts) {
    Counters sums = {};
    for (int host = 0; host < count; ++host) {
      const Counters one = *device_of(host).counters();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += one[i];
    }
    return sums;
  }

  // A bridge delivers while the sender sends. The virtual machine's hub takes longer: the answer to
  // a question asked twice may come when its group has gone.
  static void forget_late_packets(Counters& counted) {
    if (has_native_hosts()) counted[UNISONO_NIC_NO_GROUP] = 0;
  }

  static std::string text(const Counters& counted) {
    std::string line;
    for (int i = 0; i < UNISONO_NIC_COUNTERS; ++i) {
      const auto counter = static_cast<unisono_nic_counter>(i);
      line += std::string(" ") + counter_name(counter) + " " + std::to_string(counted[counter]);
    }
    return line;
  }

  static inline std::unique_ptr<Hosts> hosts;
  static inline std::vector<std::unique_ptr<Device>> devices;
  static inline base::Error problem;
  static inline std::uint32_t communicator = 0;  // the last one used
};

using LossyHosts = LossyHostsOf<6>;

}  // namespace unisono::nic::test

// SPDX-License-Identifier: BSD-3-Clause
// A fixture: two hosts on which a test starts unisonod, and users whose processes are its clients.
// Skips, with the reason, if the kernel does not allow it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nic/harness/frames.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/kernel_objects.hpp"
#include "nic/harness/processes.hpp"
#include "nic/harness/with_hosts.hpp"
#include "nic/loader/device.hpp"
#include "nic/lowering/row.hpp"
#include "nic/service/client.hpp"

namespace unisono::nic::test {

inline constexpr uid_t kAnna = 54321;
inline constexpr uid_t kBert = 54322;
inline constexpr int kHosts = 2;

inline unisono_nic_row leaf_row(std::uint32_t communicator) {
  unisono_nic_row row = {};
  row.id = {4711, communicator};
  row.depth = 2;
  row.waiters = 1;
  row.rank = 1;
  row.up = host_address(0);
  row.up.port = htons(kServicePort);
  row.down = multicast_address(htonl(0xEFFF0007), htons(kServicePort));
  return row;
}

class Daemon : public WithHosts<kHosts> {
 protected:
  void SetUp() override {
    WithHosts::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    char name[] = "/tmp/unisonod_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    ASSERT_EQ(chmod(name, 0755), 0);
  }
  void TearDown() override {
    for (Child& daemon : daemons) daemon.end(SIGKILL);
    for (int host = 0; hosts != nullptr && host < kHosts; ++host) {
      on(host, [] {
        while (programs_on_egress() != 0) std::this_thread::yield();
      });
    }
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  std::string path(int host) const { return folder + "/nic" + std::to_string(host); }

  static void on(int host, const std::function<void()>& body) {
    std::thread([&] {
      hosts->enter(host);
      body();
    }).join();
  }

  // A daemon on that host; returns its output when it serves, or has given up.
  std::string start(int host, const std::vector<std::string>& more = {}) {
    StartedDaemon started = start_daemon(*hosts, host, path(host), more);
    daemons.push_back(std::move(started.process));
    return started.said;
  }

  // A process of that user on that host; its exit status is what the body returns.
  static Child as(uid_t user, int host, const std::function<int()>& body) {
    return run_as(user, *hosts, host, body);
  }

  std::unique_ptr<ServiceClient> client(int host) {
    auto made = ServiceClient::connect(path(host));
    if (made.ok()) return *std::move(made);
    ADD_FAILURE() << made.error().message;
    return nullptr;
  }

  std::string folder;
  std::vector<Child> daemons;
};

}  // namespace unisono::nic::test

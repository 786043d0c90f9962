// SPDX-License-Identifier: BSD-3-Clause
// A fixture: jobs whose communicators have a NIC path, from unisono_init to unisono_finalize, on
// four hosts with a unisonod each. The kernel takes a second to verify their programs, so they
// serve all tests of a suite until one spoils them. Skips, with the reason, if the kernel does not
// allow it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/all_results.hpp"
#include "harness/hosts.hpp"
#include "harness/machine_interfaces.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "hosts/batch.hpp"
#include "hosts/plan.hpp"
#include "nic/harness/kernel_objects.hpp"
#include "nic/loader/device.hpp"
#include "nic/service/client.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

inline constexpr int kHosts = 4;

struct NicRank {
  int rank;
  int ranks;
  unisono_comm_t world;
  const Line& line;
};
using Body = std::function<void(const NicRank&)>;
using Call = std::function<int(const NicRank&)>;
using Environment = std::vector<std::pair<std::string, std::string>>;

class NicJob : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_) hosts_.emplace(TestHosts::up(host_count_));
    if (!hosts_->reason_to_skip().empty()) GTEST_SKIP() << hosts_->reason_to_skip();
    if (folder_.empty() && machine_interfaces() > 0) {
      if (machine_interfaces() < host_count_) {
        GTEST_SKIP() << "the machine has fewer interfaces than the test has hosts";
      }
      for (int host = 0; host < host_count_; ++host) take_interface(host);
    }
    static const std::string why_not = find_why_not();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    if (!folder_.empty()) return;
    char name[] = "/tmp/nic_job_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { is_spoilt_ |= HasFailure(); }
  static void TearDownTestSuite() {
    daemons_.clear();
    hosts_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    folder_.clear();
  }

  // Another one each time, as a daemon that was killed may still be there for a moment.
  static std::string path(int host) {
    return folder_ + "/nic" + std::to_string(host) + "." + std::to_string(starts_);
  }

  // Returns when exactly this many serve.
  void start_daemons() { start_daemons(host_count_); }
  void start_daemons(int count) {
    if (is_spoilt_ || std::cmp_not_equal(daemons_.size(), count)) {
      daemons_.clear();
      is_spoilt_ = false;
      ++starts_;
      for (int host = 0; host < count; ++host) start_daemon(host);
    }
    before_.clear();
    for (int host = 0; host < count; ++host) {
      while (!nic::ServiceClient::connect(path(host)).ok()) std::this_thread::yield();
      before_.push_back(status(host).counters);
      if (machine_interfaces() > 0) {
        ASSERT_EQ(status(host).served.native, 1) << host;
      }
    }
  }
  // That of one host has these options; the next start has the defaults again.
  void start_daemons_with(int host, std::vector<std::string> options) {
    is_spoilt_ = true;
    options_.emplace(host, std::move(options));
    start_daemons();
    options_.clear();
    is_spoilt_ = true;
  }
  // The others end at the next start.
  static void kill_daemon(int host) {
    const HostProcess gone = std::move(daemons_[static_cast<std::size_t>(host)]);
    is_spoilt_ = true;
  }

  nic::ServiceStatus status(int host) const {
    const auto client = nic::ServiceClient::connect(path(host));
    EXPECT_TRUE(client.ok());
    auto answer = (*client)->status();
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return *std::move(answer);
  }
  // Since the daemons were started for this test.
  std::uint64_t counted(int host, unisono_nic_counter counter) const {
    return status(host).counters[counter] - before_[static_cast<std::size_t>(host)][counter];
  }
  // The sum over all hosts.
  std::uint64_t counted(unisono_nic_counter counter) const {
    std::uint64_t sum = 0;
    for (int host = 0; std::cmp_less(host, before_.size()); ++host) sum += counted(host, counter);
    return sum;
  }
  // Results that went out: one for each operation.
  std::uint64_t operations() const { return counted(UNISONO_NIC_SENT_DOWN); }

  // The daemons are in no state to serve other tests.
  static void spoil() { is_spoilt_ = true; }
  // On each host a process that waits for its child stands for it (enter.cpp).
  static pid_t daemon_on(int host) {
    return nic::test::child_of(daemons_[static_cast<std::size_t>(host)].pid());
  }
  // Stops a rank, alone on its host, as soon as it has asked the program to wake it, and returns
  // its process. The program does not notice: a stopped rank still waits.
  static pid_t stop_in_its_sleep(const HostProcess& rank, int host) {
    const pid_t process = nic::test::child_of(rank.pid());
    const pid_t daemon = daemon_on(host);
    while (true) {
      while (!nic::test::has_armed_waiter(daemon)) std::this_thread::yield();
      if (kill(process, SIGSTOP) != 0) return -1;
      char state = 0;
      while (state != 'T') {
        state = nic::test::state_of(process).state;
        if (state == 0 || state == 'Z') return -1;
      }
      if (nic::test::has_armed_waiter(daemon)) return process;
      kill(process, SIGCONT);
    }
  }

  static HostProcess start_on(int host, const TestHosts::Body& body) {
    return hosts_->start(host, body);
  }
  // On the host; its end is awaited.
  static void run_command(int host, const std::string& command) {
    HostProcess running = start_on(
        host, [&command](const Line&) { ASSERT_EQ(std::system(command.c_str()), 0) << command; });
    ASSERT_EQ(running.wait(), 0);
  }

  std::vector<HostProcess> start_job(const Body& body, const Environment& environment = {}) const {
    const auto ranks = static_cast<int>(host_of_.size());
    std::vector<HostProcess> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      const int host = host_of_[static_cast<std::size_t>(rank)];
      processes.push_back(hosts_->start(host, [&, rank, host, ranks](const Line& line) {
        setenv("UNISONO_RANK", std::to_string(rank).c_str(), 1);
        setenv("UNISONO_SIZE", std::to_string(ranks).c_str(), 1);
        setenv("UNISONO_RENDEZVOUS", "tcp:10.77.0.1:7000", 1);
        setenv("UNISONO_JOB_KEY", "the key of this test job", 1);
        setenv("UNISONO_START_TIMEOUT", "300s", 1);  // a busy machine is no reason to go without
        // A test of a loss waits for it; ranks that live are silent for a second under a sanitizer.
        setenv("UNISONO_DETECT_TIMEOUT_HOSTS", kSanitized ? "4s" : "1s", 1);
        setenv("UNISONO_NIC_SOCKET", path(host).c_str(), 1);
        setenv("UNISONO_NIC_ROOTED", "on", 1);
        for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        body({rank, ranks, world, line});
      }));
    }
    return processes;
  }
  static void expect_all_clean(std::vector<HostProcess>& processes, int but = -1) {
    for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
      if (rank == but) continue;
      EXPECT_EQ(processes[static_cast<std::size_t>(rank)].wait(), 0) << "rank " << rank;
    }
  }

  // The ranks of this job call lose().
  static void expect_all_clean_but(std::vector<HostProcess>& processes, int victim) {
    for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(processes[static_cast<std::size_t>(rank)].line().hear(), "ready") << rank;
    }
    processes[static_cast<std::size_t>(victim)].line().say("be lost");
    expect_all_clean(processes, victim);
  }

  // Collectives of all kinds and sizes; small ones go by the NIC path, and nothing is left.
  void expect_everything_right() {
    start_daemons();
    auto processes = start_job([](const NicRank& self) {
      ASSERT_NO_FATAL_FAILURE(check_everything(self));
      ASSERT_TRUE(succeeded(unisono_finalize(self.world)));
    });
    expect_all_clean(processes);
    EXPECT_GT(operations(), 20U);
    for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
  }

  // All ranks make the call in a loop until a daemon is killed: all get an error.
  void expect_told_of_daemon(int host, const Call& call) const {
    auto processes = start_job([&call](const NicRank& self) {
      ASSERT_TRUE(succeeded(call(self)));
      self.line.say("ready");
      self.line.hear();
      constexpr int kMost = 1'000'000;  // many times as many as fit until then
      int error = UNISONO_OK;
      for (int i = 0; i < kMost && error == UNISONO_OK; ++i) error = call(self);
      EXPECT_TRUE(failed(error, UNISONO_ERROR_SYSTEM, {"unisonod has ended", "NIC path"}));
      unisono_finalize(self.world);
    });
    for (const auto& process : processes) EXPECT_EQ(process.line().hear(), "ready");
    for (const auto& process : processes) process.line().say("go");
    kill_daemon(host);
    expect_all_clean(processes);
  }
  // Ranks that make different calls. The errors have the words.
  void expect_difference(const Call& call, const std::vector<std::string>& words = {
                                               "the ranks' calls differ"}) const {
    auto processes = start_job([&](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      EXPECT_TRUE(failed(call(self), UNISONO_ERROR_MISMATCH, words));
      unisono_finalize(self.world);
    });
    expect_all_clean(processes);
  }
  // Rank 3 does not come in time.
  void expect_deadline() const {
    constexpr int kLate = 3;
    auto processes = start_job(
        [](const NicRank& self) {
          ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
          if (self.rank == kLate) {
            self.line.hear();
          } else {
            EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_TIMEOUT,
                               {"UNISONO_TIMEOUT", "in the NIC path"}));
          }
          unisono_finalize(self.world);
        },
        {{"UNISONO_TIMEOUT", "500ms"}});
    expect_all_clean(processes, kLate);
    processes[kLate].line().say("go");
    EXPECT_EQ(processes[kLate].wait(), 0);
  }

  std::vector<int> host_of_ = {0, 1, 2, 3};  // by rank
  Environment environment_;                  // of all jobs
  static inline int host_count_ = kHosts;    // to be changed before a suite's first test

 private:
  static std::string find_why_not() {
    const auto trial = nic::load_device({});
    const bool is_refused = !trial.ok() && trial.error().code == base::Code::unsupported;
    return is_refused ? trial.error().message : "";
  }
  // The host's interface is one of the machine's own afterwards, with the addresses it had.
  static void take_interface(int host) {
    const HostProcess waiting = start_on(host, [host](const Line& line) {
      ASSERT_TRUE(tools::run_batch("ip", "link delete eth0\n").ok());
      line.say("ready");
      line.hear();
      const base::Status named = tools::run_batch("ip", tools::host_links(host));
      line.say(named.ok() ? "done" : named.error().message);
      line.hear();
    });
    ASSERT_EQ(waiting.line().hear(), "ready");
    const std::string process = std::to_string(nic::test::child_of(waiting.pid()));
    const base::Status moved = tools::run_batch("ip", move_interface(host, process, "eth0"));
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    waiting.line().say("go on");
    ASSERT_EQ(waiting.line().hear(), "done");
  }
  static void start_daemon(int host) {
    std::vector<std::string> arguments = {"unisonod", "--interface", "eth0", "--socket",
                                          path(host)};
    if (machine_interfaces() > 0) arguments.insert(arguments.end(), {"--mode", "native"});
    if (const auto more = options_.find(host); more != options_.end()) {
      arguments.insert(arguments.end(), more->second.begin(), more->second.end());
    }
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    daemons_.push_back(hosts_->start(host, [&pointers](const Line&) {
      execv(UNISONOD_PROGRAM, pointers.data());
      ADD_FAILURE() << UNISONOD_PROGRAM << ": " << std::strerror(errno);
    }));
  }

  static inline std::optional<TestHosts> hosts_;
  static inline std::map<int, std::vector<std::string>> options_;  // of daemons, by host
  static inline std::vector<HostProcess> daemons_;
  static inline bool is_spoilt_ = false;
  static inline int starts_ = 0;
  static inline std::string folder_;
  std::vector<decltype(nic::ServiceStatus::counters)> before_;  // by host
};

// The victim ends, or hangs, when the others have completed their calls so far. Else its last
// messages would be lost with it, and these calls would fail.
inline void lose(const NicRank& self, int victim, int signal = SIGKILL) {
  if (self.rank != victim) return self.line.say("ready");
  self.line.hear();
  raise(signal);
  ADD_FAILURE() << "goes on";
}

// The call's error; or that of the next call, if a rank that takes no result returned before the
// others were known to differ.
inline int error_so_far(const NicRank& self, int error) {
  return error == UNISONO_OK ? unisono_barrier(self.world) : error;
}

inline void leave(const NicRank& self) { EXPECT_TRUE(succeeded(unisono_finalize(self.world))); }

}  // namespace unisono::harness

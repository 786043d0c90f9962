// SPDX-License-Identifier: BSD-3-Clause
// For tests of the bootstrap: a rendezvous that is served by a thread, and ranks that join it.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"

namespace unisono::bootstrap::test {

inline constexpr const char* kKey = "the key of this test job";

inline base::Settings settings_with(const std::string& timeout) {
  base::Result<base::Settings> settings =
      base::Settings::from({{"UNISONO_START_TIMEOUT", timeout}, {"UNISONO_SHARED_LIMIT", "1M"}});
  EXPECT_TRUE(settings.ok());
  return std::move(*settings);
}

// A rendezvous served by a thread of its own.
class Host {
 public:
  explicit Host(int ranks, const std::string& timeout = "30s", const std::string& address = "") {
    Rendezvous::Options options;
    options.ranks = ranks;
    options.key = kKey;
    options.memory_bytes = 1 << 20;
    options.timeout_ns = settings_with(timeout).time_ns(base::Setting::start_timeout);
    if (!address.empty()) options.address = *parse_address(address);
    auto opened = Rendezvous::open(options);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    if (opened.ok()) server_ = std::move(*opened);
  }
  ~Host() { stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void serve() {
    thread_ = std::thread([this] {
      result_.emplace(server_->serve(base::now_ns() + 60 * base::kSecond));
      decided_ = true;
      // Like the launcher: late ranks get an answer, too.
      while (!stopping_) step_once(10);
    });
  }
  // The result of serve().
  base::Status finish() {
    while (!decided_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop();
    return *result_;
  }
  // Without serve(): one step in this thread.
  void step_once(int timeout_ms) {
    pollfd readable{server_->descriptor(), POLLIN, 0};
    poll(&readable, 1, timeout_ms);
    server_->step();
  }
  Rendezvous& server() { return *server_; }

  JobDescription job(int rank, int ranks) const {
    JobDescription description;
    description.launcher = Launcher::unisono;
    description.rank = rank;
    description.ranks = ranks;
    description.address = *parse_address(server_->address());
    description.address_given = true;
    description.key = kKey;
    return description;
  }

 private:
  std::unique_ptr<Rendezvous> server_;
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::thread thread_;
  std::optional<base::Status> result_;
  std::atomic<bool> decided_ = false;
  std::atomic<bool> stopping_ = false;
};

// Runs each job's join in a thread; results in the same order.
inline std::vector<base::Result<JobInfo>> join_all(const std::vector<JobDescription>& jobs,
                                                   const base::Settings& settings) {
  std::vector<std::optional<base::Result<JobInfo>>> infos(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { infos[i].emplace(join(jobs[i], settings)); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<base::Result<JobInfo>> result;
  for (auto& info : infos) result.push_back(std::move(*info));
  return result;
}

inline void expect_error(const base::Result<JobInfo>& info, base::Code code,
                         std::string_view part) {
  ASSERT_FALSE(info.ok()) << part;
  EXPECT_EQ(info.error().code, code) << info.error().message;
  EXPECT_NE(info.error().message.find(part), std::string::npos) << info.error().message;
}

}  // namespace unisono::bootstrap::test

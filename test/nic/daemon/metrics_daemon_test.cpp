// SPDX-License-Identifier: BSD-3-Clause
// unisonod --metrics: the file grows with what happens, is written a last time at the end, and
// does not end the service when it cannot be written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include "nic/daemon/daemon_hosts.hpp"
#include "unit/daemon/exposition.hpp"

namespace unisono::nic::test::metrics_daemon_test {
namespace {

class DaemonMetrics : public Daemon {
 protected:
  std::string file() const { return folder + "/metrics/nic.prom"; }
  std::vector<std::string> options() const {
    return {"--metrics", file(), "--metrics-interval", "1"};
  }
  std::map<std::string, std::uint64_t> values() const {
    std::ifstream stream(file());
    return daemon::test::parse_exposition({std::istreambuf_iterator<char>(stream), {}});
  }
  std::uint64_t value(const std::string& name) const {
    const auto all = values();
    const auto found = all.find("unisono_nic_" + name + "{interface=\"u0\"}");
    return found == all.end() ? 0 : found->second;
  }
};

TEST_F(DaemonMetrics, GrowAndSayWhenItHasEnded) {
  std::filesystem::create_directory(folder + "/metrics");
  start(0, options());
  EXPECT_EQ(value("up"), 1U) << "written before it serves";
  EXPECT_EQ(value("groups_joined_total"), 0U);
  auto own = client(0);
  const auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  while (value("groups_joined_total") == 0) std::this_thread::yield();
  EXPECT_EQ(value("groups"), 1U);
  EXPECT_GE(value("requests_total"), 1U);
  EXPECT_GE(value("memory_bytes"), 1U);
  EXPECT_EQ(daemons[0].end(SIGTERM), 0);
  EXPECT_EQ(value("up"), 0U);
  EXPECT_EQ(value("groups"), 0U);
  EXPECT_EQ(value("connections"), 0U);
  EXPECT_EQ(value("groups_ended_total"), 1U);
}

TEST_F(DaemonMetrics, AFolderThatIsMissingIsAnErrorAtTheStart) {
  EXPECT_EQ(start(0, options()),
            "unisonod: create " + file() + ".tmp (--metrics): No such file or directory");
  EXPECT_EQ(daemons[0].wait(), 1);
}

TEST_F(DaemonMetrics, AFolderThatGoesDoesNotEndTheService) {
  std::filesystem::create_directory(folder + "/metrics");
  start(0, options());
  std::filesystem::remove_all(folder + "/metrics");
  auto own = client(0);
  const auto member = own->join(leaf_row(1));
  ASSERT_TRUE(member.ok()) << member.error().message;
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // two writes fail
  EXPECT_TRUE(own->status().ok());
  std::filesystem::create_directory(folder + "/metrics");
  while (!std::filesystem::exists(file())) std::this_thread::yield();
  EXPECT_EQ(value("groups_joined_total"), 1U);
}

}  // namespace
}  // namespace unisono::nic::test::metrics_daemon_test

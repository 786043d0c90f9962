// SPDX-License-Identifier: BSD-3-Clause
// The text for Prometheus by a strict parser, and its file: replaced as a whole or not at all.
#include "daemon/metrics.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "unit/daemon/exposition.hpp"

namespace unisono::daemon::test::metrics_test {
namespace {

MetricsSample busy() {
  InterfaceSample eth0{.name = "eth0"};
  for (std::size_t i = 0; i < eth0.counters.size(); ++i) eth0.counters[i] = 100 + i;
  eth0.counters[UNISONO_NIC_SENT_UP] = 18446744073709551615U;
  MetricsSample sample;
  sample.interfaces = {eth0};
  sample.service = {9, 1, 30, 2, 3, 5, 4};
  sample.connections = 8;
  sample.groups = 1;
  sample.bytes = 8192;
  sample.retained_bytes = 4096;
  return sample;
}

TEST(Metrics, EveryValueIsThere) {
  const auto values = parse_exposition(metrics_text(busy()));
  const auto at = [&](const std::string& name, const std::string& labels = "") {
    return values.at("unisono_nic_" + name + "{interface=\"eth0\"" + labels + "}");
  };
  EXPECT_EQ(at("up"), 1U);
  EXPECT_EQ(at("connections"), 8U);
  EXPECT_EQ(at("groups"), 1U);
  EXPECT_EQ(at("memory_bytes"), 8192U);
  EXPECT_EQ(at("retained_memory_bytes"), 4096U);
  EXPECT_EQ(at("connections_accepted_total"), 9U);
  EXPECT_EQ(at("groups_ended_total"), 4U);
  EXPECT_EQ(at("build_info", ",version=\"" UNISONO_VERSION "\",mode=\"generic\""), 1U);
  for (std::size_t i = 0; i < busy().interfaces[0].counters.size(); ++i) {
    const auto counter = static_cast<unisono_nic_counter>(i);
    std::string family = nic::counter_kind_name(nic::counter_kind(counter));
    family = family == "wakeup" ? "wakeups_total" : family + "_packets_total";
    const std::string reason = ",reason=\"" + std::string(nic::counter_name(counter)) + "\"";
    EXPECT_EQ(at(family, reason), busy().interfaces[0].counters[i]) << reason;
  }
  EXPECT_EQ(values.size(), busy().interfaces[0].counters.size() + 13);
}

// Packets are those of an interface. The daemon's own counters are for all of them.
TEST(Metrics, SeveralInterfacesHaveTheirOwnPackets) {
  MetricsSample sample = busy();
  sample.interfaces.push_back({.name = "eth1", .native = true});
  sample.interfaces[1].counters[UNISONO_NIC_SENT_UP] = 7;
  const auto values = parse_exposition(metrics_text(sample));
  const std::string sent = "unisono_nic_handled_packets_total{interface=";
  EXPECT_EQ(values.at(sent + "\"eth0\",reason=\"sent_up\"}"), 18446744073709551615U);
  EXPECT_EQ(values.at(sent + "\"eth1\",reason=\"sent_up\"}"), 7U);
  EXPECT_EQ(values.at("unisono_nic_groups{interface=\"eth0,eth1\"}"), 1U);
  EXPECT_EQ(values.at("unisono_nic_build_info{interface=\"eth1\",version=\"" UNISONO_VERSION
                      "\",mode=\"native\"}"),
            1U);
  EXPECT_EQ(values.size(), 2 * sample.interfaces[0].counters.size() + 14);
}

TEST(Metrics, AnyNameOfAnInterfaceGivesASoundLabel) {
  MetricsSample sample = busy();
  sample.interfaces[0].name = "a\"b\\c\xFF\n";
  sample.up = false;
  const auto values = parse_exposition(metrics_text(sample));
  EXPECT_EQ(values.at(R"(unisono_nic_up{interface="a\"b\\c__"})"), 0U);
}

class MetricsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/unisono_metrics_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  static std::string content(const std::string& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void expect_error(const std::string& path, const std::string& part) const {
    const base::Status written = MetricsFile(path).write("new\n");
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find(part), std::string::npos) << written.error().message;
    EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  }

  std::string folder;
};

TEST_F(MetricsFileTest, IsReadableForAllWhateverTheUmask) {
  const std::string path = folder + "/nic.prom";
  const mode_t before = umask(0077);
  const base::Status written = MetricsFile(path).write("a 1\n");
  umask(before);
  ASSERT_TRUE(written.ok()) << written.error().message;
  struct stat found = {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0644U);
  EXPECT_EQ(content(path), "a 1\n");
}

TEST_F(MetricsFileTest, AReaderKeepsTheTextThatItHasOpened) {
  const std::string path = folder + "/nic.prom";
  ASSERT_TRUE(MetricsFile(path).write("old\n").ok());
  std::ifstream reader(path);
  ASSERT_TRUE(MetricsFile(path).write("new\n").ok());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old\n");
  EXPECT_EQ(content(path), "new\n");
}

TEST_F(MetricsFileTest, ReplacesWhatAKilledDaemonLeftAndFollowsNoLink) {
  const std::string path = folder + "/nic.prom";
  std::ofstream(folder + "/victim") << "mine";
  ASSERT_EQ(symlink((folder + "/victim").c_str(), (path + ".tmp").c_str()), 0);
  ASSERT_TRUE(MetricsFile(path).write("new\n").ok());
  EXPECT_EQ(content(path), "new\n");
  EXPECT_EQ(content(folder + "/victim"), "mine");
}

TEST_F(MetricsFileTest, ErrorsNameThePath) {
  expect_error(folder + "/none/nic.prom", folder + "/none/nic.prom.tmp (--metrics): No such file");
  expect_error(folder, folder + " (--metrics) is not a regular file");
  ASSERT_EQ(symlink("/dev/null", (folder + "/link").c_str()), 0);
  expect_error(folder + "/link", "is not a regular file");
  expect_error("/dev/full", "is not a regular file");
}

}  // namespace
}  // namespace unisono::daemon::test::metrics_test

// SPDX-License-Identifier: BSD-3-Clause
// The document of `unisono nic status --json`: its values, and that the page describes every key.
#include "nic/nic_status_json.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "nic/loader/device.hpp"

namespace unisono::tools::test::nic_status_json_test {
namespace {

using Json = nlohmann::json;

std::vector<nic::Interface> two_interfaces() {
  nic::Interface up;
  up.name = "eth0";
  up.driver = "ixgbe";
  up.ipv4 = htonl(0x0A000001);
  up.mask = htonl(0xFFFFFF00);
  up.mtu = 9000;
  up.mac[5] = 1;
  up.up = up.ethernet = true;
  nic::Interface down = up;
  down.name = "eth1";
  down.driver = "";
  down.ipv4 = 0;
  down.up = false;
  return {up, down};
}

// Each counter has another value.
nic::ServiceStatus busy_daemon() {
  nic::ServiceStatus status;
  status.served.interface = "eth0";
  status.served.driver = "ixgbe";
  status.served.native = 1;
  status.served.own.ipv4 = htonl(0x0A000001);
  status.served.own.port = htons(47300);
  status.process = 17;
  status.groups = 3;
  status.retained_bytes = 4096;
  status.own_groups = {{1000, 4242, 0xABC, 1, 5, 2, 8192}};
  for (std::size_t i = 0; i < status.counters.size(); ++i) status.counters[i] = 100 + i;
  status.counters[UNISONO_NIC_SENT_UP] = 1234567890123456789;
  status.service = {9, 1, 30, 2, 3, 5, 4};
  return status;
}

using Statuses = base::Result<std::vector<nic::ServiceStatus>>;

Statuses busy() { return std::vector{busy_daemon()}; }

Json document(const Statuses& all) {
  const Capability capability = {"/usr/sbin/unisonod", true, "6.6.0", 0, false};
  return Json::parse(status_json(capability, two_interfaces(), "/run/x", all));
}

TEST(NicStatusJson, TheDaemon) {
  const Json json = document(busy());
  EXPECT_EQ(json["schema"], "unisono-nic-status");
  EXPECT_EQ(json["version"], kStatusVersion);
  EXPECT_TRUE(json["why_no_daemon"].is_null());
  const Json& daemon = json["daemon"];
  EXPECT_EQ(daemon["mode"], "native");
  EXPECT_EQ(daemon["address"], "10.0.0.1");
  EXPECT_EQ(daemon["port"], 47300);
  EXPECT_EQ(daemon["retained_bytes"], 4096);
  EXPECT_EQ(daemon["own_groups"],
            Json::parse(R"([{"user": 1000, "process": 4242, "job": 2748, "communicator": 1,
                             "rank": 5, "children": 2, "bytes": 8192}])"));
  EXPECT_EQ(daemon["counters"]["handled"]["sent_up"], 1234567890123456789);
  EXPECT_EQ(daemon["counters"]["service"]["groups_joined"], 5);
}

TEST(NicStatusJson, EachInterfaceThatIsServed) {
  nic::ServiceStatus second = busy_daemon();
  second.served.interface = "eth1";
  second.served.native = 0;
  second.counters[UNISONO_NIC_SENT_UP] = 3;
  const Json daemon = document(std::vector{busy_daemon(), second})["daemon"];
  EXPECT_EQ(daemon["interface"], "eth0");
  EXPECT_EQ(daemon["counters"]["handled"]["sent_up"], 1234567890123456789);
  ASSERT_EQ(daemon["served"].size(), 2U);
  EXPECT_EQ(daemon["served"][0]["interface"], "eth0");
  EXPECT_EQ(daemon["served"][1]["interface"], "eth1");
  EXPECT_EQ(daemon["served"][1]["mode"], "generic");
  EXPECT_EQ(daemon["served"][1]["packets"]["handled"]["sent_up"], 3);
}

TEST(NicStatusJson, EveryCounterIsThereOnceUnderItsKind) {
  const Json counters = document(busy())["daemon"]["counters"];
  std::size_t found = 0;
  for (const char* const kind : {"passed", "dropped", "handled", "wakeup"}) {
    found += counters[kind].size();
  }
  EXPECT_EQ(found, std::size_t{UNISONO_NIC_COUNTERS});
  EXPECT_EQ(counters["passed"]["foreign"], 100 + UNISONO_NIC_FOREIGN);
  EXPECT_EQ(counters["dropped"]["short"], 100 + UNISONO_NIC_SHORT);
  EXPECT_EQ(counters["dropped"]["lost"], 100 + UNISONO_NIC_LOST);
  EXPECT_EQ(counters["handled"]["taken_in"], 100 + UNISONO_NIC_TAKEN_IN);
  EXPECT_EQ(counters["handled"]["block_passed"], 100 + UNISONO_NIC_BLOCK_PASSED);
  EXPECT_EQ(counters["wakeup"]["woken"], 100 + UNISONO_NIC_WOKEN);
  EXPECT_EQ(counters["wakeup"]["not_woken"], 100 + UNISONO_NIC_NOT_WOKEN);
}

TEST(NicStatusJson, TheHost) {
  const Json json = document(base::Error{base::Code::unsupported, "nobody \xFF is \"there\""});
  EXPECT_TRUE(json["daemon"].is_null());
  EXPECT_EQ(json["why_no_daemon"], "nobody \xEF\xBF\xBD is \"there\"") << "bytes that are no UTF-8";
  EXPECT_EQ(json["capability"]["missing_privileges"],
            Json({"CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"}));
  EXPECT_EQ(json["capability"]["kernel_suffices"], true);
  EXPECT_EQ(json["interfaces"][0],
            Json::parse(R"({"name": "eth0", "driver": "ixgbe", "address": "10.0.0.1",
                            "prefix_bits": 24, "mac": "00:00:00:00:00:01", "mtu_bytes": 9000,
                            "up": true, "usable": true, "why_unusable": null})"));
  EXPECT_EQ(json["interfaces"][1]["usable"], false);
  EXPECT_EQ(json["interfaces"][1]["why_unusable"], "it is down");
  EXPECT_TRUE(json["interfaces"][1]["address"].is_null());
}

void collect_keys(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

TEST(NicStatusJson, ThePageDescribesEveryKey) {
  std::ifstream stream(UNISONO_STATUS_PAGE);
  const std::string page(std::istreambuf_iterator<char>(stream), {});
  std::set<std::string> keys;
  collect_keys(document(busy()), keys);
  EXPECT_GT(keys.size(), 60U);
  for (const std::string& key : keys) {
    const bool described = page.find(key + '`') != std::string::npos ||
                           page.find('`' + key + '[') != std::string::npos ||
                           page.find('`' + key + '.') != std::string::npos;
    EXPECT_TRUE(described) << key;
  }
}

}  // namespace
}  // namespace unisono::tools::test::nic_status_json_test

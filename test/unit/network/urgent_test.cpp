// SPDX-License-Identifier: BSD-3-Clause
// Urgent datagrams, and sleeps that only these end: over datagrams that record what is sent and
// asked. Time is a number. In one thread.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "network/carrier.hpp"
#include "transport/datagrams.hpp"

namespace unisono::network::urgent_test {
namespace {

class Recorder final : public transport::Datagrams {
 public:
  struct Sent {
    wire::Kind kind;
    int target;
    std::size_t bytes;
    bool urgent;
  };

  const transport::DatagramLimits& limits() const override { return limits_; }
  int rank() const override { return 0; }
  std::size_t send(std::span<const transport::Outgoing> datagrams) override {
    for (const transport::Outgoing& each : datagrams) {
      sent.push_back({static_cast<wire::Kind>(each.head[offsetof(wire::Header, kind)]), each.target,
                      each.head.size() + each.body.size(), each.urgent});
    }
    return datagrams.size();
  }
  std::size_t receive(std::span<transport::Incoming>) override { return 0; }
  transport::DatagramCounts counts() const override { return {}; }
  bool may_sleep(bool only_urgent) override {
    asked.push_back(only_urgent);
    return sleeps;
  }

  std::vector<Sent> sent;
  std::vector<bool> asked;  // only_urgent
  bool sleeps = true;

 private:
  transport::DatagramLimits limits_{
      .name = "recorder", .max_payload = 1472, .multicast = true, .max_group_payload = 1024};
};

// Rank 0 of three, which have hosts of their own unless that is said.
class RankZero {
 public:
  explicit RankZero(topology::HostMap hosts = topology::HostMap::apart(3)) : region_(2048) {
    reliable::ReliableOptions options;
    options.key = wire::key_of("test");
    options.ranks = 3;
    options.region = region();
    options.region_bytes = region_.size() * sizeof region_[0];
    options.hosts = std::move(hosts);
    options.now_ns = [this] { return now_ns; };
    auto datagrams = std::make_unique<Recorder>();
    recorder = datagrams.get();
    carrier = std::make_unique<Carrier>(
        std::make_unique<reliable::Reliable>(std::move(datagrams), options));
  }
  std::byte* region() { return reinterpret_cast<std::byte*>(region_.data()); }
  void put_to_all(std::size_t bytes) {
    carrier->reliable().put_to_all({.source = region(),
                                    .place = region(),
                                    .bytes = bytes,
                                    .flag = region_.data() + 2000,
                                    .flag_value = 1});
  }

  std::int64_t now_ns = base::kSecond;
  Recorder* recorder;
  std::unique_ptr<Carrier> carrier;

 private:
  std::vector<std::uint64_t> region_;
};

TEST(Urgent, AMulticastIsNotAndTheQuestionAfterItIs) {
  RankZero rank;
  rank.put_to_all(100);
  ASSERT_EQ(rank.recorder->sent.size(), 1U);
  EXPECT_FALSE(rank.recorder->sent[0].urgent);
  EXPECT_FALSE(rank.carrier->settle());
  ASSERT_EQ(rank.recorder->sent.size(), 2U);
  EXPECT_EQ(rank.recorder->sent[1].kind, wire::Kind::query);
  EXPECT_EQ(rank.recorder->sent[1].target, transport::kGroup);
  EXPECT_TRUE(rank.recorder->sent[1].urgent);
}

TEST(Urgent, ARequestForLostPacketsIs) {
  RankZero rank;
  rank.carrier->reliable().awaits_multicast(1);
  rank.now_ns += base::kSecond;
  rank.carrier->progress();
  ASSERT_FALSE(rank.recorder->sent.empty());
  EXPECT_EQ(rank.recorder->sent[0].kind, wire::Kind::nack);
  EXPECT_EQ(rank.recorder->sent[0].target, 1);
  EXPECT_TRUE(rank.recorder->sent[0].urgent);
}

TEST(Urgent, DatagramsToTheGroupAreAsLongAsItsCarrierTakes) {
  RankZero rank;
  rank.put_to_all(5000);
  std::size_t longest = 0;
  for (const Recorder::Sent& each : rank.recorder->sent) {
    EXPECT_EQ(each.target, transport::kGroup);
    longest = std::max(longest, each.bytes);
  }
  EXPECT_EQ(longest, 1024U);
  EXPECT_EQ(rank.recorder->sent.size(), 6U) << "of 952 bytes each";
}

TEST(Urgent, OnlyAnIdleRankThatIsAloneOnItsHostSleepsForThemAlone) {
  RankZero rank;
  rank.carrier->sleep_target(true);
  rank.carrier->sleep_target(false);
  EXPECT_EQ(rank.recorder->asked, (std::vector<bool>{true, false}));
  const std::vector<int> two_hosts{0, 0, 1};
  RankZero shared(topology::HostMap::of_labels(two_hosts));
  shared.carrier->sleep_target(true);
  EXPECT_EQ(shared.recorder->asked, std::vector<bool>{false})
      << "another rank of the host may wait for what this one receives";
}

TEST(Urgent, ASleepEndsAtOnceIfSomethingIsThereAlready) {
  RankZero rank;
  rank.recorder->sleeps = false;
  const std::int64_t deadline_ns = rank.carrier->sleep_target(false).deadline_ns;
  EXPECT_LE(deadline_ns, base::now_ns());
  rank.recorder->sleeps = true;
  EXPECT_GT(rank.carrier->sleep_target(false).deadline_ns, base::now_ns() + base::kSecond);
}

}  // namespace
}  // namespace unisono::network::urgent_test

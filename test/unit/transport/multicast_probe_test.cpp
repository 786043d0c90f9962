// SPDX-License-Identifier: BSD-3-Clause
// The multicast probe over a network that is a list, with time as a number, and over loopback.
#include "transport/multicast_probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "datagram_exchange.hpp"
#include "udp_world.hpp"

namespace unisono::transport::multicast_probe_test {
namespace {

constexpr wire::Key kKey{3, 4};

// Delivers the datagrams accepted by `carries(source, target)` at once.
class Switch {
 public:
  using Rule = std::function<bool(int source, int target)>;
  Switch(int ranks, Rule carries) : carries_(std::move(carries)) {
    for (int rank = 0; rank < ranks; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
  }
  Datagrams& at(int rank) { return *ports_[static_cast<std::size_t>(rank)]; }
  // As if from the network.
  void inject(int rank, DatagramBytes bytes) {
    ports_[static_cast<std::size_t>(rank)]->queue.push_back(std::move(bytes));
  }
  std::uint64_t sent = 0;

 private:
  struct Port final : Datagrams {
    Port(Switch& parent_switch, int own_rank) : parent(parent_switch), own(own_rank) {}
    const DatagramLimits& limits() const override { return parent.limits_; }
    int rank() const override { return own; }
    DatagramCounts counts() const override { return {}; }
    std::size_t send(std::span<const Outgoing> datagrams) override {
      for (const Outgoing& one : datagrams) {
        EXPECT_EQ(one.target, kGroup);
        DatagramBytes bytes(one.head.size() + one.body.size());
        std::copy(one.body.begin(), one.body.end(),
                  std::copy(one.head.begin(), one.head.end(), bytes.begin()));
        for (auto& port : parent.ports_) {
          if (port->own != own && parent.carries_(own, port->own)) port->queue.push_back(bytes);
        }
        ++parent.sent;
      }
      return datagrams.size();
    }
    std::size_t receive(std::span<Incoming> datagrams) override {
      taken.clear();
      while (taken.size() < datagrams.size() && !queue.empty()) {
        taken.push_back(std::move(queue.front()));
        queue.pop_front();
      }
      for (std::size_t i = 0; i < taken.size(); ++i) datagrams[i].bytes = taken[i];
      return taken.size();
    }
    Switch& parent;
    int own;
    std::deque<DatagramBytes> queue;
    std::vector<DatagramBytes> taken;
  };

  DatagramLimits limits_{.name = "switch", .max_payload = 1400, .multicast = true};
  Rule carries_;
  std::vector<std::unique_ptr<Port>> ports_;
};

struct Probes {
  Probes(Switch& network, const std::vector<int>& ranks, const std::vector<int>& members,
         int job_ranks) {
    for (const int rank : ranks) {
      filters.push_back(std::make_unique<wire::PacketFilter>(kKey, rank, job_ranks));
      probes.push_back(
          std::make_unique<MulticastProbe>(network.at(rank), *filters.back(), members));
    }
  }
  // Until all carry, or the time is over; in steps of a millisecond.
  bool run(std::int64_t end_ns) {
    for (std::int64_t now = 0; now <= end_ns; now += base::kMillisecond) {
      for (auto& probe : probes) probe->step(now);
      if (all()) return true;
    }
    return false;
  }
  bool all() const {
    return std::all_of(probes.begin(), probes.end(),
                       [](const auto& probe) { return probe->carries(); });
  }
  std::vector<std::unique_ptr<wire::PacketFilter>> filters;
  std::vector<std::unique_ptr<MulticastProbe>> probes;
};

const std::vector<int> kFour{0, 1, 2, 3};

TEST(MulticastProbe, FindsThatAllHearAll) {
  Switch network(4, [](int, int) { return true; });
  Probes probes(network, kFour, kFour, 4);
  EXPECT_TRUE(probes.run(10 * base::kMillisecond));
  for (const auto& probe : probes.probes) {
    EXPECT_EQ(probe->note(), "multicast carries between 4 members");
  }
  EXPECT_LT(network.sent, 40U);
}

TEST(MulticastProbe, OneDeafMemberIsEnough) {
  Switch network(4, [](int, int target) { return target != 2; });
  Probes probes(network, kFour, kFour, 4);
  EXPECT_FALSE(probes.run(base::kSecond));
  for (const auto& probe : probes.probes) EXPECT_FALSE(probe->carries());
  EXPECT_NE(probes.probes[2]->note().find("nothing came from ranks 0, 1, 3"), std::string::npos);
  EXPECT_NE(probes.probes[0]->note().find("1 of 3 other members"), std::string::npos);
  // Growing distances: some twenty probes each in a second, three copies of the last kind.
  EXPECT_LT(network.sent, 4U * 3 * 30);
}

TEST(MulticastProbe, OneMuteMemberIsNamed) {
  Switch network(4, [](int source, int) { return source != 1; });
  Probes probes(network, kFour, kFour, 4);
  EXPECT_FALSE(probes.run(base::kSecond));
  EXPECT_NE(probes.probes[3]->note().find("nothing came from rank 1;"), std::string::npos);
}

// A sender that only one rank hears does not change the answer of members that need not hear it.
TEST(MulticastProbe, MembersOnlyCount) {
  Switch network(4, [](int source, int target) { return source != 1 && target != 1; });
  const std::vector<int> members{0, 2, 3};
  Probes probes(network, members, members, 4);
  EXPECT_TRUE(probes.run(10 * base::kMillisecond));
  Probes alone(network, {1}, {1}, 4);
  EXPECT_TRUE(alone.run(0));
}

TEST(MulticastProbe, LossDelaysTheAnswer) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    base::Prng prng(seed);
    Switch network(4, [&](int, int) { return prng.below(10) >= 3; });
    Probes probes(network, kFour, kFour, 4);
    EXPECT_TRUE(probes.run(10 * base::kSecond)) << "seed " << seed;
  }
}

// The probes that say "I have heard all" are lost: each member has heard all others nevertheless.
TEST(MulticastProbe, WhatAMemberHearsDoesNotNeedTheWordOfOthers) {
  std::uint64_t delivered = 0;
  Switch network(3, [&delivered](int, int) { return ++delivered <= 6; });  // the first of each
  const std::vector<int> members{0, 1, 2};
  Probes probes(network, members, members, 3);
  EXPECT_FALSE(probes.run(base::kSecond));
  for (const auto& probe : probes.probes) EXPECT_TRUE(probe->has_heard_all());
}

TEST(MulticastProbe, StrangersProveNothing) {
  Switch network(3, [](int source, int) { return source == 0; });
  const std::vector<int> members{0, 1, 2};
  Probes probes(network, members, members, 3);
  const wire::PacketFilter stranger({5, 6}, 1, 3);
  wire::Header header = stranger.header(wire::Kind::probe, wire::kToGroup, 1);
  header.value = 1;
  header.job = wire::job_of(kKey);
  const wire::Envelope envelope = stranger.seal(header, {});
  network.inject(0, DatagramBytes(envelope.begin(), envelope.end()));
  EXPECT_FALSE(probes.run(base::kSecond));
  EXPECT_EQ(probes.filters[0]->drops().of(wire::Drop::tag), 1U);
  EXPECT_NE(probes.probes[0]->note().find("nothing came from ranks 1, 2"), std::string::npos);
}

// A probe of a path goes to one rank and has the same kind. Its value may be 1 as well.
TEST(MulticastProbe, AProbeOfAPathProvesNothing) {
  Switch network(2, [](int, int) { return false; });
  Probes probes(network, {0, 1}, {0, 1}, 2);
  const wire::PacketFilter member(kKey, 1, 2);
  wire::Header header = member.header(wire::Kind::probe, 0, 1);
  header.value = 1;
  const wire::Envelope envelope = member.seal(header, {});
  network.inject(0, DatagramBytes(envelope.begin(), envelope.end()));
  EXPECT_FALSE(probes.run(base::kSecond));
  EXPECT_EQ(probes.filters[0]->drops().of(wire::Drop::tag), 0U);
  EXPECT_NE(probes.probes[0]->note().find("nothing came from rank 1"), std::string::npos);
}

TEST(MulticastProbe, LoopbackCarriesIt) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  constexpr int kRanks = 3;
  auto ranks = UdpRanks::open(kRanks, {.local = *local});
  ASSERT_TRUE(ranks.ok());
  const std::vector<int> members{0, 1, 2};
  std::vector<MulticastReport> reports(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      wire::PacketFilter filter(kKey, rank, kRanks);
      // Far enough away that only an answer ends it.
      reports[static_cast<std::size_t>(rank)] = probe_multicast(
          (*ranks)->at(rank), filter, members, base::now_ns() + 3600 * base::kSecond);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const MulticastReport& report : reports) EXPECT_TRUE(report.hears_all) << report.note;
}

TEST(MulticastProbe, TheDeadlineEndsIt) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  auto ranks = UdpRanks::open(2, {.local = *local});
  ASSERT_TRUE(ranks.ok());
  wire::PacketFilter filter(kKey, 0, 2);
  const std::vector<int> members{0, 1};
  const std::int64_t deadline = base::now_ns() + 20 * base::kMillisecond;
  const MulticastReport report = probe_multicast((*ranks)->at(0), filter, members, deadline);
  EXPECT_FALSE(report.hears_all);
  EXPECT_NE(report.note.find("rank 1"), std::string::npos);
  EXPECT_GE(base::now_ns(), deadline);
}

}  // namespace
}  // namespace unisono::transport::multicast_probe_test

// SPDX-License-Identifier: BSD-3-Clause
#include "network/router.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "transport/shm/shm.hpp"

namespace unisono::network::router_test {
namespace {

// Notes the ranks to which something was given.
class Recorder final : public transport::Transport {
 public:
  explicit Recorder(bool direct = false) { capabilities_.direct = direct; }
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  void put(const transport::Put& message) override { puts.push_back(message.target); }
  void put_to_all(const transport::Put&) override { ++multicasts; }
  void get(const transport::Get& wanted) override { gets.push_back(wanted.source); }
  int progress() override { return ++turns; }
  void awaits(int rank) override { awaited.push_back(rank); }
  void awaits_multicast(int origin) override { multicasts_of.push_back(origin); }

  std::vector<int> puts, gets, awaited, multicasts_of;
  int multicasts = 0, turns = 0;

 private:
  transport::Capabilities capabilities_;
};

topology::HostMap two_hosts() { return topology::HostMap::of_labels(std::vector{0, 1, 0, 1}); }

TEST(Router, AStoreIsDoneInPlaceAndNoTransportIsCalled) {
  Recorder here(true), elsewhere;
  const Router router(here, &elsewhere, two_hosts(), 0);
  const std::uint64_t value = 7;
  std::uint64_t place = 0, flag = 0;
  router.put({.target = 2,
              .source = reinterpret_cast<const std::byte*>(&value),
              .place = reinterpret_cast<std::byte*>(&place),
              .bytes = sizeof value,
              .flag = &flag,
              .flag_value = 3});
  EXPECT_EQ(place, 7U);
  EXPECT_EQ(flag, 3U);
  router.put({.target = 2, .flag = &flag, .flag_value = 2, .forward = true});
  EXPECT_EQ(flag, 3U) << "a counter does not go back";
  EXPECT_TRUE(here.puts.empty());
  EXPECT_TRUE(elsewhere.puts.empty());
}

TEST(Router, EachRankIsReachedByTheTransportOfItsPlace) {
  Recorder here, elsewhere;
  const Router router(here, &elsewhere, two_hosts(), 1);
  for (int rank = 0; rank < 4; ++rank) {
    router.put({.target = rank});
    router.awaits(rank, rank >= 2);
  }
  EXPECT_EQ(here.puts, (std::vector{1, 3}));
  EXPECT_EQ(elsewhere.puts, (std::vector{0, 2}));
  EXPECT_EQ(here.awaited, (std::vector{1, 3}));
  EXPECT_EQ(elsewhere.awaited, (std::vector{0, 2}));
  EXPECT_EQ(elsewhere.multicasts_of, std::vector{2});
  EXPECT_TRUE(here.multicasts_of.empty()) << "within the host it lies in memory";
  router.put_to_all({});
  router.get({.source = 2});
  EXPECT_EQ(elsewhere.multicasts, 1);
  EXPECT_EQ(elsewhere.gets, std::vector{2});
}

TEST(Router, OnlyWhatIsNoStoreHasToBeCarriedOn) {
  Recorder direct(true), other, elsewhere;
  EXPECT_TRUE(Router(direct).only_stores());
  EXPECT_FALSE(Router(other).only_stores());
  const Router between(direct, &elsewhere, two_hosts(), 0);
  EXPECT_FALSE(between.only_stores());
  EXPECT_TRUE(between.stores_here());
  EXPECT_TRUE(between.leads_elsewhere());
  EXPECT_TRUE(between.within_host().only_stores());
  between.progress_here();
  EXPECT_EQ(direct.turns, 0);
  Router(other).progress_here();
  EXPECT_EQ(other.turns, 1);
}

}  // namespace
}  // namespace unisono::network::router_test

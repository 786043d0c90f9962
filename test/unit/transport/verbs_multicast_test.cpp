// SPDX-License-Identifier: BSD-3-Clause
// Multicast by verbs, over devices in memory (fake_rdma.hpp): as datagrams of any kind, and what is
// its own: own copies, solicited events, queues that stay full, and devices that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "datagrams_conformance.hpp"
#include "fake_rdma.hpp"
#include "loopback.hpp"
#include "transport/multicast_probe.hpp"
#include "transport/udp/options.hpp"
#include "transport/udp/udp.hpp"
#include "transport/verbs/multicast/group_datagrams.hpp"

namespace unisono::transport::verbs_multicast_test {
namespace {

constexpr wire::Key kKey{.low = 7, .high = 8};

// A device for all ranks; other datagrams go over loopback.
class VerbsWorld {
 public:
  static base::Result<std::unique_ptr<VerbsWorld>> make(int ranks) {
    UNISONO_ASSIGN(auto world, open(ranks));
    UNISONO_TRY(world->join());
    return world;
  }
  static base::Result<std::unique_ptr<VerbsWorld>> open(int ranks) {
    UNISONO_ASSIGN(const LocalAddress local, loopback(Family::v4));
    return std::make_unique<VerbsWorld>(ranks, local);
  }
  VerbsWorld(int ranks, const LocalAddress& local) : fake({local.address}), count(ranks) {
    local_ = local;
  }
  base::Status join() {
    library = fake.library();
    NetworkSettings network;
    network.ttl = 0;
    std::vector<Endpoint> endpoints;
    for (int rank = 0; rank < count; ++rank) {
      UNISONO_ASSIGN(auto udp, Udp::open({.rank = rank, .local = local_, .why = "test"}));
      endpoints.push_back(udp->endpoint());
      UNISONO_ASSIGN(auto made,
                     VerbsGroupDatagrams::over(
                         std::move(udp), {.device = "", .network = network}, library,
                         [](const IpAddress&, const MulticastGroup&) {
                           return base::Result(base::Descriptor(eventfd(0, EFD_CLOEXEC)));
                         }));
      all.push_back(std::move(made));
    }
    for (auto& each : all) {
      UNISONO_TRY(each->meet(endpoints, each->limits().max_payload));
      UNISONO_TRY(each->join_multicast(job));
    }
    return base::success();
  }
  // All know where the others take urgent datagrams, as after a probe.
  void meet() {
    for (int rank = 0; rank < count; ++rank) {
      for (int other = 0; other < count; ++other) {
        if (other != rank) at(rank).meet_member(other, at(other).multicast_card());
      }
    }
  }
  VerbsGroupDatagrams& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  void wait(int rank) {
    if (is_readable(at(rank).descriptor()) || !at(rank).may_sleep(false)) return;
    pollfd one{.fd = at(rank).descriptor(), .events = POLLIN, .revents = 0};
    poll(&one, 1, -1);
  }

  FakeRdma fake;
  const int count;
  std::uint32_t job = 5;
  base::Result<VerbsLibrary> library = base::Error{base::Code::unsupported, "not opened"};
  std::vector<std::unique_ptr<VerbsGroupDatagrams>> all;

 private:
  LocalAddress local_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Verbs, DatagramsConformance, VerbsWorld);

std::unique_ptr<VerbsWorld> made(int ranks) {
  auto world = VerbsWorld::make(ranks);
  EXPECT_TRUE(world.ok()) << world.error().message;
  return world.ok() ? std::move(*world) : nullptr;
}

// Opens a world whose device is unsuitable; the reason has to be in the log, and IP is used.
std::string reason_for_ip(const std::function<void(FakeRdma&)>& spoil) {
  auto world = VerbsWorld::open(2);
  if (!world.ok()) return world.error().message;
  spoil((*world)->fake);
  testing::internal::CaptureStderr();
  base::set_log_level(base::LogLevel::info);
  const base::Status joined = (*world)->join();
  base::set_log_level(base::LogLevel::warn);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(joined.ok());
  EXPECT_TRUE((*world)->at(0).limits().multicast) << "IP multicast on loopback";
  EXPECT_EQ((*world)->at(0).limits().max_group_payload, 0U);
  EXPECT_FALSE((*world)->at(0).has_other_multicast());
  EXPECT_EQ((*world)->fake.objects, 0);
  EXPECT_NE(log.find("rank 0: multicast goes by IP, not by verbs"), std::string::npos) << log;
  return log;
}

TEST(VerbsMulticast, AnUnsuitableDeviceIsNamedAndIpMulticastIsUsed) {
  struct Case {
    std::function<void(FakeRdma&)> spoil;
    const char* text;
  };
  const Case cases[] = {
      {[](FakeRdma& fake) { fake.state = IBV_PORT_DOWN; }, "fake0 port 1 is down"},
      {[](FakeRdma& fake) { fake.limits.max_mcast_grp = 0; }, "the device has no multicast"},
      {[](FakeRdma& fake) { fake.mtu = IBV_MTU_512; }, "512 bytes, at least 1024 are needed"},
      {[](FakeRdma& fake) { fake.limits.max_qp_wr = 100; }, "max_qp_wr is 100"},
      {[](FakeRdma& fake) { fake.link_layer = IBV_LINK_LAYER_INFINIBAND; }, "not for InfiniBand"},
      {[](FakeRdma& fake) { fake.attaches = false; }, "ibv_attach_mcast to 239."},
  };
  for (const Case& each : cases) {
    const std::string log = reason_for_ip(each.spoil);
    EXPECT_NE(log.find(each.text), std::string::npos) << each.text << "\n" << log;
  }
}

TEST(VerbsMulticast, ADeviceElsewhereIsRefused) {
  FakeRdma fake({*parse_ip("10.9.0.1")});
  const auto library = fake.library();
  const auto opened = VerbsGroupQueue::open(
      *library, {.port = {.address = *parse_ip("10.9.0.2")}, .group = *parse_ip("239.255.0.1")});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("it is not at 10.9.0.2"), std::string::npos)
      << opened.error().message;
  EXPECT_EQ(fake.objects, 0);
}

TEST(VerbsMulticast, NothingStaysOpen) {
  auto world = made(3);
  ASSERT_NE(world, nullptr);
  EXPECT_GT(world->fake.objects, 0);
  world->meet();
  world->all.clear();
  EXPECT_EQ(world->fake.objects, 0);
}

TEST(VerbsMulticast, GroupDatagramsAreAsLongAsTheDeviceWithTheLeastCarries) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  EXPECT_EQ(world->at(0).limits().max_group_payload, 1024U);
  EXPECT_GT(world->at(0).limits().max_payload, 1024U);
  const std::uint64_t of_a_short_one = std::uint64_t{512} << 24 | 99;
  world->at(0).meet_member(1, of_a_short_one);
  EXPECT_EQ(world->at(0).limits().max_group_payload, 512U);
  const std::vector<std::byte> longest(1024, std::byte{3});
  const Outgoing one{kGroup, longest, {}};
  EXPECT_EQ(world->at(1).send({&one, 1}), 1U);
  EXPECT_EQ(receive_some(*world, 0, 1), only(longest));
}

// Far more than the queue has receives; a reader that comes now and then gets them all.
TEST(VerbsMulticast, TheQueueOfReceivesStaysFullInBursts) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  constexpr std::size_t kBurst = 256;
  std::size_t received = 0;
  std::vector<Incoming> incoming(32);
  const std::vector<std::byte> bytes(100, std::byte{1});
  const std::vector<Outgoing> burst(kBurst, Outgoing{kGroup, bytes, {}});
  for (int turn = 0; turn < 40; ++turn) {
    std::span<const Outgoing> left = burst;
    while (!left.empty()) left = left.subspan(world->at(0).send(left));
    for (std::size_t got = 1; got != 0;) {
      got = world->at(1).receive(incoming);
      received += got;
    }
    EXPECT_EQ(world->at(0).receive(incoming), 0U) << "own copies";
  }
  EXPECT_EQ(received, 40 * kBurst);
  EXPECT_EQ(world->fake.without_receive, 0U);
  // Datagrams that are handed out have been replaced: only those of a burst lack.
  EXPECT_GE(world->fake.least_receives, 1024 - kBurst + 1);
  EXPECT_EQ(world->at(1).counts().received, 40 * kBurst);
}

TEST(VerbsMulticast, ADatagramOfAnotherJobIsDroppedByTheDevice) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  auto other =
      VerbsGroupQueue::open(*world->library, {.port = {.address = world->at(0).endpoint().address},
                                              .group = group_of_job(world->job, Family::v4).address,
                                              .key = 1234});
  ASSERT_TRUE(other.ok()) << other.error().message;
  const std::vector<std::byte> bytes(50, std::byte{1});
  ASSERT_TRUE((*other)->send({kGroup, bytes, {}}, nullptr, 0, false));
  EXPECT_EQ(world->fake.foreign_key, 2U);
  std::vector<Incoming> incoming(4);
  EXPECT_EQ(world->at(1).receive(incoming), 0U);
}

TEST(VerbsMulticast, ASenderWithoutRoomIsToldAndWokenWhenThereIs) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  world->fake.completes = false;
  const std::vector<std::byte> bytes(50, std::byte{1});
  const std::vector<Outgoing> many(300, Outgoing{kGroup, bytes, {}});
  EXPECT_EQ(world->at(0).send(many), 256U);
  EXPECT_EQ(world->at(0).counts().short_sends, 1U);
  EXPECT_EQ(world->at(0).send(many), 0U);
  std::vector<Incoming> incoming(32);
  EXPECT_EQ(world->at(0).receive(incoming), 0U) << "own copies";
  EXPECT_TRUE(world->at(0).may_sleep(false));
  EXPECT_FALSE(is_readable(world->at(0).descriptor()));
  world->fake.finish_sends();
  EXPECT_TRUE(is_readable(world->at(0).descriptor()));
  EXPECT_EQ(world->at(0).send(many), 256U);
}

// ---- urgent datagrams --------------------------------------------------------------------------

TEST(VerbsMulticast, OnlyUrgentDatagramsEndAnIdleSleep) {
  auto world = made(3);
  ASSERT_NE(world, nullptr);
  world->meet();
  const std::vector<std::byte> bytes(80, std::byte{1});
  ASSERT_TRUE(world->at(1).may_sleep(true));
  const Outgoing calm{kGroup, bytes, {}};
  ASSERT_EQ(world->at(0).send({&calm, 1}), 1U);
  EXPECT_FALSE(is_readable(world->at(1).descriptor()));
  const Outgoing request{1, bytes, {}, true};
  ASSERT_EQ(world->at(2).send({&request, 1}), 1U);
  EXPECT_TRUE(is_readable(world->at(1).descriptor()));
  EXPECT_EQ(world->fake.solicited, 1U);
  EXPECT_EQ(receive_some(*world, 1, 2).size(), 2U);
  // A rank that waits is woken by any.
  ASSERT_TRUE(world->at(1).may_sleep(false));
  ASSERT_EQ(world->at(0).send({&calm, 1}), 1U);
  EXPECT_TRUE(is_readable(world->at(1).descriptor()));
  EXPECT_FALSE(world->at(1).may_sleep(false)) << "it is there already";
}

TEST(VerbsMulticast, SomeUrgentDatagramsGoTheOtherWay) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  const std::vector<std::byte> bytes(80, std::byte{1});
  const Outgoing request{1, bytes, {}, true};
  ASSERT_EQ(world->at(0).send({&request, 1}), 1U);
  EXPECT_EQ(world->fake.solicited, 0U) << "it does not know where";
  world->meet();
  for (int i = 0; i < 8; ++i) ASSERT_EQ(world->at(0).send({&request, 1}), 1U);
  EXPECT_EQ(world->fake.solicited, 6U);
  EXPECT_EQ(receive_some(*world, 1, 9).size(), 9U);
}

// ---- the probe ---------------------------------------------------------------------------------

TEST(VerbsMulticast, AProbeTellsWhereUrgentDatagramsGo) {
  constexpr int kRanks = 3;
  auto world = made(kRanks);
  ASSERT_NE(world, nullptr);
  const std::vector<int> members{0, 1, 2};
  std::vector<std::unique_ptr<wire::PacketFilter>> filters;
  std::vector<std::unique_ptr<MulticastProbe>> probes;
  for (int rank = 0; rank < kRanks; ++rank) {
    filters.push_back(std::make_unique<wire::PacketFilter>(kKey, rank, kRanks));
    probes.push_back(std::make_unique<MulticastProbe>(world->at(rank), *filters.back(), members));
  }
  const auto all_carry = [&] {
    return std::ranges::all_of(probes, [](const auto& each) { return each->carries(); });
  };
  for (std::int64_t now = 0; !all_carry(); now += base::kMillisecond) {
    for (auto& each : probes) each->step(now);
  }
  const std::uint64_t before = world->fake.solicited;
  const std::vector<std::byte> bytes(80, std::byte{1});
  const Outgoing request{2, bytes, {}, true};
  ASSERT_EQ(world->at(1).send({&request, 1}), 1U);
  EXPECT_EQ(world->fake.solicited, before + 1);
}

TEST(VerbsMulticast, IpMulticastIsTheOtherCarrier) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  ASSERT_TRUE(world->at(0).has_other_multicast());
  for (int rank = 0; rank < 2; ++rank) world->at(rank).take_other_multicast();
  EXPECT_FALSE(world->at(0).has_other_multicast());
  EXPECT_EQ(world->fake.objects, 0);
  EXPECT_TRUE(world->at(0).limits().multicast);
  EXPECT_EQ(world->at(0).limits().max_group_payload, 0U);
  EXPECT_EQ(world->at(0).multicast_card(), 0U);
  const std::vector<std::byte> bytes(1400, std::byte{1});
  const Outgoing one{kGroup, bytes, {}};
  ASSERT_EQ(world->at(0).send({&one, 1}), 1U);
  EXPECT_EQ(receive_some(*world, 1, 1), only(bytes));
}

TEST(VerbsMulticast, GivenUpItSaysWhy) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  world->at(0).give_up_multicast("nobody hears");
  EXPECT_FALSE(world->at(0).limits().multicast);
  EXPECT_EQ(world->at(0).multicast_note(), "nobody hears");
  const std::vector<std::byte> bytes(80, std::byte{1});
  const Outgoing one{1, bytes, {}};
  ASSERT_EQ(world->at(0).send({&one, 1}), 1U);
  EXPECT_EQ(receive_some(*world, 1, 1), only(bytes));
}

// ---- lost devices ------------------------------------------------------------------------------

// A rank's text when its device has that event. Its other datagrams go on.
std::string loss_after(const std::function<void(FakeRdma&)>& happen) {
  auto world = made(2);
  if (world == nullptr) return {};
  world->meet();
  happen(world->fake);
  EXPECT_TRUE(is_readable(world->at(0).descriptor())) << "an event wakes a rank that sleeps";
  EXPECT_FALSE(world->at(0).may_sleep(true));
  std::vector<Incoming> incoming(4);
  world->at(0).receive(incoming);
  const std::vector<std::byte> bytes(80, std::byte{1});
  const Outgoing all[] = {{kGroup, bytes, {}}, {1, bytes, {}, true}};
  EXPECT_EQ(world->at(0).send(all), 2U);
  EXPECT_EQ(world->at(0).counts().refused, 1U) << "to the group";
  EXPECT_EQ(receive_some(*world, 1, 1), only(bytes)) << "the other";
  EXPECT_TRUE(world->at(0).limits().multicast) << "the layer above repeats one by one";
  EXPECT_EQ(world->at(0).last_error(), world->at(0).multicast_loss());
  EXPECT_TRUE(world->at(0).may_sleep(true));
  return world->at(0).multicast_loss();
}

TEST(VerbsMulticast, ALostDeviceIsNamedWithRankPortAndWhatToDo) {
  struct Case {
    std::function<void(FakeRdma&)> happen;
    const char* text;
  };
  const Case cases[] = {
      {[](FakeRdma& fake) { fake.remove("fake0"); }, "the device has failed or was removed"},
      {[](FakeRdma& fake) { fake.raise("fake0", IBV_EVENT_PORT_ERR); },
       "the port is no longer active"},
      {[](FakeRdma& fake) { fake.raise("fake0", IBV_EVENT_QP_FATAL); },
       "a queue of the device has failed"},
      {[](FakeRdma& fake) { fake.raise("fake0", IBV_EVENT_CQ_ERR); },
       "a queue of the device has failed"},
  };
  for (const Case& each : cases) {
    testing::internal::CaptureStderr();
    const std::string loss = loss_after(each.happen);
    const std::string log = testing::internal::GetCapturedStderr();
    for (const char* part :
         {"rank 0", "fake0 port 1", each.text, "rdma link", "UNISONO_MULTICAST_BY=ip"}) {
      EXPECT_NE(loss.find(part), std::string::npos) << part << " in: " << loss;
    }
    EXPECT_NE(log.find(loss), std::string::npos) << log;
  }
}

// As when soft-RoCE is removed.
TEST(VerbsMulticast, APortThatGoesWithoutAnEventIsALoss) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  world->fake.state = IBV_PORT_DOWN;
  while (world->at(1).multicast_loss().empty()) world->at(1).may_sleep(false);
  EXPECT_NE(world->at(1).multicast_loss().find("the device was removed"), std::string::npos)
      << world->at(1).multicast_loss();
}

TEST(VerbsMulticast, AnEventThatEndsNothingIsNoLoss) {
  auto world = made(2);
  ASSERT_NE(world, nullptr);
  world->fake.raise("fake0", IBV_EVENT_GID_CHANGE);
  EXPECT_TRUE(world->at(0).may_sleep(false));
  EXPECT_EQ(world->at(0).multicast_loss(), "");
}

}  // namespace
}  // namespace unisono::transport::verbs_multicast_test

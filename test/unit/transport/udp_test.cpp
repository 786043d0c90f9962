// SPDX-License-Identifier: BSD-3-Clause
// UDP: options from settings, batches, sockets; and all together with foreign packets, floods and
// refusals.
#include "transport/udp/udp.hpp"

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/prng.hpp"
#include "datagrams_conformance.hpp"
#include "harness/json_values.hpp"
#include "harness/network_namespace.hpp"
#include "harness/own_stderr.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/network_list.hpp"
#include "transport/udp/message_limit.hpp"
#include "transport/udp/options.hpp"
#include "transport/udp/receive_queue.hpp"
#include "transport/udp/send_batch.hpp"
#include "transport/udp/sockets.hpp"
#include "udp_world.hpp"
#include "wire/packet_filter.hpp"

namespace unisono::transport::udp_test {
namespace {

IpAddress ip(const std::string& text) { return *parse_ip(text); }

TEST(NetworkSettings, ComeFromTheTable) {
  const auto defaults = network_settings(base::Settings());
  ASSERT_TRUE(defaults.ok());
  EXPECT_TRUE(defaults->networks.items().empty());
  EXPECT_EQ(defaults->multicast, base::Toggle::automatic);
  EXPECT_FALSE(defaults->group.has_value());
  EXPECT_EQ(defaults->ttl, 1);
  const auto settings = base::Settings::from({{"UNISONO_NETWORKS", "eth0,^10.9.0.0/16"},
                                              {"UNISONO_MULTICAST", "on"},
                                              {"UNISONO_MULTICAST_GROUP", "239.255.1.2:5000"},
                                              {"UNISONO_MULTICAST_TTL", "3"}});
  const auto network = network_settings(*settings);
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->networks.text(), "eth0,^10.9.0.0/16");
  EXPECT_EQ(network->multicast, base::Toggle::on);
  EXPECT_EQ(endpoint_text(*network->group), "239.255.1.2:5000");
  EXPECT_EQ(network->ttl, 3);
}

TEST(NetworkSettings, ErrorsNameTheSetting) {
  const std::pair<const char*, const char*> cases[] = {{"UNISONO_NETWORKS", "10.0.0.0/99"},
                                                       {"UNISONO_MULTICAST_GROUP", "10.0.0.1"},
                                                       {"UNISONO_MULTICAST_GROUP", "all-hosts"}};
  for (const auto& [name, value] : cases) {
    const auto network = network_settings(*base::Settings::from({{name, value}}));
    ASSERT_FALSE(network.ok()) << value;
    EXPECT_TRUE(network.error().message.starts_with(name)) << network.error().message;
  }
}

TEST(NetworkSettings, AGroupFollowsFromTheJob) {
  base::Prng prng(5);
  for (int i = 0; i < 10'000; ++i) {
    const auto job = static_cast<std::uint32_t>(prng.next());
    const Endpoint v4 = group_of_job(job, Family::v4);
    EXPECT_TRUE(NetworkList::parse("239.255.0.0/16")->allows("", v4.address));
    EXPECT_NE(v4.address.bytes[2], 255);
    EXPECT_GE(v4.port, 49152);
    const Endpoint v6 = group_of_job(job, Family::v6);
    EXPECT_TRUE(NetworkList::parse("ff12::/16")->allows("", v6.address));
    EXPECT_EQ(v6.port, v4.port);
    EXPECT_EQ(group_of_job(job, Family::v4), v4);
  }
  EXPECT_NE(group_of_job(1, Family::v4), group_of_job(2, Family::v4));
  EXPECT_NE(group_of_job(1, Family::v4), group_of_job(1 + 16384, Family::v4));
}

TEST(NetworkSettings, OptionsTowardsAPeer) {
  const std::vector<IpAddress> peers{ip("127.0.0.1")};
  NetworkSettings settings;
  auto options = udp_options(settings, 77, 3, peers);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->rank, 3);
  EXPECT_EQ(ip_text(options->local.address), "127.0.0.1");
  EXPECT_EQ(options->why, "route to 127.0.0.1");
  EXPECT_EQ(options->group->endpoint, group_of_job(77, Family::v4));
  EXPECT_EQ(options->group->ttl, 1);
  settings.group = parse_endpoint("239.255.9.9").value();
  options = udp_options(settings, 77, 3, peers);
  EXPECT_EQ(ip_text(options->group->endpoint.address), "239.255.9.9");
  EXPECT_EQ(options->group->endpoint.port, group_of_job(77, Family::v4).port);
  settings.group = parse_endpoint("ff12::1").value();
  EXPECT_EQ(udp_options(settings, 77, 3, peers).error().code, base::Code::argument);
  settings.multicast = base::Toggle::off;
  EXPECT_FALSE(udp_options(settings, 77, 3, peers)->group.has_value());
}

std::vector<std::size_t> layout(const std::vector<std::pair<int, std::size_t>>& datagrams,
                                bool segmentation,
                                std::size_t most_bytes = MessageLimit::kLongest) {
  const std::vector<std::byte> bytes(65507);
  std::vector<Outgoing> outgoing;
  for (const auto& [target, length] : datagrams) {
    outgoing.push_back(
        {target, std::span(bytes).first(length / 3), std::span(bytes).first(length - length / 3)});
  }
  const std::vector<SocketAddress> peers(3);
  const SocketAddress group;
  SendBatch batch;
  batch.lay_out(outgoing, {peers, &group},
                {.to_peers = segmentation, .to_group = segmentation, .most_bytes = most_bytes});
  std::vector<std::size_t> result;
  std::size_t total = 0;
  for (std::size_t i = 0; i < batch.message_count(); ++i) {
    result.push_back(batch.datagrams_in(i));
    total += batch.datagrams_in(i);
    EXPECT_EQ(batch.messages()[i].msg_hdr.msg_control != nullptr, result.back() > 1);
  }
  EXPECT_EQ(total, std::min(outgoing.size(), SendBatch::kBatch));
  return result;
}

TEST(SendBatch, NeighboursOfOneTargetAndLengthGoTogether) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(layout({}, true), Counts{});
  EXPECT_EQ(layout({{1, 10}, {1, 10}, {1, 10}}, true), Counts{3});
  EXPECT_EQ(layout({{1, 10}, {1, 10}, {1, 10}}, false), (Counts{1, 1, 1}));
  EXPECT_EQ(layout({{1, 10}, {2, 10}, {1, 10}}, true), (Counts{1, 1, 1}));
  EXPECT_EQ(layout({{1, 10}, {1, 9}, {1, 9}, {1, 10}}, true), (Counts{2, 1, 1}));
  EXPECT_EQ(layout({{kGroup, 10}, {kGroup, 10}, {1, 10}}, true), (Counts{2, 1}));
  EXPECT_EQ(layout({{1, 30000}, {1, 30000}, {1, 30000}}, true), (Counts{2, 1}));
  EXPECT_EQ(layout({{1, 65507}, {1, 65507}}, true), (Counts{1, 1}));
  EXPECT_EQ(layout(std::vector(100, std::pair(1, std::size_t{10})), true), Counts{64});
  const std::vector full(20, std::pair(1, std::size_t{1472}));
  EXPECT_EQ(layout(full, true, MessageLimit::kShort), (Counts{8, 8, 4}));
  EXPECT_EQ(layout({{1, 30000}, {1, 30000}}, true, MessageLimit::kShort), (Counts{1, 1}));
}

TEST(MessageLimit, IsShortWhileTheLinkMakesDatagramsWaitAndForASecondAfter) {
  constexpr std::size_t kLongest = MessageLimit::kLongest;
  constexpr std::size_t kShort = MessageLimit::kShort;
  constexpr std::int64_t kHoldNs = MessageLimit::kHoldNs;
  MessageLimit limit;
  EXPECT_EQ(limit.most(0, 10), kLongest);
  EXPECT_EQ(limit.most(kShort - 1, 20), kLongest);
  EXPECT_EQ(limit.most(kShort, 30), kShort);
  EXPECT_EQ(limit.most(0, 29 + kHoldNs), kShort);
  EXPECT_EQ(limit.most(0, 30 + kHoldNs), kLongest);
  EXPECT_EQ(limit.most(kLongest, 40 + kHoldNs), kShort);
  EXPECT_EQ(limit.most(kLongest, 50 + kHoldNs), kShort);
  EXPECT_EQ(limit.most(0, 49 + 2 * kHoldNs), kShort);
}

TEST(Udp, ListensAtOneAddressOnly) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  const MulticastGroup group = test_group(Family::v4);
  const auto udp = Udp::open({.rank = 0, .local = *local, .group = group});
  ASSERT_TRUE(udp.ok()) << udp.error().message;
  EXPECT_EQ((*udp)->endpoint().address, local->address);
  EXPECT_NE((*udp)->endpoint().port, 0);
  EXPECT_TRUE((*udp)->limits().multicast) << (*udp)->multicast_note();
  EXPECT_EQ((*udp)->joins(kGroup), (*udp)->features().segmentation);
  EXPECT_EQ((*udp)->limits().max_payload, 65507U);
  // The port of the group is free at every other address.
  EXPECT_TRUE(open_unicast(*local, group.endpoint.port, 1 << 16).ok());
  // Ours is not.
  const auto taken = open_unicast(*local, (*udp)->endpoint().port, 1 << 16);
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message.find("another process has the port"), std::string::npos);
}

TEST(Udp, ErrorsOfOpenAndMeet) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  for (const char* group : {"10.0.0.1:5000", "[ff12::1]:5000", "239.255.0.1:0"}) {
    const auto udp =
        Udp::open({.local = *local, .group = MulticastGroup{.endpoint = *parse_endpoint(group)}});
    ASSERT_FALSE(udp.ok()) << group;
    EXPECT_EQ(udp.error().code, base::Code::argument);
  }
  EXPECT_FALSE(Udp::open({.local = *local, .max_payload = 65508}).ok());
  LocalAddress elsewhere = *local;
  elsewhere.address = ip("192.0.2.77");
  EXPECT_NE(Udp::open({.local = elsewhere}).error().message.find("cannot bind to 192.0.2.77:0"),
            std::string::npos);

  const auto udp = Udp::open({.rank = 1, .local = *local});
  ASSERT_TRUE(udp.ok());
  const Endpoint own = (*udp)->endpoint();
  const Endpoint other = *parse_endpoint("127.0.0.1:9");
  const auto meet = [&](const std::vector<Endpoint>& peers, std::size_t payload) {
    return (*udp)->meet(peers, payload).ok();
  };
  EXPECT_FALSE(meet({other}, 1000));
  EXPECT_FALSE(meet({own, other}, 1000));
  EXPECT_FALSE(meet({other, own}, 0));
  EXPECT_FALSE(meet({other, own}, 65508));
  EXPECT_FALSE(meet({*parse_endpoint("[::1]:9"), own}, 1000));
  EXPECT_FALSE(meet({*parse_endpoint("127.0.0.1"), own}, 1000));
  EXPECT_FALSE(meet({*parse_endpoint("239.255.0.1:9"), own}, 1000));
  EXPECT_TRUE(meet({other, own}, 1000));
  EXPECT_EQ((*udp)->limits().max_payload, 1000U);
}

TEST(Udp, AGroupThatCannotBeHadIsANoteAndNoError) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  LocalAddress nowhere = *local;
  nowhere.index = 0x7fffffff;
  const auto udp = Udp::open({.local = nowhere, .group = test_group(Family::v4)});
  ASSERT_TRUE(udp.ok()) << udp.error().message;
  EXPECT_FALSE((*udp)->limits().multicast);
  EXPECT_NE((*udp)->multicast_note(), "");
}

TEST(Udp, MembersOfOtherGroupsHearNothing) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  auto ours = UdpRanks::open(2, {.local = *local});
  auto theirs = UdpRanks::open(2, {.local = *local});
  ASSERT_TRUE(ours.ok() && theirs.ok());
  const DatagramBytes bytes(10, std::byte{3});
  const Outgoing all{kGroup, bytes, {}};
  send_all(**ours, 0, std::span(&all, 1));
  EXPECT_EQ(receive_some(**ours, 1, 1), only(bytes));
  EXPECT_FALSE(is_readable((*theirs)->at(0).descriptor()));
  EXPECT_FALSE(is_readable((*theirs)->at(1).descriptor()));
  (*ours)->at(1).give_up_multicast("the test says so");
  EXPECT_FALSE((*ours)->at(1).limits().multicast);
  send_all(**ours, 0, std::span(&all, 1));
  EXPECT_FALSE(is_readable((*ours)->at(1).descriptor()));
}

TEST(Udp, WhatTheSystemRefusesIsCountedAndLost) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  const auto udp = Udp::open({.rank = 0, .local = *local});
  const auto peer = Udp::open({.rank = 1, .local = *local});
  ASSERT_TRUE(udp.ok() && peer.ok());
  // From loopback nothing leaves the host, so the kernel refuses it.
  const std::vector<Endpoint> peers{(*udp)->endpoint(), (*peer)->endpoint(),
                                    *parse_endpoint("192.0.2.77:9")};
  ASSERT_TRUE((*udp)->meet(peers, 1000).ok());
  const DatagramBytes bytes(10, std::byte{3});
  const std::vector<Outgoing> batch{{2, bytes, {}}, {2, bytes, {}}, {1, bytes, {}}, {2, bytes, {}}};
  EXPECT_EQ((*udp)->send(batch), 4U);
  const DatagramCounts counts = (*udp)->counts();
  EXPECT_EQ(counts.sent, 1U);
  EXPECT_EQ(counts.refused, 3U);
  EXPECT_EQ(counts.short_sends, 0U);
  EXPECT_NE((*udp)->last_error(), "");
  std::vector<Incoming> incoming(4);
  EXPECT_EQ((*peer)->receive(incoming), 1U);
}

// One call of the system may bring more than one call takes.
TEST(Udp, WhoseQueueHoldsDatagramsMayNotSleep) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  auto ranks = UdpRanks::open(2, {.local = *local, .common_payload = 1000});
  ASSERT_TRUE(ranks.ok());
  const DatagramBytes bytes(100);
  const std::vector<Outgoing> batch(20, Outgoing{1, bytes, {}});
  ASSERT_EQ((*ranks)->at(0).send(batch), batch.size());
  Udp& receiver = (*ranks)->at(1);
  EXPECT_TRUE(receiver.may_sleep(false));  // the descriptor tells of these
  EXPECT_TRUE(receiver.descriptor_tells());
  std::vector<Incoming> incoming(5);
  ASSERT_EQ(receiver.receive(incoming), incoming.size());
  EXPECT_FALSE(receiver.may_sleep(false));
  EXPECT_FALSE(receiver.descriptor_tells());
  for (std::size_t got = incoming.size(); got < batch.size();) got += receiver.receive(incoming);
  EXPECT_TRUE(receiver.may_sleep(false));
}

TEST(Udp, WhatOverflowsAndWhatIsTooLongIsCounted) {
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  auto ranks = UdpRanks::open(2, {.local = *local, .common_payload = 1000});
  ASSERT_TRUE(ranks.ok());
  Udp& receiver = (*ranks)->at(1);
  // One that keeps to no limit.
  auto stranger = Udp::open({.rank = 0, .local = *local});
  ASSERT_TRUE(stranger.ok());
  ASSERT_TRUE(
      (*stranger)->meet(std::vector{(*stranger)->endpoint(), receiver.endpoint()}, 65507).ok());
  for (const std::size_t length : {1001U, 65507U}) {
    const DatagramBytes longer(length);
    const std::vector<Outgoing> two(2, Outgoing{1, longer, {}});
    EXPECT_EQ((*stranger)->send(two), 2U);
  }
  // Ends when the first is dropped for lack of room, at the latest when the buffer is full.
  const DatagramBytes bytes(1000);
  const Outgoing one{1, bytes, {}};
  std::uint64_t sent = 4;
  std::vector<Incoming> incoming(64);
  const auto drain = [&] {
    while (receiver.receive(incoming) != 0) {
    }
  };
  const auto buffer = static_cast<std::uint64_t>(receiver.features().receive_bytes);
  for (; sent * bytes.size() < 2 * buffer; ++sent) {
    ASSERT_EQ((*ranks)->at(0).send(std::span(&one, 1)), 1U);
  }
  drain();
  // The kernel tells with the next one that has room.
  ASSERT_EQ((*ranks)->at(0).send(std::span(&one, 1)), 1U);
  ++sent;
  drain();
  const DatagramCounts counts = receiver.counts();
  EXPECT_EQ(counts.too_long, 4U);
  EXPECT_GT(counts.overflowed, 0U);
  EXPECT_EQ(counts.received + counts.overflowed + counts.too_long, sent);
}

// A slow link that queues as much as the socket may hold, in a network of its own; no process
// listens at its other end.
TEST(Udp, WhoHadNoRoomIsWokenWhenThereIsSome) {
  const auto network = harness::NetworkNamespace::enter();
  if (!network.ok()) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE((*network)->add_interface("unisono0", "10.71.0.1/24", "fd71::1/64").ok());
  ASSERT_TRUE((*network)->ip("neigh add 10.71.0.2 lladdr 02:00:00:00:00:02 dev unisono0").ok());
  if (std::system("tc qdisc add dev unisono0 root tbf rate 80mbit burst 4kb limit 10mb") != 0) {
    GTEST_SKIP() << "no rate limit can be set here (tc, tbf)";
  }
  const auto options = udp_options({}, 1, 0, std::vector{ip("10.71.0.2")});
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(ip_text(options->local.address), "10.71.0.1");
  EXPECT_EQ(options->local.interface, "unisono0");
  UdpOptions small = *options;
  small.buffer_bytes = 64 * 1024;
  const auto udp = Udp::open(small);
  ASSERT_TRUE(udp.ok()) << udp.error().message;
  EXPECT_EQ((*udp)->limits().max_payload, 1472U);
  ASSERT_TRUE(
      (*udp)->meet(std::vector{(*udp)->endpoint(), *parse_endpoint("10.71.0.2:9")}, 1472).ok());
  const DatagramBytes bytes(1400);
  const std::vector<Outgoing> batch(40, Outgoing{1, bytes, {}});
  std::uint64_t sent = 0;
  for (std::uint64_t rounds = 1; rounds <= 3; ++rounds) {
    std::size_t taken = batch.size();
    while (taken == batch.size()) {
      taken = (*udp)->send(batch);
      sent += taken;
    }
    EXPECT_EQ((*udp)->counts().short_sends, rounds);
    pollfd room{.fd = (*udp)->descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&room, 1, -1), 1);
    EXPECT_EQ((*udp)->send(std::span(batch).first(1)), 1U);
    ++sent;
    EXPECT_FALSE(is_readable((*udp)->descriptor()));
  }
  EXPECT_EQ((*udp)->counts().sent, sent);
  EXPECT_EQ((*udp)->counts().refused, 0U);
}

// The kernel cuts no message into datagrams that are longer than the interface sends.
TEST(Udp, WhereNoMessageCanBeCutDatagramsGoOneByOneAndTheLogSaysSoOnce) {
  const auto network = harness::NetworkNamespace::enter();
  if (!network.ok()) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE((*network)->add_interface("unisono0", "10.71.0.1/24", "fd71::1/64").ok());
  ASSERT_TRUE((*network)->ip("neigh add 10.71.0.2 lladdr 02:00:00:00:00:02 dev unisono0").ok());
  auto options = udp_options({}, 1, 0, std::vector{ip("10.71.0.2")});
  ASSERT_TRUE(options.ok()) << options.error().message;
  options->max_payload = 4000;
  const auto udp = Udp::open(*options);
  ASSERT_TRUE(udp.ok()) << udp.error().message;
  if (!(*udp)->features().segmentation) GTEST_SKIP() << "this kernel does not cut messages apart";
  ASSERT_TRUE(
      (*udp)->meet(std::vector{(*udp)->endpoint(), *parse_endpoint("10.71.0.2:9")}, 4000).ok());
  const harness::OwnStderr log;
  base::set_log_level(base::LogLevel::info);
  EXPECT_TRUE((*udp)->joins(1));
  const DatagramBytes bytes(4000);
  const std::vector<Outgoing> batch(3, Outgoing{1, bytes, {}});
  EXPECT_EQ((*udp)->send(batch), 3U);
  EXPECT_FALSE((*udp)->joins(1));
  EXPECT_EQ((*udp)->send(batch), 3U);
  EXPECT_EQ((*udp)->counts().sent, 6U) << (*udp)->last_error();
  base::set_log_level(base::LogLevel::warn);
  const std::string text = log.text();
  const std::string said = "segmentation is off from now on for datagrams to one rank";
  EXPECT_NE(text.find(said), std::string::npos) << text;
  EXPECT_EQ(text.find(said), text.rfind(said)) << text;
}

// How many bytes a packet has that waits at `interface`, on average; 0: none waits.
double waiting_packet_bytes(const std::string& interface) {
  FILE* const shown = popen(("tc -s -j qdisc show dev " + interface).c_str(), "r");
  if (shown == nullptr) return 0;
  std::string text;
  for (int byte = std::fgetc(shown); byte != EOF; byte = std::fgetc(shown)) {
    text += static_cast<char>(byte);
  }
  pclose(shown);
  const auto qdiscs = model::parse_json(text, "tc");
  if (!qdiscs.ok() || qdiscs->items.empty()) return 0;
  const harness::JsonValues first(qdiscs->items[0]);
  if (!first.has("qlen") || !first.has("backlog") || first.integer("qlen") == 0) return 0;
  return static_cast<double>(first.integer("backlog")) / static_cast<double>(first.integer("qlen"));
}

// A shaper cuts messages longer than its burst into packets of one datagram each.
TEST(Udp, AShaperPassesMessagesWhole) {
  const auto network = harness::NetworkNamespace::enter();
  if (!network.ok()) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE((*network)->add_interface("unisono0", "10.71.0.1/24", "fd71::1/64").ok());
  ASSERT_TRUE((*network)->ip("neigh add 10.71.0.2 lladdr 02:00:00:00:00:02 dev unisono0").ok());
  if (std::system("tc qdisc add dev unisono0 root tbf rate 10mbit burst 25kb limit 10mb") != 0) {
    GTEST_SKIP() << "no rate limit can be set here (tc, tbf)";
  }
  const auto options = udp_options({}, 1, 0, std::vector{ip("10.71.0.2")});
  ASSERT_TRUE(options.ok()) << options.error().message;
  const auto udp = Udp::open(*options);
  ASSERT_TRUE(udp.ok()) << udp.error().message;
  if (!(*udp)->features().segmentation) GTEST_SKIP() << "this kernel does not cut messages apart";
  ASSERT_TRUE(
      (*udp)->meet(std::vector{(*udp)->endpoint(), *parse_endpoint("10.71.0.2:9")}, 1472).ok());
  const DatagramBytes bytes(1472);
  const std::vector<Outgoing> batch(64, Outgoing{1, bytes, {}});
  ASSERT_EQ((*udp)->send(std::span(batch).first(40)), 40U);  // these are cut
  while ((*udp)->send(batch) == batch.size()) {
  }
  EXPECT_GT(waiting_packet_bytes("unisono0"), 4 * 1472);
}

// The senders know the address, and have recorded a genuine packet.
TEST(Udp, ForeignAndForgedPacketsHaveNoEffect) {
  constexpr std::uint64_t kSeed = 41;
  const auto local = loopback(Family::v4);
  ASSERT_TRUE(local.ok());
  auto ranks = UdpRanks::open(2, {.local = *local});
  ASSERT_TRUE(ranks.ok());
  const auto key = wire::random_key();
  ASSERT_TRUE(key.ok());
  const wire::PacketFilter sender(*key, 0, 2);
  wire::PacketFilter filter(*key, 1, 2);
  Udp& receiver = (*ranks)->at(1);
  const auto stranger = Udp::open({.rank = 0, .local = *local});
  ASSERT_TRUE(stranger.ok());
  ASSERT_TRUE(
      (*stranger)->meet(std::vector{(*stranger)->endpoint(), receiver.endpoint()}, 65507).ok());

  const auto genuine = [&](std::uint64_t sequence) {
    const DatagramBytes payload(100, std::byte{0x11});
    const wire::Envelope envelope =
        sender.seal(sender.header(wire::Kind::put, 1, sequence), payload);
    DatagramBytes bytes(envelope.size() + payload.size());
    std::copy(payload.begin(), payload.end(),
              std::copy(envelope.begin(), envelope.end(), bytes.begin()));
    return bytes;
  };
  std::uint64_t admitted = 0;
  std::uint64_t dropped = 0;
  std::vector<Incoming> incoming(64);
  const auto drain = [&] {
    while (const std::size_t count = receiver.receive(incoming)) {
      for (std::size_t i = 0; i < count; ++i) {
        ++(filter.admit(incoming[i].bytes).drop == wire::Drop::none ? admitted : dropped);
      }
    }
  };
  base::Prng prng(kSeed);
  const DatagramBytes recorded = genuine(1);
  const std::int64_t turns = 20'000;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    DatagramBytes bytes = recorded;
    switch (turn % 4) {
      case 0:  // a repetition, but for the first
        break;
      case 1:  // a bit changed
        bytes[prng.below(bytes.size())] ^= static_cast<std::byte>(1U << prng.below(8));
        break;
      case 2:  // cut
        bytes.resize(1 + prng.below(bytes.size() - 1));
        break;
      default:
        bytes = random_datagram(prng, 1 + prng.below(1400));
    }
    const Outgoing one{1, bytes, {}};
    ASSERT_EQ((*stranger)->send(std::span(&one, 1)), 1U);
    drain();
  }
  EXPECT_EQ(admitted, 1U) << "seed " << kSeed;  // recorded, and never sent by its owner
  EXPECT_EQ(dropped, static_cast<std::uint64_t>(turns) - 1);
  EXPECT_EQ(filter.drops().total(), dropped);
  EXPECT_GE(filter.drops().of(wire::Drop::replay), static_cast<std::uint64_t>(turns) / 4 - 1);
  EXPECT_GT(filter.drops().of(wire::Drop::tag), 0U);
  const DatagramBytes next = genuine(2);
  const Outgoing one{1, next, {}};
  send_all(**ranks, 0, std::span(&one, 1));
  drain();
  EXPECT_EQ(admitted, 2U);
}

}  // namespace
}  // namespace unisono::transport::udp_test

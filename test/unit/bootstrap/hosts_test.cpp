// SPDX-License-Identifier: BSD-3-Clause
// bootstrap on several hosts, without any: ranks that say they are elsewhere come to a real
// rendezvous. The other way round: gate_test.cpp; with real networks:
// test/net/bootstrap_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"
#include "transport/udp/ip.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using test::expect_refused;
using test::expect_text;
using test::hello_from;
using test::Host;
using test::host_of;
using test::kKey;
using test::RawRank;

constexpr const char* kTcp = "tcp:127.0.0.1:0";

// Until the rendezvous has heard what the gate has said: it refuses a second Hello of that kind.
void await_join(RawRank& gate, Hello hello) {
  hello.nonce = *random_nonce();
  gate.say(hello);
  const auto refused = gate.hear<Refused>();
  EXPECT_EQ(refused.hello, hello.nonce);
  expect_text(refused, Code::argument, "was claimed twice");
}

Address unix_address_of(const Host& host, const Hello& hello) {
  RawRank first(host, hello);
  const auto redirect = first.hear<Redirect>();
  EXPECT_EQ(redirect.host, *own_host_id());
  return {Address::Kind::unix_name, redirect.name, 0};
}

TEST(RendezvousOfHosts, TellsEveryoneWhoIsWhere) {
  Host host(4, "30s", kTcp);
  host.serve();
  std::array hellos{hello_from(host_of('x'), 0, 4), hello_from(*own_host_id(), 1, 4),
                    hello_from(host_of('y'), 2, 4), hello_from(host_of('x'), 3, 4)};
  hellos[2].max_payload = 1400;
  hellos[3].memory_bytes = 8 << 20;
  hellos[3].max_payload = 9000 - 28;
  const Address local = unix_address_of(host, hellos[1]);
  RawRank rank3(host, hellos[3]);
  RawRank rank1(local, hellos[1]);
  await_join(rank3, hellos[3]);
  RawRank rank0(host, hellos[0]);
  EXPECT_EQ(rank0.hear<Redirect>(), (Redirect{gate_address(4).name, host_of('x'), 3}));
  rank0.expect_end();
  rank3.say(hellos[0]);
  RawRank rank2(host, hellos[2]);
  const auto welcome = rank3.hear<Welcome>();
  EXPECT_EQ(welcome.hosts, 3U);
  EXPECT_EQ(welcome.max_payload, 1400U);
  EXPECT_EQ(welcome.memory_bytes, 8U << 20);
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(welcome.places, (std::vector<WelcomePlace>{{0, 0, hellos[0].endpoint},
                                                       {pid, 1, hellos[1].endpoint},
                                                       {0, 2, hellos[2].endpoint},
                                                       {0, 0, hellos[3].endpoint}}));
  EXPECT_EQ(ranks_on_host(welcome, 0), (std::vector<int>{0, 3}));
  for (RawRank* each : {&rank1, &rank2}) EXPECT_EQ(each->hear<Welcome>(), welcome);
  EXPECT_TRUE(memory::verify_memory(rank1.take_attached(), 8 << 20).ok());
  for (RawRank* each : {&rank2, &rank3}) EXPECT_FALSE(each->take_attached().valid());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().strangers(), 0);
}

// What decision 33 is about: connections by hosts, not by ranks, and as many copies of the Welcome.
TEST(RendezvousOfHosts, HasOneConnectionToEachOtherHost) {
  constexpr std::uint32_t kHosts = 64;
  constexpr std::uint32_t kPerHost = 16;
  constexpr std::uint32_t kRanks = kHosts * kPerHost;
  Host host(kRanks, "10min", kTcp);
  host.serve();
  const auto host_id = [](std::uint32_t rank) {
    const auto number = static_cast<char>(rank / kPerHost);
    return number == 0 ? *own_host_id() : host_of(number);
  };
  const Address local = unix_address_of(host, hello_from(*own_host_id(), 0, kRanks));
  std::vector<std::unique_ptr<RawRank>> stay;
  std::size_t sent_away_bytes = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const Hello hello = hello_from(host_id(rank), rank, kRanks);
    if (hello.host == *own_host_id()) {
      stay.push_back(std::make_unique<RawRank>(local, hello));
    } else if (rank % kPerHost == 0) {
      stay.push_back(std::make_unique<RawRank>(host, hello));
      await_join(*stay.back(), hello);
    } else {
      RawRank sent_away(host, hello);
      EXPECT_EQ(sent_away.hear<Redirect>().gate, rank - rank % kPerHost);
      sent_away_bytes += sent_away.heard_bytes();
      stay.back()->say(hello);
    }
  }
  std::size_t stay_bytes = 0;
  for (const auto& each : stay) {
    EXPECT_EQ(each->hear<Welcome>().hosts, kHosts);
    stay_bytes += each->heard_bytes();
  }
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(stay.size(), kPerHost + kHosts - 1);
  EXPECT_EQ(host.server().release_connections().size(), stay.size());
  const std::size_t welcome_bytes = stay.back()->heard_bytes();
  EXPECT_LE(sent_away_bytes, (kRanks - stay.size()) * 128);
  EXPECT_LE(stay_bytes, stay.size() * welcome_bytes);
  EXPECT_LE(stay_bytes + sent_away_bytes, kRanks * welcome_bytes / 12) << "to all that much before";
}

TEST(RendezvousOfHosts, AHostWithoutRanksCanServeOneHost) {
  Host host(2, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  rank0.say(hello_from(host_of('x'), 1, 2));
  const auto welcome = rank0.hear<Welcome>();
  EXPECT_EQ(welcome.hosts, 1U);
  EXPECT_EQ(welcome.places, std::vector<WelcomePlace>(2));
}

TEST(RendezvousOfHosts, JobsHaveIdentitiesAndKeysOfTheirOwn) {
  std::array<std::uint64_t, 2> ids{};
  for (std::uint64_t& id : ids) {
    Host host(1, "30s", kTcp);
    host.serve();
    id = RawRank(host, hello_from(host_of('x'), 0, 1)).hear<Welcome>().job_id;
  }
  EXPECT_NE(ids[0], ids[1]);
  const auto job_text = [](std::string_view secret, std::uint64_t id) {
    const wire::Key key = packet_key(wire::key_of(secret), id);
    return std::array{key.low, key.high};
  };
  EXPECT_EQ(job_text(kKey, 1), job_text(kKey, 1));
  EXPECT_NE(job_text(kKey, 1), job_text(kKey, 2));
  EXPECT_NE(job_text(kKey, 1), job_text("another key of some length", 1));
  EXPECT_NE(job_text(kKey, 1)[0], job_text(kKey, 1)[1]);
}

// Two ranks, of which the second is elsewhere and says something that does not fit.
void expect_misfit(const Hello& second, std::string_view part) {
  Host host(2, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  RawRank rank1(host, second);
  expect_refused(rank0, Code::argument, part);
  expect_refused(rank1, Code::argument, part);
  EXPECT_FALSE(host.finish().ok());
}

TEST(RendezvousOfHosts, MisfitsAreNamedToAll) {
  Hello layout = hello_from(host_of('y'), 1, 2);
  layout.memory_layout = 7;
  expect_misfit(layout, "ranks 0 and 1 would lay out their memory differently: UNISONO_BUFFERS");
  Hello nowhere = hello_from(host_of('y'), 1, 2);
  nowhere.endpoint = {};
  nowhere.max_payload = 0;
  expect_misfit(nowhere, "rank 1 has no address for datagrams");
  Hello loopback = hello_from(host_of('y'), 1, 2);
  loopback.endpoint = *transport::parse_endpoint("127.0.0.1:4001");
  expect_misfit(loopback, "rank 1 is at 127.0.0.1:4001, which other hosts do not reach");
  Hello other_family = hello_from(host_of('y'), 1, 2);
  other_family.endpoint = *transport::parse_endpoint("[fd00::1]:4001");
  expect_misfit(other_family, "IPv4 and IPv6 do not mix");
}

TEST(RendezvousOfHosts, OnOneHostNothingOfThatMatters) {
  Host host(2, "30s", kTcp);
  host.serve();
  Hello other = hello_from(host_of('x'), 1, 2);
  other.memory_layout = 7;
  other.endpoint = {};
  other.max_payload = 0;
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  rank0.say(other);
  EXPECT_EQ(rank0.hear<Welcome>().hosts, 1U);
}

TEST(RendezvousOfHosts, ADeathElsewhereIsToldToTheOthers) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank rank1(host, hello_from(host_of('x'), 1, 3));
  RawRank rank0(host, hello_from(host_of('y'), 0, 3));
  // Its Hello has arrived once a second one for its rank is refused.
  RawRank twin(host, hello_from(host_of('x'), 1, 3));
  expect_refused(twin, Code::argument, "rank 1 was claimed twice: by another host, 127.0.0.1");
  rank1.hang_up();
  expect_refused(rank0, Code::rank_lost, "rank 1 (another host, 127.0.0.1) ended before all ranks");
}

TEST(RendezvousOfHosts, ADeathBehindAGateIsToldToAll) {
  Host host(4, "30s", kTcp);
  host.serve();
  RawRank gate(host, hello_from(host_of('x'), 1, 4));
  const Hello guest = hello_from(host_of('x'), 2, 4);
  gate.say(guest);
  RawRank rank0(host, hello_from(host_of('y'), 0, 4));
  await_join(rank0, hello_from(host_of('y'), 0, 4));
  gate.say(Objection{*random_nonce(), Objection::Reason::ended});  // to whom nobody knows
  gate.say(Objection{guest.nonce, Objection::Reason::ended});
  for (RawRank* each : {&gate, &rank0}) {
    expect_refused(*each, Code::rank_lost,
                   "rank 2 (another host, 127.0.0.1) ended before all ranks had joined");
  }
}

TEST(RendezvousOfHosts, AGateThatDoesNotSeeAPidSaysSo) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank gate(host, hello_from(host_of('x'), 1, 3));
  const Hello guest = hello_from(host_of('x'), 2, 3);
  gate.say(guest);
  gate.say(Objection{guest.nonce, Objection::Reason::unseen_pid});
  expect_refused(
      gate, Code::unsupported,
      "rank 2 (another host, 127.0.0.1) is in a pid namespace that the rank by which it");
}

TEST(RendezvousOfHosts, ARankThatComesTwiceByGatesIsRefusedTheSecondTime) {
  Host host(4, "30s", kTcp);
  host.serve();
  RawRank gate_x(host, hello_from(host_of('x'), 0, 4));
  RawRank gate_y(host, hello_from(host_of('y'), 1, 4));
  gate_x.say(hello_from(host_of('x'), 2, 4));
  await_join(gate_x, hello_from(host_of('x'), 2, 4));
  const Hello twin = hello_from(host_of('y'), 2, 4);
  gate_y.say(twin);
  const auto refused = gate_y.hear<Refused>();
  EXPECT_EQ(refused.hello, twin.nonce);
  expect_text(refused, Code::argument, "rank 2 was claimed twice: by another host, 127.0.0.1");
  gate_y.say(Objection{twin.nonce, Objection::Reason::ended});  // concerns nobody any more
  gate_x.say(hello_from(host_of('x'), 3, 4));
  for (RawRank* each : {&gate_x, &gate_y}) EXPECT_EQ(each->hear<Welcome>().hosts, 2U);
  const Hello late = hello_from(host_of('x'), 3, 4);
  gate_x.say(late);
  const auto too_late = gate_x.hear<Refused>();
  EXPECT_EQ(too_late.hello, late.nonce);
  expect_text(too_late, Code::state, "rank 3 (another host, 127.0.0.1) comes too late");
}

TEST(RendezvousOfHosts, AWrongSizeBehindAGateEndsTheJobAtOnce) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank gate(host, hello_from(host_of('x'), 0, 3));
  const Hello guest = hello_from(host_of('x'), 2, 4);
  gate.say(guest);
  const auto refused = gate.hear<Refused>();
  EXPECT_EQ(refused.hello, guest.nonce);
  expect_text(refused, Code::argument, "was told that the job has 4 ranks");
  expect_refused(gate, Code::argument, "was told that the job has 4 ranks");
}

TEST(RendezvousOfHosts, AGateSpeaksForItsOwnHostOnly) {
  for (const HostId& other : {host_of('y'), *own_host_id()}) {
    Host host(3, "30s", kTcp);
    host.serve();
    RawRank gate(host, hello_from(host_of('x'), 0, 3));
    gate.say(hello_from(other, 1, 3));
    EXPECT_EQ(gate.hear<Refused>().code, Code::state);
    const auto all = gate.hear<Refused>();
    EXPECT_NE(all.text.find("comes by a rank of another host than its own"), std::string::npos);
  }
}

TEST(RendezvousOfHosts, ARankWithoutADoorCannotBeAGate) {
  Host host(2, "30s", kTcp);
  host.serve();
  Hello hello = hello_from(host_of('x'), 0, 2);
  hello.door = 0;
  RawRank rank0(host, hello);
  expect_refused(rank0, Code::state, "has no socket for the other ranks of its host");
}

TEST(RendezvousOfHosts, ARankOnTheUnixSocketIsNoGate) {
  Host host(2);
  host.serve();
  RawRank rank0(host, hello_from(*own_host_id(), 0, 2));
  rank0.say(hello_from(*own_host_id(), 1, 2));
  rank0.expect_end();
  const auto ended = host.finish();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::rank_lost) << ended.error().message;
}

TEST(RendezvousOfHosts, MissingRanksAreNamedElsewhereToo) {
  Host host(3, "200ms", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 3));
  expect_refused(rank0, Code::timeout, "missing ranks 1, 2");
}

TEST(RendezvousOfHosts, WhoComesTooLateFromElsewhereIsRefused) {
  Host host(1, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 1));
  EXPECT_EQ(rank0.hear<Welcome>().hosts, 1U);
  RawRank late(host, hello_from(host_of('y'), 0, 1));
  expect_refused(late, Code::state, "rank 0 (another host, 127.0.0.1) comes too late");
}

TEST(RendezvousOfHosts, AnotherHostOnAUnixSocketIsALie) {
  Host host(1);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 1));
  expect_refused(rank0, Code::state, "says that it is on another host");
}

}  // namespace
}  // namespace unisono::bootstrap

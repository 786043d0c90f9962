// SPDX-License-Identifier: BSD-3-Clause
// bootstrap of several hosts on one: ranks that claim to be on other hosts join a real rendezvous.
// With a real rank: host_relay_test.cpp; with real networks: test/net/bootstrap_test.cpp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"
#include "transport/ip/ip.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::hosts_test {
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

// Waits until the rendezvous has read what the relay has sent: it refuses a second such Hello.
void await_join(RawRank& relay, Hello hello) {
  hello.nonce = *random_nonce();
  relay.send(hello);
  const auto refused = relay.receive<Refused>();
  EXPECT_EQ(refused.hello, hello.nonce);
  expect_text(refused, Code::argument, "was claimed twice");
}

Address unix_address_of(const Host& host, const Hello& hello) {
  RawRank first(host, hello);
  const auto redirect = first.receive<Redirect>();
  EXPECT_EQ(redirect.host, *own_host_id());
  return {Address::Kind::unix_name, redirect.name, 0};
}

TEST(RendezvousOfHosts, TellsAllRanksWhereEachIs) {
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
  EXPECT_EQ(rank0.receive<Redirect>(), (Redirect{relay_address(4).name, host_of('x'), 3}));
  rank0.expect_end();
  rank3.send(hellos[0]);
  RawRank rank2(host, hellos[2]);
  const auto welcome = rank3.receive<Welcome>();
  EXPECT_EQ(welcome.hosts, 3U);
  EXPECT_EQ(welcome.max_payload, 1400U);
  EXPECT_EQ(welcome.memory_bytes, 8U << 20);
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(welcome.members, (std::vector<WelcomeMember>{{0, 0, hellos[0].endpoint},
                                                         {pid, 1, hellos[1].endpoint},
                                                         {0, 2, hellos[2].endpoint},
                                                         {0, 0, hellos[3].endpoint}}));
  EXPECT_EQ(ranks_on_host(welcome, 0), (std::vector<int>{0, 3}));
  for (RawRank* each : {&rank1, &rank2}) EXPECT_EQ(each->receive<Welcome>(), welcome);
  EXPECT_TRUE(memory::verify_memory(rank1.take_attached(), 8 << 20).ok());
  for (RawRank* each : {&rank2, &rank3}) EXPECT_FALSE(each->take_attached().valid());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().rejected_peers(), 0);
}

// Decision 33: as many connections, and copies of the Welcome, as hosts, not as ranks.
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
      EXPECT_EQ(sent_away.receive<Redirect>().relay, rank - rank % kPerHost);
      sent_away_bytes += sent_away.received_bytes();
      stay.back()->send(hello);
    }
  }
  std::size_t stay_bytes = 0;
  for (const auto& each : stay) {
    EXPECT_EQ(each->receive<Welcome>().hosts, kHosts);
    stay_bytes += each->received_bytes();
  }
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(stay.size(), kPerHost + kHosts - 1);
  EXPECT_EQ(host.server().release_connections().size(), stay.size());
  const std::size_t welcome_bytes = stay.back()->received_bytes();
  EXPECT_LE(sent_away_bytes, (kRanks - stay.size()) * 128);
  EXPECT_LE(stay_bytes, stay.size() * welcome_bytes);
  EXPECT_LE(stay_bytes + sent_away_bytes, kRanks * welcome_bytes / 12)
      << "far less than one for each rank";
}

// Only hosts that all run on one kernel are known to share its cores.
TEST(RendezvousOfHosts, TellsTheCoresOfTheMachineThatAllAreOn) {
  for (const bool is_one_machine : {true, false}) {
    Host host(2, "30s", kTcp);
    host.serve();
    Hello first = hello_from(host_of('x'), 0, 2), second = hello_from(host_of('y'), 1, 2);
    first.kernel = {.id = 7, .cores = 8};
    second.kernel = {.id = is_one_machine ? 7U : 9U, .cores = 4};
    RawRank rank0(host, first), rank1(host, second);
    const std::uint32_t expected = is_one_machine ? 4 : 0;
    EXPECT_EQ(rank0.receive<Welcome>().shared_cores, expected);
    EXPECT_EQ(rank1.receive<Welcome>().shared_cores, expected);
  }
}

TEST(RendezvousOfHosts, AHostWithoutRanksCanServeOneHost) {
  Host host(2, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  rank0.send(hello_from(host_of('x'), 1, 2));
  const auto welcome = rank0.receive<Welcome>();
  EXPECT_EQ(welcome.hosts, 1U);
  EXPECT_EQ(welcome.members, std::vector<WelcomeMember>(2));
}

TEST(RendezvousOfHosts, JobsHaveTheirOwnIdentitiesAndKeys) {
  std::array<std::uint64_t, 2> ids{};
  for (std::uint64_t& id : ids) {
    Host host(1, "30s", kTcp);
    host.serve();
    id = RawRank(host, hello_from(host_of('x'), 0, 1)).receive<Welcome>().job_id;
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

// Two ranks; the second is on another host, and its Hello does not fit.
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

TEST(RendezvousOfHosts, OnOneHostNoneOfThatMatters) {
  Host host(2, "30s", kTcp);
  host.serve();
  Hello other = hello_from(host_of('x'), 1, 2);
  other.memory_layout = 7;
  other.endpoint = {};
  other.max_payload = 0;
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  rank0.send(other);
  EXPECT_EQ(rank0.receive<Welcome>().hosts, 1U);
}

TEST(RendezvousOfHosts, ADeathOnAnotherHostIsToldToTheOthers) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank rank1(host, hello_from(host_of('x'), 1, 3));
  RawRank rank0(host, hello_from(host_of('y'), 0, 3));
  // Its Hello has arrived once a second one for its rank is refused.
  RawRank twin(host, hello_from(host_of('x'), 1, 3));
  expect_refused(twin, Code::argument, "rank 1 was claimed twice: by another host, 127.0.0.1");
  rank1.disconnect();
  expect_refused(rank0, Code::rank_lost, "rank 1 (another host, 127.0.0.1) ended before all ranks");
}

TEST(RendezvousOfHosts, TheDeathOfARelayedRankIsToldToAll) {
  Host host(4, "30s", kTcp);
  host.serve();
  RawRank relay(host, hello_from(host_of('x'), 1, 4));
  const Hello relayed = hello_from(host_of('x'), 2, 4);
  relay.send(relayed);
  RawRank rank0(host, hello_from(host_of('y'), 0, 4));
  await_join(rank0, hello_from(host_of('y'), 0, 4));
  relay.send(Withdrawal{*random_nonce(), Withdrawal::Reason::ended});  // of an unknown Hello
  relay.send(Withdrawal{relayed.nonce, Withdrawal::Reason::ended});
  for (RawRank* each : {&relay, &rank0}) {
    expect_refused(*each, Code::rank_lost,
                   "rank 2 (another host, 127.0.0.1) ended before all ranks had joined");
  }
}

TEST(RendezvousOfHosts, AnUnseenPidIsReported) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank relay(host, hello_from(host_of('x'), 1, 3));
  const Hello relayed = hello_from(host_of('x'), 2, 3);
  relay.send(relayed);
  relay.send(Withdrawal{relayed.nonce, Withdrawal::Reason::unseen_pid});
  expect_refused(
      relay, Code::unsupported,
      "rank 2 (another host, 127.0.0.1) is in a pid namespace that its host's relay does not see");
}

TEST(RendezvousOfHosts, ARankOfTwoRelaysIsRefusedTheSecondTime) {
  Host host(4, "30s", kTcp);
  host.serve();
  RawRank relay_x(host, hello_from(host_of('x'), 0, 4));
  RawRank relay_y(host, hello_from(host_of('y'), 1, 4));
  relay_x.send(hello_from(host_of('x'), 2, 4));
  await_join(relay_x, hello_from(host_of('x'), 2, 4));
  const Hello twin = hello_from(host_of('y'), 2, 4);
  relay_y.send(twin);
  const auto refused = relay_y.receive<Refused>();
  EXPECT_EQ(refused.hello, twin.nonce);
  expect_text(refused, Code::argument, "rank 2 was claimed twice: by another host, 127.0.0.1");
  relay_y.send(Withdrawal{twin.nonce, Withdrawal::Reason::ended});  // of a refused Hello
  relay_x.send(hello_from(host_of('x'), 3, 4));
  for (RawRank* each : {&relay_x, &relay_y}) EXPECT_EQ(each->receive<Welcome>().hosts, 2U);
  const Hello late = hello_from(host_of('x'), 3, 4);
  relay_x.send(late);
  const auto too_late = relay_x.receive<Refused>();
  EXPECT_EQ(too_late.hello, late.nonce);
  expect_text(too_late, Code::state, "rank 3 (another host, 127.0.0.1) is too late");
}

TEST(RendezvousOfHosts, AWrongSizeOfARelayedRankEndsTheJobAtOnce) {
  Host host(3, "30s", kTcp);
  host.serve();
  RawRank relay(host, hello_from(host_of('x'), 0, 3));
  const Hello relayed = hello_from(host_of('x'), 2, 4);
  relay.send(relayed);
  const auto refused = relay.receive<Refused>();
  EXPECT_EQ(refused.hello, relayed.nonce);
  expect_text(refused, Code::argument, "was told that the job has 4 ranks");
  expect_refused(relay, Code::argument, "was told that the job has 4 ranks");
}

TEST(RendezvousOfHosts, ARelayServesItsOwnHostOnly) {
  for (const HostId& other : {host_of('y'), *own_host_id()}) {
    Host host(3, "30s", kTcp);
    host.serve();
    RawRank relay(host, hello_from(host_of('x'), 0, 3));
    relay.send(hello_from(other, 1, 3));
    EXPECT_EQ(relay.receive<Refused>().code, Code::state);
    const auto all = relay.receive<Refused>();
    EXPECT_NE(all.text.find("joins through a rank of another host than its own"),
              std::string::npos);
  }
}

TEST(RendezvousOfHosts, ARankWithoutARelaySocketCannotBeARelay) {
  Host host(2, "30s", kTcp);
  host.serve();
  Hello hello = hello_from(host_of('x'), 0, 2);
  hello.relay_socket = 0;
  RawRank rank0(host, hello);
  expect_refused(rank0, Code::state, "has no socket for the other ranks of its host");
}

TEST(RendezvousOfHosts, ARankOnTheUnixSocketIsNoRelay) {
  Host host(2);
  host.serve();
  RawRank rank0(host, hello_from(*own_host_id(), 0, 2));
  rank0.send(hello_from(*own_host_id(), 1, 2));
  rank0.expect_end();
  const auto ended = host.finish();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::rank_lost) << ended.error().message;
}

TEST(RendezvousOfHosts, MissingRanksAreNamedOnOtherHostsToo) {
  Host host(3, "200ms", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 3));
  expect_refused(rank0, Code::timeout, "missing ranks 1, 2");
}

TEST(RendezvousOfHosts, ALateRankOfAnotherHostIsRefused) {
  Host host(1, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 1));
  EXPECT_EQ(rank0.receive<Welcome>().hosts, 1U);
  RawRank late(host, hello_from(host_of('y'), 0, 1));
  expect_refused(late, Code::state, "rank 0 (another host, 127.0.0.1) is too late");
}

TEST(RendezvousOfHosts, AnotherHostOverAUnixSocketIsAnError) {
  Host host(1);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 1));
  expect_refused(rank0, Code::state, "says that it is on another host");
}

}  // namespace
}  // namespace unisono::bootstrap::hosts_test

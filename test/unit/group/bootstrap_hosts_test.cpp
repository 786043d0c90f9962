// SPDX-License-Identifier: BSD-3-Clause
// group/bootstrap on several hosts, without any: ranks that say they are elsewhere come to a real
// rendezvous, and real ranks come to a rendezvous that says it is elsewhere. With real networks:
// test/net/bootstrap_test.cpp.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include "group/bootstrap/line.hpp"
#include "group/bootstrap/memory.hpp"
#include "group/bootstrap/welcome.hpp"
#include "group/hosts.hpp"
#include "transport/udp/ip.hpp"
#include "unit/group/served_rendezvous.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::kSecond;
using base::Result;
using test::expect_error;
using test::Host;
using test::kKey;
using test::settings_with;

constexpr const char* kTcp = "tcp:127.0.0.1:0";

HostId host_of(char letter) {
  HostId host{};
  host.fill(letter);
  return host;
}

// What a rank would say that is somewhere else.
Hello hello_from(const HostId& host, std::uint32_t rank, std::uint32_t ranks) {
  Hello hello;
  hello.nonce = *random_nonce();
  hello.host = host;
  hello.rank = rank;
  hello.ranks = ranks;
  hello.memory_bytes = 1 << 20;
  hello.endpoint = *transport::parse_endpoint("10.0.0.1:4000");
  hello.endpoint.port = static_cast<std::uint16_t>(4000 + rank);
  hello.max_payload = 1472;
  return hello;
}

// A rank of whom the test is the voice.
class RawRank {
 public:
  RawRank(const Address& address, const Hello& hello) : hello_(hello) {
    auto socket = try_connect(address, base::now_ns() + 30 * kSecond);
    EXPECT_TRUE(socket.ok() && socket->has_value()) << address_text(address);
    line_.emplace(std::move(**socket));
    const auto greeting = line_->receive(base::now_ns() + 30 * kSecond);
    EXPECT_TRUE(greeting.ok() && greeting->has_value());
    std::string frame = encode(hello);
    sign(frame, wire::key_of(kKey), std::get<Challenge>((*greeting)->message).nonce);
    EXPECT_TRUE(line_->send(frame).ok());
  }
  RawRank(const Host& host, const Hello& hello) : RawRank(host.job(0, 1).address, hello) {}

  template <class Kind>
  Kind hear() {
    auto answer = line_->receive(base::now_ns() + 30 * kSecond);
    if (!answer.ok() || !answer->has_value()) {
      ADD_FAILURE() << "rank " << hello_.rank << " hears nothing";
      return {};
    }
    if (!std::is_same_v<Kind, Refused>) {
      EXPECT_TRUE(signature_is_right((*answer)->frame, wire::key_of(kKey), hello_.nonce));
    }
    const Kind* kind = std::get_if<Kind>(&(*answer)->message);
    if (kind != nullptr) return *kind;
    const Refused* refused = std::get_if<Refused>(&(*answer)->message);
    ADD_FAILURE() << "rank " << hello_.rank << ": "
                  << (refused != nullptr ? refused->text : "another kind of message");
    return {};
  }
  base::Descriptor take_attached() { return line_->take_attached(); }
  // As if its process died.
  void hang_up() { line_.reset(); }

 private:
  Hello hello_;
  std::optional<Line> line_;
};

void expect_refused(RawRank& rank, Code code, std::string_view part) {
  const auto refused = rank.hear<Refused>();
  EXPECT_EQ(refused.code, code) << refused.text;
  EXPECT_NE(refused.text.find(part), std::string::npos) << refused.text;
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
  RawRank rank0(host, hellos[0]);
  RawRank rank2(host, hellos[2]);
  const auto welcome = rank0.hear<Welcome>();
  EXPECT_EQ(welcome.hosts, 3U);
  EXPECT_EQ(welcome.max_payload, 1400U);
  EXPECT_EQ(welcome.memory_bytes, 8U << 20);
  const auto pid = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(welcome.places, (std::vector<WelcomePlace>{{0, 0, hellos[0].endpoint},
                                                       {pid, 1, hellos[1].endpoint},
                                                       {0, 2, hellos[2].endpoint},
                                                       {0, 0, hellos[3].endpoint}}));
  EXPECT_EQ(ranks_on_host(welcome, 0), (std::vector<int>{0, 3}));
  for (RawRank* each : {&rank1, &rank2, &rank3}) EXPECT_EQ(each->hear<Welcome>(), welcome);
  EXPECT_TRUE(verify_memory(rank1.take_attached(), 8 << 20).ok());
  for (RawRank* each : {&rank0, &rank2, &rank3}) EXPECT_FALSE(each->take_attached().valid());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().strangers(), 0);
}

TEST(RendezvousOfHosts, AHostWithoutRanksCanServeOneHost) {
  Host host(2, "30s", kTcp);
  host.serve();
  RawRank rank0(host, hello_from(host_of('x'), 0, 2));
  RawRank rank1(host, hello_from(host_of('x'), 1, 2));
  const auto welcome = rank0.hear<Welcome>();
  EXPECT_EQ(welcome.hosts, 1U);
  EXPECT_EQ(welcome.places, std::vector<WelcomePlace>(2));
  EXPECT_EQ(rank1.hear<Welcome>(), welcome);
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
  RawRank rank1(host, other);
  EXPECT_EQ(rank0.hear<Welcome>().hosts, 1U);
  EXPECT_EQ(rank1.hear<Welcome>().hosts, 1U);
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

// A rendezvous that says it is elsewhere, for a job of which rank 0 is there with it, and the
// others are here.
class FarRendezvous {
 public:
  explicit FarRendezvous(std::uint32_t ranks)
      : ranks_(ranks), address_(*parse_address("tcp:127.0.0.1:0")) {
    auto listening = listen_at(address_);
    EXPECT_TRUE(listening.ok());
    listener_ = std::move(*listening);
    thread_ = std::thread([this] { serve(); });
  }
  ~FarRendezvous() { thread_.join(); }
  FarRendezvous(const FarRendezvous&) = delete;
  FarRendezvous& operator=(const FarRendezvous&) = delete;

  std::uint64_t job_id() const { return job_id_; }
  static constexpr std::uint64_t kMemoryBytes = 3 << 20;

  JobDescription job(std::uint32_t rank) const {
    JobDescription description;
    description.rank = static_cast<int>(rank);
    description.ranks = static_cast<int>(ranks_);
    description.address = address_;
    description.address_given = true;
    description.key = kKey;
    return description;
  }

 private:
  void serve() {
    std::vector<Line> lines;
    std::vector<Arrival> arrivals{{hello_from(host_of('x'), 0, ranks_), 0}};
    arrivals.resize(ranks_);
    std::vector<std::uint32_t> came;
    while (lines.size() + 1 < ranks_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      ASSERT_EQ(poll(&waiting, 1, 30000), 1);
      base::Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ASSERT_TRUE(send_frame(socket, encode(Challenge{})));
      Line line(std::move(socket));
      const auto heard = line.receive(base::now_ns() + 30 * kSecond);
      ASSERT_TRUE(heard.ok() && heard->has_value());
      const Hello hello = std::get<Hello>((*heard)->message);
      arrivals[hello.rank].hello = hello;
      came.push_back(hello.rank);
      lines.push_back(std::move(line));
    }
    // The addresses of ranks here are loopback's, which compose_welcome() would refuse.
    Welcome welcome{kMemoryBytes, "far", job_id_, 2, 1000, {}};
    for (const Arrival& arrival : arrivals) {
      welcome.places.push_back({0, arrival.hello.rank == 0 ? 0U : 1U, arrival.hello.endpoint});
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string frame = encode(welcome);
      sign(frame, wire::key_of(kKey), arrivals[came[i]].hello.nonce);
      ASSERT_TRUE(lines[i].send(frame).ok());
    }
    for (Line& line : lines) {
      EXPECT_FALSE((*line.receive(base::now_ns() + 30 * kSecond)).has_value());
    }
  }

  std::uint32_t ranks_;
  std::uint64_t job_id_ = *random_number();  // and so the host's meeting place is new each time
  Address address_;
  base::Descriptor listener_;
  std::thread thread_;
};

// A datagram from one to the other.
void expect_datagram(const Seat& from, const Seat& to) {
  const std::array<std::byte, 3> sent{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::array outgoing{transport::Outgoing{.target = to.rank, .head = sent}};
  ASSERT_EQ(from.datagrams->send(outgoing), 1U);
  std::array<transport::Incoming, 1> incoming;
  while (to.datagrams->receive(incoming) == 0) {
    pollfd waiting{to.datagrams->descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&waiting, 1, 30000), 1);
  }
  EXPECT_TRUE(std::ranges::equal(incoming[0].bytes, sent));
}

TEST(Hosts, SayWhereARankIsIfThereAreSeveral) {
  std::vector<Member> members{{.pid = getpid(), .host = 0}, {.pid = 0, .host = 1}};
  EXPECT_EQ(Hosts(members, 0).place_of(1), "");
  EXPECT_EQ(Hosts(members, 0).with_place(1, "it left"), "it left");
  members[0].address = *transport::parse_ip("fd00::1");
  members[1].address = *transport::parse_ip("10.0.0.3");
  const Hosts hosts(members, 0);
  EXPECT_EQ(hosts.place_of(0), "host fd00::1") << "its own too: a message is read on all hosts";
  EXPECT_EQ(hosts.place_of(1), "host 10.0.0.3");
  EXPECT_EQ(hosts.with_place(1, "it left"), "host 10.0.0.3; it left");
}

TEST(HostMeeting, RanksOfOneHostShareItsMemoryAndAllKnowTheirPlaces) {
  const FarRendezvous server(3);
  const auto joined = test::join_all({server.job(1), server.job(2)}, settings_with("30s"));
  for (const auto& seat : joined) {
    ASSERT_TRUE(seat.ok()) << seat.error().message;
    EXPECT_EQ(seat->hosts, 2);
    EXPECT_EQ(seat->memory_bytes, FarRendezvous::kMemoryBytes);
    EXPECT_TRUE(verify_memory(seat->memory, FarRendezvous::kMemoryBytes).ok());
    ASSERT_EQ(seat->members.size(), 3U);
    EXPECT_EQ(seat->members[0].pid, 0);
    EXPECT_EQ(seat->members[0].host, 0);
    EXPECT_EQ(seat->members[0].address, *transport::parse_ip("10.0.0.1"));
    EXPECT_EQ(seat->members[1].address, *transport::parse_ip("127.0.0.1"));
    for (const std::size_t rank : {std::size_t{1}, std::size_t{2}}) {
      EXPECT_EQ(seat->members[rank].pid, getpid());
      EXPECT_EQ(seat->members[rank].host, 1);
    }
    EXPECT_TRUE(seat->channel.valid());
    EXPECT_TRUE(seat->host_channel.valid());
    EXPECT_EQ(seat->hosted.size(), seat->rank == 1 ? 2U : 0U);
    ASSERT_NE(seat->datagrams, nullptr);
    EXPECT_EQ(seat->datagrams->limits().max_payload, 1000U);
    EXPECT_EQ(seat->datagrams->rank(), seat->rank);
    EXPECT_EQ(seat->key.low, packet_key(wire::key_of(kKey), server.job_id()).low);
  }
  ASSERT_EQ(pwrite(joined[0]->memory.get(), "together", 8, 4096), 8);
  std::array<char, 8> read{};
  ASSERT_EQ(pread(joined[1]->memory.get(), read.data(), read.size(), 4096), 8);
  EXPECT_EQ(std::string(read.data(), read.size()), "together");
  expect_datagram(*joined[0], *joined[1]);
  expect_datagram(*joined[1], *joined[0]);
}

TEST(HostMeeting, TheFirstRankNamesThoseThatDoNotCome) {
  const FarRendezvous server(4);
  RawRank rank2(server.job(2).address, hello_from(*own_host_id(), 2, 4));
  RawRank rank3(server.job(3).address, hello_from(*own_host_id(), 3, 4));
  expect_error(join(server.job(1), settings_with("300ms")), Code::timeout,
               "2 of 3 ranks of this host did not join within 300ms (UNISONO_START_TIMEOUT): "
               "missing ranks 2, 3");
}

TEST(HostMeeting, AFirstRankThatNeverComesIsNamed) {
  const FarRendezvous server(3);
  RawRank rank1(server.job(1).address, hello_from(*own_host_id(), 1, 3));
  expect_error(join(server.job(2), settings_with("300ms")), Code::timeout,
               "rank 2 of 3: nobody listens at unix:@unisono-");
}

TEST(HostMeeting, AFirstRankThatDiesIsNamed) {
  const FarRendezvous server(3);
  Address meeting_place = host_meeting_address(server.job_id(), 1);
  auto listener = listen_at(meeting_place);
  ASSERT_TRUE(listener.ok());
  std::thread first([&] {
    RawRank rank1(server.job(1).address, hello_from(*own_host_id(), 1, 3));
    pollfd waiting{listener->get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 30000), 1);
    listener->reset();  // with the connection that waits in its queue
  });
  expect_error(join(server.job(2), settings_with("30s")), Code::rank_lost,
               "which rank 1, the first of this host, hosts, ended before all ranks had joined");
  first.join();
}

}  // namespace
}  // namespace unisono::group

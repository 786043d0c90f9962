// SPDX-License-Identifier: BSD-3-Clause
// bootstrap and peers that are no ranks of the job: they cannot keep a rank out by opening many
// connections, by answering in place of the rendezvous, or by taking its name.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::rejected_peers_test {
namespace {

using base::Code;
using base::Descriptor;
using base::kSecond;
using base::Result;
using test::expect_error;
using test::hello_from;
using test::Host;
using test::host_of;
using test::join_all;
using test::kKey;
using test::settings_with;

constexpr const char* kTcp = "tcp:127.0.0.1:0";
constexpr uid_t kNobody = 65534;

std::int64_t soon() { return base::now_ns() + 30 * kSecond; }

// A connection from an address of this host (127.0.0.0/8) to another one.
Descriptor connect_from(const std::string& source, const Address& target) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto at = [](const std::string& text) {
    return transport::socket_address(*transport::parse_endpoint(text), 0);
  };
  const auto own = at(source + ":0");
  EXPECT_EQ(bind(socket.get(), own.get(), own.length), 0);
  const auto other = at(target.name + ":" + std::to_string(target.port));
  EXPECT_EQ(connect(socket.get(), other.get(), other.length), 0);
  return socket;
}

// An acceptor that the test steps.
struct OpenAcceptor {
  explicit OpenAcceptor(int ranks, const std::string& at = kTcp) : address(*parse_address(at)) {
    acceptor = std::move(*Acceptor::open(wire::key_of(kKey), ranks));
    EXPECT_TRUE(acceptor->listen(address).ok());
  }
  std::vector<Acceptor::Event> step() const {
    auto events = acceptor->step();
    EXPECT_TRUE(events.ok());
    return std::move(*events);
  }
  Address address;
  std::unique_ptr<Acceptor> acceptor;
};

void send_hello(MessageStream& stream) {
  const auto challenge = stream.receive(soon());
  ASSERT_TRUE(challenge.ok() && challenge->has_value());
  std::string frame = encode(hello_from(host_of('x'), 0, 1));
  sign(frame, wire::key_of(kKey), std::get<Challenge>((*challenge)->message).nonce);
  ASSERT_TRUE(stream.send(frame).ok());
}

// A step reads 64 connections. The rank's is the oldest of its address, so it is the one to be
// dropped. It is not among those that the step reads anyway.
TEST(RejectedPeers, AHelloIsReadBeforeItsConnectionIsDropped) {
  constexpr std::uint64_t kAllowed = 65;
  const OpenAcceptor open(1);
  MessageStream rank(connect_from("127.0.0.1", open.address));
  std::vector<Descriptor> others;
  while (open.acceptor->find(kAllowed) == nullptr) {
    if (others.size() + 1 < kAllowed) others.push_back(connect_from("127.0.0.1", open.address));
    open.step();
  }
  const auto send_a_byte = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) EXPECT_EQ(send(others[i].get(), "U", 1, 0), 1);
  };
  send_a_byte(0, 60);
  const Descriptor one_too_many = connect_from("127.0.0.1", open.address);
  send_a_byte(60, others.size());
  send_hello(rank);
  const auto events = open.step();
  ASSERT_NE(open.acceptor->find(kAllowed + 1), nullptr) << "it was accepted in this step";
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].connection, 1U);
  EXPECT_NE(open.acceptor->find(1), nullptr);
  EXPECT_EQ(open.acceptor->rejected_peers(), 0);
}

TEST(RejectedPeers, TheAddressWithTheMostSilentConnectionsLosesThem) {
  const OpenAcceptor open(1);
  MessageStream rank(connect_from("127.0.0.2", open.address));
  while (open.acceptor->find(1) == nullptr) open.step();
  std::vector<Descriptor> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(connect_from("127.0.0.1", open.address));
    open.step();
  }
  while (open.acceptor->find(201) == nullptr) open.step();
  ASSERT_NE(open.acceptor->find(1), nullptr) << "the oldest, and the only one of its address";
  send_hello(rank);
  std::vector<Acceptor::Event> events;
  while (events.empty()) events = open.step();
  EXPECT_EQ(events[0].connection, 1U);
}

TEST(RejectedPeers, OneStepAcceptsABoundedNumber) {
  const OpenAcceptor open(1000);
  std::vector<Descriptor> many;
  for (int i = 0; i < 200; ++i) many.push_back(connect_from("127.0.0.1", open.address));
  open.step();
  EXPECT_EQ(open.acceptor->find(101), nullptr) << "the owner runs in between";
  while (open.acceptor->find(200) == nullptr) open.step();
}

// Listens at the address of a rendezvous, and handles the first connections as the test says. Then
// a real rendezvous serves there.
class AfterRejectedPeers {
 public:
  AfterRejectedPeers() : address_(*parse_address(kTcp)) {
    auto listening = listen_at(address_);
    EXPECT_TRUE(listening.ok());
    listener_ = std::move(*listening);
  }
  Descriptor accept_one() const {
    pollfd waiting{listener_.get(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 30000), 1);
    return Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  MessageStream receive_hello() const {
    MessageStream stream(accept_one());
    EXPECT_TRUE(send_frame(stream.socket(), encode(Challenge{})));
    const auto hello = stream.receive(soon());
    EXPECT_TRUE(hello.ok() && hello->has_value());
    return stream;
  }
  JobDescription job() const {
    JobDescription description;
    description.ranks = 1;
    description.address = address_;
    description.address_given = true;
    description.key = kKey;
    return description;
  }
  base::Status serve() {
    Rendezvous::Options options;
    options.address = address_;
    options.key = kKey;
    options.memory_bytes = 1 << 20;
    options.timeout_ns = 30 * kSecond;
    auto server = Rendezvous::open(options, std::move(listener_));
    EXPECT_TRUE(server.ok());
    return (*server)->serve(soon());
  }

 private:
  Address address_;
  Descriptor listener_;
};

TEST(RejectedPeers, ARankWhoseConnectionIsClosedConnectsAgain) {
  AfterRejectedPeers server;
  std::optional<Result<JobInfo>> info;
  std::thread rank([&] { info.emplace(join(server.job(), settings_with("30s"))); });
  server.accept_one();
  server.receive_hello();
  EXPECT_TRUE(server.serve().ok());
  rank.join();
  EXPECT_TRUE(info->ok()) << info->error().message;
}

TEST(RejectedPeers, ARefusalWithoutProofIsIgnored) {
  AfterRejectedPeers server;
  std::optional<Result<JobInfo>> info;
  std::thread rank([&] { info.emplace(join(server.job(), settings_with("30s"))); });
  const MessageStream impostor = server.receive_hello();
  EXPECT_TRUE(send_frame(impostor.socket(), encode(Refused{Code::timeout, "go away", {}})));
  EXPECT_TRUE(server.serve().ok());
  rank.join();
  EXPECT_TRUE(info->ok()) << info->error().message;
}

TEST(RejectedPeers, ATimeoutCountsTheClosedConnections) {
  const AfterRejectedPeers server;
  std::optional<Result<JobInfo>> info;
  std::thread rank([&] { info.emplace(join(server.job(), settings_with("100ms"))); });
  server.accept_one();
  rank.join();  // it has connected again, and no process accepts
  expect_error(*info, Code::timeout, "it closed 1 connection of this rank without an answer");
}

// The queue of a Unix socket is short, and many ranks connect at once where they are redirected.
TEST(RejectedPeers, ASocketWithAFullQueueIsNotTakenForAClosedOne) {
  const Address address = *random_unix_address();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, address.name.data(), address.name.size());
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.name.size());
  const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), length), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  std::vector<Descriptor> first;
  for (bool busy = false; !busy;) {
    auto attempt = attempt_connect(address, soon());
    ASSERT_TRUE(attempt.ok()) << attempt.error().message;
    busy = attempt->busy;
    first.push_back(std::move(attempt->socket));
  }
  const AfterRejectedPeers rendezvous;
  JobDescription job = rendezvous.job();
  std::optional<Result<JobInfo>> info;
  std::thread rank([&] { info.emplace(join(job, settings_with("100ms"))); });
  MessageStream stream(rendezvous.accept_one());
  EXPECT_TRUE(send_frame(stream.socket(), encode(Challenge{})));
  const auto said = stream.receive(soon());
  ASSERT_TRUE(said.ok() && said->has_value());
  const Hello& hello = std::get<Hello>((*said)->message);
  std::string redirect = encode(Redirect{address.name, hello.host, kNoRelay});
  sign(redirect, wire::key_of(kKey), hello.nonce);
  EXPECT_TRUE(stream.send(redirect).ok());
  rank.join();
  expect_error(*info, Code::timeout, "no process accepts connections at unix:@unisono-");
}

// Listens at some names as another user, until it is destroyed.
class OtherUser {
 public:
  explicit OtherUser(std::vector<std::string> names) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<Descriptor> listening;
      bool fine = setuid(kNobody) == 0;
      for (std::string& name : names) {
        Address address{Address::Kind::unix_name, std::move(name), 0};
        auto one = listen_at(address);
        fine = fine && one.ok();
        if (one.ok()) listening.push_back(std::move(*one));
      }
      const char said = fine ? 'y' : 'n';
      [[maybe_unused]] const ssize_t written = write(ends[1], &said, 1);
      close(ends[1]);
      pause();
      _exit(0);
    }
    close(ends[1]);
    char said = 'n';
    EXPECT_EQ(read(ends[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    close(ends[0]);
  }
  ~OtherUser() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  pid_t pid_ = 0;
};

std::vector<JobDescription> ranks_at(const Address& address, bool given) {
  std::vector<JobDescription> jobs(3);
  for (std::size_t rank = 0; rank < jobs.size(); ++rank) {
    jobs[rank].rank = static_cast<int>(rank);
    jobs[rank].ranks = static_cast<int>(jobs.size());
    jobs[rank].address = address;
    jobs[rank].address_given = given;
  }
  return jobs;
}

// With a derived name, as under a launcher.
TEST(RejectedPeers, NamesOfAnotherUserAreIgnored) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  Address address = *random_unix_address();
  address.kind = Address::Kind::unix_prefix;
  std::vector<std::string> taken{address.name};
  for (const char digit : {'0', '7', 'f'})
    taken.push_back(address.name + '-' + std::string(16, digit));
  const OtherUser other_user(taken);
  for (const auto& info : join_all(ranks_at(address, false), settings_with("30s"))) {
    EXPECT_TRUE(info.ok()) << info.error().message;
  }
}

TEST(RejectedPeers, NamesOfOtherUsersAreCountedIfNoneIsOurs) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  Address address = *random_unix_address();
  address.kind = Address::Kind::unix_prefix;
  const OtherUser other_user({address.name + '-' + std::string(16, 'a')});
  expect_error(join(ranks_at(address, false)[1], settings_with("50ms")), Code::timeout,
               "did it start? 1 socket of other users has such a name");
}

TEST(RejectedPeers, AGivenNameOfAnotherUserIsAnErrorForEachRank) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  const Address address = *random_unix_address();
  const OtherUser other_user({address.name});
  for (const auto& info : join_all(ranks_at(address, true), settings_with("10min"))) {
    expect_error(info, Code::argument, "belongs to user 65534, this process to user 0");
  }
}

TEST(RejectedPeers, ASecondJobOfTheSameNameIsAnError) {
  Address address = *random_unix_address();
  address.kind = Address::Kind::unix_prefix;
  Address own = address;
  const auto first = listen_at(own);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(own.kind, Address::Kind::unix_name);
  EXPECT_EQ(own.name.size(), address.name.size() + 1 + 16);
  const auto second = listen_at(address);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("another job or process of this user"), std::string::npos);
}

TEST(RejectedPeers, AnErrorOfTheServingRankIsToldToTheOthers) {
  Host host(2);
  std::optional<Result<JobInfo>> info;
  std::thread rank1([&] { info.emplace(join(host.job(1, 2), settings_with("10min"))); });
  while (!host.server().has_joined(1)) host.step_once(1000);
  host.server().give_up({Code::resources, "rank 0 has no memory"});
  rank1.join();
  expect_error(*info, Code::resources, "rank 0 has no memory");
}

}  // namespace
}  // namespace unisono::bootstrap::rejected_peers_test

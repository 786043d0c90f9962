// SPDX-License-Identifier: BSD-3-Clause
// Streams between ranks on loopback: what arrives, in which order, and what happens to foreign,
// refused, cut and damaged connections. One thread carries all ranks on.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "base/prng.hpp"
#include "tcp_world.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/little_endian.hpp"
#include "transport/tcp/stream_socket.hpp"

namespace unisono::transport::tcp_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  base::Prng prng(seed);
  Bytes bytes(count);
  for (std::size_t at = 0; at < count; at += 8) {  // whole words: some tests take 20 MB
    const std::uint64_t word = prng.next();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, count - at));
  }
  return bytes;
}

Endpoint listening_at(RemoteMemory& memory) {
  Endpoint endpoint{.address = *parse_ip("127.0.0.1")};
  endpoint.port = load_little_endian<std::uint16_t>(memory.card().address.data() + 17);
  return endpoint;
}

// The same address with another port.
RegionCard card_with_port(const RegionCard& card, std::uint16_t port) {
  RegionCard changed = card;
  store_little_endian(changed.address.data() + 17, port);
  return changed;
}

class TcpTest : public testing::Test {
 protected:
  void make(int ranks, Family family = Family::v4, const wire::Key* key_of_last = nullptr,
            int without_tags = 0) {
    auto made = TcpWorld::make(ranks, family, key_of_last, without_tags);
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    world = std::move(*made);
  }
  bool is_there(int rank, std::uint64_t offset, const Bytes& bytes) {
    return std::memcmp(world->region(rank) + offset, bytes.data(), bytes.size()) == 0;
  }
  void wait(int rank, int number, std::uint64_t value) {
    while (world->value(rank, number) != value) world->step();
  }
  void step_until(const std::function<bool()>& condition) {
    while (!condition()) world->step();
  }
  std::unique_ptr<TcpWorld> world;
};

#define UNISONO_MAKE_WORLD(...) \
  make(__VA_ARGS__);            \
  if (world == nullptr) return

TEST_F(TcpTest, SaysWhatItIs) {
  UNISONO_MAKE_WORLD(2);
  EXPECT_EQ(world->at(0).name(), "tcp");
  EXPECT_TRUE(world->at(0).raises_flags());
  EXPECT_EQ(world->at(0).under_way(), 0U);
  EXPECT_EQ(world->at(0).error_of(1), "");
  EXPECT_EQ(world->at(0).trouble(), "");
  EXPECT_NE(world->at(0).card(), world->at(1).card());
  EXPECT_EQ(tcp_description().substr(0, 8), "tags by ");
}

TEST_F(TcpTest, TheBytesAreThereWhenTheFlagIs) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  std::uint64_t turn = 0;
  for (const std::size_t count :
       {1UL, 8UL, 4095UL, kMostFrameBytes, kMostFrameBytes + 1, kMostBatchBytes,
        kMostBatchBytes + 1, 3'145'733UL, 20'000'000UL}) {
    auto sent = random_bytes(count, count);
    const auto before = sent;
    world->write(0, 1, 12345, sent, 0, ++turn);
    std::fill(sent.begin(), sent.end(), std::byte{0});  // it may be reused at once
    wait(1, 0, turn);
    EXPECT_TRUE(is_there(1, 12345, before)) << count;
    EXPECT_EQ(world->region(1)[12344], std::byte{0});
    EXPECT_EQ(world->at(1).flags_raised(), turn);
  }
  step_until([&] { return world->at(0).under_way() == 0; });
  EXPECT_GT(world->at(0).moved(1), 23'000'000U);
}

TEST_F(TcpTest, Ipv6CarriesThemToo) {
  UNISONO_MAKE_WORLD(2, Family::v6);
  world->connect(0, 1);
  const Bytes sent = random_bytes(500'000, 4);
  world->write(0, 1, 64, sent, 0, 3);
  wait(1, 0, 3);
  EXPECT_TRUE(is_there(1, 64, sent));
}

TEST_F(TcpTest, AConnectionIsMadeWhenAMessageWantsIt) {
  UNISONO_MAKE_WORLD(2);
  for (int i = 0; i < 10; ++i) world->step();
  EXPECT_FALSE(world->at(0).accepts_message(1));  // it has begun now
  step_until([&] { return world->at(0).accepts_message(1); });
  EXPECT_FALSE(world->at(1).accepts_message(0));  // the other way is another
}

// The congestion control of each connection of this process to `to`.
std::vector<std::string> congestion_controls_towards(const Endpoint& to) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    // Not owned here: it is given back below.
    base::Descriptor socket(std::stoi(entry.path().filename()));
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        endpoint_of(peer) == to) {
      names.push_back(congestion_control_of(socket));
    }
    static_cast<void>(socket.release());
  }
  return names;
}

TEST_F(TcpTest, StreamsDoNotPaceByAnEstimate) {
  UNISONO_MAKE_WORLD(2);
  auto other = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(other.ok());
  const std::string system = congestion_control_of(*other);
  const std::string chosen = choose_congestion_control(*other);
  world->connect(0, 1);
  EXPECT_EQ(congestion_controls_towards(listening_at(world->at(1))),
            std::vector{chosen.empty() ? system : chosen});
}

// The kernel goes on pacing a socket that BBR has had once it was connected.
TEST(CongestionControl, IsSetBeforeTheConnectionIsMade) {
  auto listener = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(listener.ok());
  set_congestion_control(*listener, "reno");
  if (congestion_control_of(*listener) != "reno") GTEST_SKIP() << "this process may not use reno";
  const Endpoint to = *endpoint_of_socket(*listener);
  auto socket = start_to_connect(to.address, to, "reno");
  ASSERT_TRUE(socket.ok());
  EXPECT_EQ(congestion_control_of(*socket), "reno");
}

TEST(CongestionControl, OnlyBbrIsReplaced) {
  auto socket = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(socket.ok());
  const std::string system = congestion_control_of(*socket);
  for (const char* name : {"cubic", "reno", "dctcp", ""}) {
    EXPECT_EQ(choose_congestion_control(*socket, name), "") << name;
  }
  EXPECT_EQ(congestion_control_of(*socket), system);
  set_congestion_control(*socket, "reno");
  if (congestion_control_of(*socket) != "reno") GTEST_SKIP() << "this process may not use reno";
  for (const char* name : {"bbr", "bbr2", "bbr3"}) {
    const std::string chosen = choose_congestion_control(*socket, name);
    EXPECT_TRUE(chosen == "cubic" || chosen == "reno") << chosen;
    EXPECT_EQ(congestion_control_of(*socket), chosen);
  }
}

TEST(CongestionControl, AnUnknownOneChangesNothing) {
  auto socket = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(socket.ok());
  const std::string before = congestion_control_of(*socket);
  EXPECT_FALSE(before.empty());
  set_congestion_control(*socket, "");
  set_congestion_control(*socket, "none-of-these");
  EXPECT_EQ(congestion_control_of(*socket), before);
}

// As the engines send a length header and then the bytes.
TEST_F(TcpTest, PiecesComeBeforeTheFlagOfTheirMessage) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  const Bytes header = random_bytes(8, 1);
  const Bytes body = random_bytes(700'000, 2);
  world->write(0, 1, 0, header, 0, 0);
  world->write(0, 1, 4096, body, 0, 0);
  for (int i = 0; i < 1000; ++i) world->step();
  EXPECT_EQ(world->value(1, 0), 0U);
  EXPECT_EQ(world->at(1).flags_raised(), 0U);
  world->write(0, 1, 0, {}, 0, 9);
  wait(1, 0, 9);
  EXPECT_TRUE(is_there(1, 0, header));
  EXPECT_TRUE(is_there(1, 4096, body));
}

TEST_F(TcpTest, AWordThatMovesForwardIsNotSetBack) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->write(0, 1, 0, {}, 0, 7, true);
  world->write(0, 1, 0, {}, 0, 5, true);
  world->write(0, 1, 0, {}, 1, 1);
  wait(1, 1, 1);
  EXPECT_EQ(world->value(1, 0), 7U);
}

// Neither reads before both have written more than all buffers of the kernel hold.
TEST_F(TcpTest, BothDirectionsFull) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->connect(1, 0);
  std::array<Bytes, 2> sent = {random_bytes(20'000'000, 1), random_bytes(20'000'000, 2)};
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    for (int rank : {0, 1}) {
      const auto& bytes = sent[static_cast<std::size_t>(rank)];
      world->write(rank, 1 - rank, 0, bytes, static_cast<int>(turn), turn);
    }
  }
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    wait(0, static_cast<int>(turn), turn);
    wait(1, static_cast<int>(turn), turn);
  }
  EXPECT_TRUE(is_there(1, 0, sent[0]));
  EXPECT_TRUE(is_there(0, 0, sent[1]));
}

// No step of rank 0 but its writes, each of two batches.
TEST_F(TcpTest, ALongWriteReadsWhatHasCome) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->connect(1, 0);
  const Bytes short_one = random_bytes(10'000, 1);
  const Bytes long_one = random_bytes(kMostBatchBytes + 1, 2);
  world->write(1, 0, 64, short_one, 0, 1);
  std::uint64_t turn = 0;
  while (world->value(0, 0) != 1) world->write(0, 1, 0, long_one, 0, ++turn);
  EXPECT_TRUE(is_there(0, 64, short_one));
  wait(1, 0, turn);
  EXPECT_TRUE(is_there(1, 0, long_one));
}

TEST_F(TcpTest, ManyPeersAtOnce) {
  constexpr int kRanks = 9;
  UNISONO_MAKE_WORLD(kRanks);
  constexpr std::size_t kEach = 200'000;
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      world->connect(from, to);
      const auto seed = static_cast<std::uint64_t>(from * kRanks + to);
      world->write(from, to, kEach * static_cast<std::size_t>(from), random_bytes(kEach, seed),
                   from, seed + 1);
    }
  }
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      const auto seed = static_cast<std::uint64_t>(from * kRanks + to);
      wait(to, from, seed + 1);
      EXPECT_TRUE(is_there(to, kEach * static_cast<std::size_t>(from), random_bytes(kEach, seed)));
    }
  }
}

// A sleeping rank has to wake: the descriptor is readable when something has come.
TEST_F(TcpTest, TheDescriptorWakesItsRank) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  step_until([&] {  // until nothing of the handshake is left
    pollfd one{.fd = world->at(1).descriptor(), .events = POLLIN, .revents = 0};
    return poll(&one, 1, 0) == 0;
  });
  const Bytes sent = random_bytes(100, 1);
  world->write(0, 1, 0, sent, 0, 1);
  while (world->value(1, 0) != 1) {
    ASSERT_TRUE(world->at(1).may_sleep());
    pollfd one{.fd = world->at(1).descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&one, 1, -1), 1);
    world->at(1).poll({});
  }
}

// A rank that polls its streams need not ask elsewhere.
TEST_F(TcpTest, APollTellsOfADescriptorBesideItsStreams) {
  UNISONO_MAKE_WORLD(2);
  RemoteMemory& memory = world->at(0);
  EXPECT_FALSE(memory.watch_beside(-1));
  const base::Descriptor other(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  ASSERT_TRUE(memory.watch_beside(other.get()));
  const auto told = [&] {
    memory.may_sleep();  // so that the poll asks the kernel
    memory.poll({});
    return memory.beside();
  };
  EXPECT_EQ(told(), Beside::silent);
  ASSERT_EQ(eventfd_write(other.get(), 1), 0);
  EXPECT_EQ(told(), Beside::readable);
  pollfd one{.fd = memory.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&one, 1, 0), 1);
  // It is no event of a stream: polls that find no others ask the kernel less often in the end.
  int polls = 0;
  do {
    memory.poll({});
  } while (memory.beside() != Beside::unknown && ++polls < 1000);
  EXPECT_LT(polls, 1000);
  eventfd_t count = 0;
  ASSERT_EQ(eventfd_read(other.get(), &count), 0);
  EXPECT_EQ(told(), Beside::silent);
}

// ---- foreign connections -----------------------------------------------------------------------

base::Descriptor connect_to(const Endpoint& there) {
  base::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address = socket_address(there, 0);
  EXPECT_EQ(connect(socket.get(), address.get(), address.length), 0);
  return socket;
}

// All bytes that the other side sends until it ends the connection.
std::string all_received(const base::Descriptor& socket) {
  std::string text;
  std::array<char, 256> some;
  for (;;) {
    const ssize_t got = recv(socket.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (got > 0) text.append(some.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN)) return text;
    if (got < 0) return text + " (still open)";
  }
}

TEST_F(TcpTest, ForeignConnectionsAreDroppedWithoutAnAnswer) {
  UNISONO_MAKE_WORLD(2);
  const wire::Key other_key = wire::key_of("other");
  const wire::Key key = wire::key_of("test");
  Bytes text(200, std::byte{'G'});
  const HelloBytes other_job =
      encode_hello({.from = 0, .to = 1, .nonce = random_nonce()}, other_key);
  HelloBytes forged = encode_hello({.from = 0, .to = 1, .nonce = random_nonce()}, key);
  forged.back() ^= std::byte{1};
  const HelloBytes misled = encode_hello({.from = 1, .to = 0, .nonce = random_nonce()}, key);
  const HelloBytes unknown = encode_hello({.from = 2, .to = 1, .nonce = random_nonce()}, key);
  const std::vector<Bytes> all = {text,
                                  {other_job.begin(), other_job.end()},
                                  {forged.begin(), forged.end()},
                                  {misled.begin(), misled.end()},
                                  {unknown.begin(), unknown.end()}};
  std::size_t dropped = 0;
  for (const Bytes& bytes : all) {
    const base::Descriptor socket = connect_to(listening_at(world->at(1)));
    ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    const std::string expected = std::to_string(++dropped) + " foreign connections dropped";
    step_until([&] { return world->at(1).trouble() == expected; });
    EXPECT_EQ(all_received(socket), "");
  }
  EXPECT_EQ(world->at(1).failures(), 0U);
  // It goes on for the others.
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(1000, 1), 0, 4);
  wait(1, 0, 4);
}

// A recorded Hello gets a Challenge, which the replaying process cannot answer.
TEST_F(TcpTest, ARepeatedHelloDoesNotBecomeAStream) {
  UNISONO_MAKE_WORLD(2);
  const HelloBytes hello =
      encode_hello({.from = 0, .to = 1, .nonce = random_nonce()}, wire::key_of("test"));
  const base::Descriptor socket = connect_to(listening_at(world->at(1)));
  ASSERT_EQ(send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(hello.size()));
  const StreamProof wrong{};
  ASSERT_EQ(send(socket.get(), wrong.data(), wrong.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(wrong.size()));
  step_until([&] { return world->at(1).trouble() == "1 foreign connections dropped"; });
  EXPECT_EQ(all_received(socket).size(), kChallengeBytes);
}

TEST_F(TcpTest, SilentConnectionsMakeRoom) {
  UNISONO_MAKE_WORLD(2);
  constexpr std::size_t kBound = 2 + 64;
  std::vector<base::Descriptor> silent;
  for (std::size_t i = 0; i < kBound + 10; ++i) {
    silent.push_back(connect_to(listening_at(world->at(1))));
    world->step();
  }
  step_until([&] { return world->at(1).trouble() == "10 foreign connections dropped"; });
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(1000, 1), 0, 4);
  wait(1, 0, 4);
}

// ---- connections that are not made, and that break ---------------------------------------------

TEST_F(TcpTest, ARefusedConnectionLeavesMessagesToOthers) {
  UNISONO_MAKE_WORLD(2);
  std::uint16_t closed = 0;
  {
    auto listener = listen_at(*parse_ip("127.0.0.1"));
    ASSERT_TRUE(listener.ok());
    closed = endpoint_of_socket(*listener)->port;
  }
  ASSERT_TRUE(world->at(0).meet(1, card_with_port(world->at(1).card(), closed)).ok());
  EXPECT_FALSE(world->at(0).accepts_message(1));
  step_until([&] { return world->at(0).trouble() == "1 connections could not be made"; });
  EXPECT_FALSE(world->at(0).accepts_message(1));  // not at once again
  EXPECT_EQ(world->at(0).trouble(), "1 connections could not be made");
  EXPECT_EQ(world->at(0).failures(), 0U);
  EXPECT_EQ(world->at(0).under_way(), 0U);
}

// The connection waits meanwhile, and nothing else of the rank ends that would make it look again.
TEST_F(TcpTest, ARankWithoutDescriptorsTakesStreamsOnceThereAreSome) {
  UNISONO_MAKE_WORLD(2);
  EXPECT_FALSE(world->at(0).accepts_message(1));  // its connection has begun
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto is_acceptable = [&] {
    pollfd ended{.fd = world->at(1).descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&ended, 1, 0) != 0;
  };
  while (!is_acceptable()) sched_yield();
  world->at(1).may_sleep();
  world->at(1).poll({});
  EXPECT_FALSE(is_acceptable()) << "its descriptor wakes nobody meanwhile";
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("no descriptors for more streams"),
            std::string::npos);
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(1000, 1), 0, 4);
  wait(1, 0, 4);
  EXPECT_EQ(world->at(0).trouble(), "");
}

// Another process has taken the port of a rank, and answers.
TEST_F(TcpTest, AListenerWithoutTheKeyGetsNoMessage) {
  UNISONO_MAKE_WORLD(2);
  auto listener = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(listener.ok());
  const std::uint16_t port = endpoint_of_socket(*listener)->port;
  ASSERT_TRUE(world->at(0).meet(1, card_with_port(world->at(1).card(), port)).ok());
  EXPECT_FALSE(world->at(0).accepts_message(1));
  base::Descriptor there;
  step_until([&] {
    there.reset(accept(listener->get(), nullptr, nullptr));
    return there.valid();
  });
  const Bytes answer(kChallengeBytes, std::byte{5});
  ASSERT_EQ(send(there.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(answer.size()));
  step_until([&] { return world->at(0).trouble() == "1 connections could not be made"; });
  EXPECT_FALSE(world->at(0).accepts_message(1));
  EXPECT_EQ(all_received(there).size(), kHelloBytes);  // and nothing else
}

// Another rank has the key, and a later version.
TEST_F(TcpTest, ARankDoesNotGiveUpItsTags) {
  UNISONO_MAKE_WORLD(2);
  auto listener = listen_at(*parse_ip("127.0.0.1"));
  ASSERT_TRUE(listener.ok());
  const std::uint16_t port = endpoint_of_socket(*listener)->port;
  ASSERT_TRUE(world->at(0).meet(1, card_with_port(world->at(1).card(), port)).ok());
  EXPECT_FALSE(world->at(0).accepts_message(1));
  base::Descriptor there;
  step_until([&] {
    there.reset(accept(listener->get(), nullptr, nullptr));
    return there.valid();
  });
  HelloBytes hello{};
  step_until([&] {
    return recv(there.get(), hello.data(), hello.size(), MSG_DONTWAIT) ==
           static_cast<ssize_t>(hello.size());
  });
  const ChallengeBytes challenge = encode_challenge(
      {.nonce = random_nonce(), .tags = TagKind::none}, hello, wire::key_of("test"));
  ASSERT_EQ(send(there.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(challenge.size()));
  step_until([&] { return world->at(0).trouble() == "1 connections could not be made"; });
  EXPECT_FALSE(world->at(0).accepts_message(1));
}

TEST_F(TcpTest, RanksOfDifferentKeysDoNotConnect) {
  const wire::Key other = wire::key_of("other");
  UNISONO_MAKE_WORLD(2, Family::v4, &other);
  EXPECT_FALSE(world->at(0).accepts_message(1));
  step_until([&] { return !world->at(0).trouble().empty() && !world->at(1).trouble().empty(); });
  EXPECT_EQ(world->at(0).trouble(), "1 connections could not be made");
  EXPECT_EQ(world->at(1).trouble(), "1 foreign connections dropped");
}

// Those of this process that lead to, or have come to, that listener.
std::vector<int> sockets_at(const Endpoint& listener, bool accepted) {
  std::vector<int> found;
  for (int fd = 3; fd < 4096; ++fd) {
    sockaddr_storage local{};
    sockaddr_storage remote{};
    socklen_t local_length = sizeof local;
    socklen_t remote_length = sizeof remote;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_length) != 0) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_length) != 0) continue;
    if (endpoint_of(accepted ? local : remote) == listener) found.push_back(fd);
  }
  return found;
}

TEST_F(TcpTest, AConnectionCutBetweenMessagesIsMadeAgain) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(100'000, 1), 0, 1);
  wait(1, 0, 1);
  step_until([&] { return world->at(0).under_way() == 0; });
  const auto accepted = sockets_at(listening_at(world->at(1)), true);
  ASSERT_EQ(accepted.size(), 1U);
  ASSERT_EQ(shutdown(accepted.front(), SHUT_RDWR), 0);
  step_until([&] { return !world->at(0).accepts_message(1); });
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(100'000, 2), 0, 2);
  wait(1, 0, 2);
  EXPECT_EQ(world->at(0).failures(), 0U);
  EXPECT_EQ(world->at(1).failures(), 0U);
}

// A rank that has not polled since finds out before it sends.
TEST_F(TcpTest, AMessageBeginsOnNoConnectionThatHasEndedLongAgo) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(100'000, 1), 0, 1);
  wait(1, 0, 1);
  step_until([&] { return world->at(0).under_way() == 0; });
  const auto accepted = sockets_at(listening_at(world->at(1)), true);
  ASSERT_EQ(accepted.size(), 1U);
  ASSERT_EQ(shutdown(accepted.front(), SHUT_RDWR), 0);
  while (world->at(0).accepts_message(1)) std::this_thread::yield();
  EXPECT_EQ(world->at(0).failures(), 0U);
}

// A child that the program has forked has copies of all sockets. A stream that has ended must not
// wake its rank for ever because of them.
TEST_F(TcpTest, AStreamThatHasEndedIsSilentThoughAChildHasItsSocket) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  world->write(0, 1, 0, random_bytes(100'000, 1), 0, 1);
  wait(1, 0, 1);
  step_until([&] { return world->at(0).under_way() == 0; });
  std::vector<base::Descriptor> copies;
  for (const bool is_accepted : {true, false}) {
    for (const int socket : sockets_at(listening_at(world->at(1)), is_accepted)) {
      copies.emplace_back(dup(socket));
    }
  }
  ASSERT_EQ(copies.size(), 2U);
  ASSERT_EQ(shutdown(copies.front().get(), SHUT_RDWR), 0);
  step_until([&] { return !world->at(0).accepts_message(1); });
  for (int i = 0; i < 100; ++i) world->step();
  for (const int rank : {0, 1}) {
    pollfd one{.fd = world->at(rank).descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&one, 1, 0), 0) << rank;
  }
}

TEST_F(TcpTest, AConnectionCutAmidAMessageIsAFailureOnBothSides) {
  UNISONO_MAKE_WORLD(3);
  world->connect(0, 1);
  world->connect(0, 2);
  world->write(0, 1, 0, random_bytes(100'000, 1), 0, 0);  // its flag does not come
  step_until([&] { return world->at(0).under_way() == 0; });
  for (int i = 0; i < 100; ++i) world->step();
  const auto sending = sockets_at(listening_at(world->at(1)), false);
  ASSERT_EQ(sending.size(), 1U);
  ASSERT_EQ(shutdown(sending.front(), SHUT_RDWR), 0);
  step_until([&] { return world->at(0).failures() == 1 && world->at(1).failures() == 1; });
  EXPECT_NE(world->at(0).error_of(1).find("the stream to rank 1 (127.0.0.1:"), std::string::npos)
      << world->at(0).error_of(1);
  EXPECT_NE(world->at(1).error_of(0).find("rank 0: its stream ended amid a message"),
            std::string::npos)
      << world->at(1).error_of(0);
  EXPECT_FALSE(world->at(0).accepts_message(1));
  world->write(0, 1, 0, {}, 0, 3);  // nothing happens
  EXPECT_EQ(world->at(0).under_way(), 0U);
  // Other ranks are not concerned.
  world->write(0, 2, 0, random_bytes(1000, 1), 0, 5);
  wait(2, 0, 5);
  EXPECT_EQ(world->value(1, 0), 0U);
}

TEST_F(TcpTest, ARankThatDiesWithMessagesUnderWayIsAFailure) {
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  for (std::uint64_t turn = 1; turn < 4; ++turn) {
    world->write(0, 1, 0, random_bytes(20'000'000, turn), 0, turn);
  }
  world->all[1].reset();
  step_until([&] { return world->at(0).failures() == 1; });
  EXPECT_NE(world->at(0).error_of(1), "");
  EXPECT_EQ(world->at(0).under_way(), 0U);
}

TEST_F(TcpTest, AForgottenRankKeepsNobody) {
  // Made before the first write: the kernel ends a connection from which nobody reads for long.
  const Bytes bytes = random_bytes(20'000'000, 1);
  UNISONO_MAKE_WORLD(2);
  world->connect(0, 1);
  for (std::uint64_t turn = 1; turn < 4; ++turn) world->write(0, 1, 0, bytes, 0, turn);
  EXPECT_EQ(world->at(0).under_way(), 1U);
  world->at(0).forget(1);
  EXPECT_EQ(world->at(0).under_way(), 0U);
  EXPECT_FALSE(world->at(0).accepts_message(1));
  world->write(0, 1, 0, {}, 0, 3);
  EXPECT_EQ(world->at(0).moved(1), 0U);
}

// ---- bytes that were changed on the way --------------------------------------------------------

// Rank 0 connects to a process in between, which passes everything on and changes what it is told.
class TcpBetweenTest : public TcpTest {
 protected:
  void begin(int without_tags) {
    make(2, Family::v4, nullptr, without_tags);
    if (world == nullptr) return;
    auto listener = listen_at(*parse_ip("127.0.0.1"));
    ASSERT_TRUE(listener.ok());
    const std::uint16_t port = endpoint_of_socket(*listener)->port;
    ASSERT_TRUE(world->at(0).meet(1, card_with_port(world->at(1).card(), port)).ok());
    EXPECT_FALSE(world->at(0).accepts_message(1));
    step_until([&] {
      one_.reset(accept(listener->get(), nullptr, nullptr));
      return one_.valid();
    });
    other_ = connect_to(listening_at(world->at(1)));
    while (!world->at(0).accepts_message(1)) pass();
  }
  static void pass(const base::Descriptor& from, const base::Descriptor& to, std::size_t& passed,
                   std::size_t change_at) {
    std::array<std::byte, 4096> some;
    const ssize_t got = recv(from.get(), some.data(), some.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    const auto count = static_cast<std::size_t>(got);
    if (change_at >= passed && change_at < passed + count) {
      some[change_at - passed] ^= std::byte{0x40};
    }
    passed += count;
    EXPECT_EQ(send(to.get(), some.data(), count, MSG_NOSIGNAL), got);
  }
  void pass() {
    pass(one_, other_, passed_, change_at_);
    pass(other_, one_, passed_back_, ~std::size_t{0});
    world->step();
  }

  base::Descriptor one_, other_;
  std::size_t passed_ = 0;
  std::size_t passed_back_ = 0;
  std::size_t change_at_ = ~std::size_t{0};
};

constexpr std::size_t kBeforeFrames = kHelloBytes + kAnswerBytes;

TEST_F(TcpBetweenTest, WhatIsPassedOnArrives) {
  begin(0);
  if (world == nullptr) return;
  const Bytes sent = random_bytes(300'000, 1);
  world->write(0, 1, 0, sent, 0, 8);
  while (world->value(1, 0) != 8) pass();
  EXPECT_TRUE(is_there(1, 0, sent));
}

TEST_F(TcpBetweenTest, AChangedHeaderWritesNothing) {
  begin(0);
  if (world == nullptr) return;
  change_at_ = kBeforeFrames + 2;  // the place
  world->write(0, 1, 4096, random_bytes(1000, 1), 0, 8);
  while (world->at(1).failures() == 0) pass();
  EXPECT_NE(world->at(1).error_of(0).find("a header on its stream is damaged"), std::string::npos);
  EXPECT_TRUE(std::all_of(world->region(1), world->region(1) + 1'000'000,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(world->value(1, 0), 0U);
}

TEST_F(TcpBetweenTest, AChangedPayloadRaisesNoFlag) {
  begin(0);
  if (world == nullptr) return;
  change_at_ = kBeforeFrames + kFrameHeaderBytes + 500;
  world->write(0, 1, 4096, random_bytes(1000, 1), 0, 8);
  while (world->at(1).failures() == 0) pass();
  EXPECT_NE(world->at(1).error_of(0).find("a payload on its stream is damaged"), std::string::npos);
  EXPECT_EQ(world->value(1, 0), 0U);
  EXPECT_EQ(world->at(1).flags_raised(), 0U);
}

// A user who turns tags off trusts the network for payloads.
TEST_F(TcpBetweenTest, WithoutTagsAChangedPayloadIsNotNoticed) {
  begin(2);
  if (world == nullptr) return;
  change_at_ = kBeforeFrames + kFrameHeaderBytes + 500;
  Bytes sent = random_bytes(300'000, 1);
  world->write(0, 1, 4096, sent, 0, 8);
  while (world->value(1, 0) != 8) pass();
  sent[500] ^= std::byte{0x40};
  EXPECT_TRUE(is_there(1, 4096, sent));
}

TEST_F(TcpBetweenTest, WithoutTagsAChangedHeaderWritesNothing) {
  begin(2);
  if (world == nullptr) return;
  change_at_ = kBeforeFrames + 2;  // the place
  world->write(0, 1, 4096, random_bytes(1000, 1), 0, 8);
  while (world->at(1).failures() == 0) pass();
  EXPECT_NE(world->at(1).error_of(0).find("a header on its stream is damaged"), std::string::npos);
  EXPECT_EQ(world->value(1, 0), 0U);
}

// Rank 1 has them on.
TEST_F(TcpBetweenTest, OneRankThatWantsTagsIsEnough) {
  begin(1);
  if (world == nullptr) return;
  change_at_ = kBeforeFrames + kFrameHeaderBytes + 500;
  world->write(0, 1, 4096, random_bytes(1000, 1), 0, 8);
  while (world->at(1).failures() == 0) pass();
  EXPECT_NE(world->at(1).error_of(0).find("a payload on its stream is damaged"), std::string::npos);
  EXPECT_EQ(world->value(1, 0), 0U);
}

}  // namespace
}  // namespace unisono::transport::tcp_test

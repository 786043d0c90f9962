// SPDX-License-Identifier: BSD-3-Clause
// bootstrap on real networks: every rank is a process on one of several hosts, and knows an address
// and a key only. On one host: test/unit/bootstrap/hosts_test.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "harness/hosts.hpp"
#include "transport/datagrams.hpp"

namespace unisono::bootstrap_test {
namespace {

using base::Code;
using base::Result;
using bootstrap::JobDescription;
using bootstrap::JobInfo;
using harness::HostProcess;
using harness::Line;
using harness::TestHosts;

constexpr const char* kKey = "the key of this test job";
constexpr const char* kPatient = "60s";
constexpr int kHosts = 3;
constexpr int kPerHost = 2;
constexpr int kRanks = kHosts * kPerHost;

// Ranks are dealt to the hosts in turn, so that the ranks of a host are not neighbours.
int host_of(int rank) { return rank % kHosts; }

JobDescription job_of(int rank, const std::string& rendezvous = "10.77.0.1") {
  JobDescription job;
  job.rank = rank;
  job.ranks = kRanks;
  job.address = *bootstrap::parse_address("tcp:" + rendezvous + ":7000");
  job.address_given = true;
  job.key = kKey;
  return job;
}

base::Settings settings_with(const std::string& timeout, const std::string& shared_limit = "1M") {
  auto settings = base::Settings::from(
      {{"UNISONO_START_TIMEOUT", timeout}, {"UNISONO_SHARED_LIMIT", shared_limit}});
  EXPECT_TRUE(settings.ok());
  return *settings;
}

// Each rank in a process on its host.
std::vector<HostProcess> start_ranks(const TestHosts& hosts, const std::vector<int>& ranks,
                                     const std::function<void(int, const Line&)>& body) {
  std::vector<HostProcess> processes;
  for (const int rank : ranks) {
    processes.push_back(
        hosts.start(host_of(rank), [rank, &body](const Line& line) { body(rank, line); }));
  }
  return processes;
}

std::vector<int> all_ranks() {
  std::vector<int> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(rank);
  return ranks;
}

// In the bodies: waits for the test to let all ranks go on.
void pass_barrier(const Line& line) {
  line.say("here");
  EXPECT_EQ(line.hear(), "go");
}

void lead_barrier(const std::vector<HostProcess>& processes) {
  for (const HostProcess& each : processes) EXPECT_EQ(each.line().hear(), "here");
  for (const HostProcess& each : processes) each.line().say("go");
}

void expect_error(const Result<JobInfo>& info, Code code, const std::string& part) {
  ASSERT_FALSE(info.ok()) << part;
  EXPECT_EQ(info.error().code, code) << info.error().message;
  EXPECT_NE(info.error().message.find(part), std::string::npos) << info.error().message;
}

void expect_places(const JobInfo& info) {
  EXPECT_EQ(info.ranks, kRanks);
  EXPECT_EQ(info.hosts.hosts(), kHosts);
  ASSERT_EQ(info.members.size(), static_cast<std::size_t>(kRanks));
  for (int rank = 0; rank < kRanks; ++rank) {
    const bootstrap::RankLocation& member = info.members[static_cast<std::size_t>(rank)];
    EXPECT_EQ(info.hosts.of(rank), host_of(rank)) << rank;
    EXPECT_EQ(member.pid != 0, host_of(rank) == host_of(info.rank)) << rank;
  }
  EXPECT_EQ(info.members[static_cast<std::size_t>(info.rank)].pid, getpid());
  ASSERT_NE(info.connections, nullptr);
  EXPECT_TRUE(info.connections->is_connected());
}

int count_connections(const JobInfo& info, int family) {
  int count = 0;
  for (const base::Descriptor& each : info.connections->accepted()) {
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    EXPECT_EQ(getsockname(each.get(), reinterpret_cast<sockaddr*>(&own), &length), 0);
    if (own.ss_family == family) ++count;
  }
  return count;
}

// Rank 0 has one connection to each other host and to each rank of its own. A relay has one to each
// other rank of its host.
void expect_connections(const JobInfo& info, const Line& line) {
  info.connections->end_start();
  line.say(std::to_string(info.connections->accepted().size()));
  if (info.rank == 0) {
    EXPECT_EQ(count_connections(info, AF_INET), kHosts - 1);
    EXPECT_EQ(count_connections(info, AF_UNIX), kPerHost);
  } else {
    EXPECT_EQ(count_connections(info, AF_INET), 0);
  }
}

// The ranks of a host can read what each of them writes; ranks of other hosts cannot.
void expect_memory_of_host(const JobInfo& info, const Line& line) {
  constexpr std::size_t kBytes = 8 << 20;  // the largest wish, which only rank 4 had
  ASSERT_EQ(info.memory_bytes, kBytes);
  void* const mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, info.memory.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* words = static_cast<std::atomic<int>*>(mapped);
  words[info.rank].store(100 + info.rank);
  pass_barrier(line);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(words[rank].load(), host_of(rank) == host_of(info.rank) ? 100 + rank : 0) << rank;
  }
  EXPECT_EQ(munmap(mapped, kBytes), 0);
}

// One datagram of the greatest length from each rank to each other, with contents of its own.
class DatagramExchange {
 public:
  explicit DatagramExchange(const JobInfo& info) : info_(info), datagrams_(*info.datagrams) {}

  void send_to_all() const {
    for (int target = 0; target < kRanks; ++target) {
      if (target == info_.rank) continue;
      const std::vector<std::byte> text = text_of(info_.rank, target);
      const std::array outgoing{transport::Outgoing{.target = target, .body = text}};
      ASSERT_EQ(datagrams_.send(outgoing), 1U) << datagrams_.last_error();
    }
  }
  void receive_from_all() const {
    std::set<int> heard;
    while (heard.size() + 1 < kRanks) {
      std::array<transport::Incoming, 8> incoming;
      const std::size_t count = datagrams_.receive(incoming);
      for (std::size_t i = 0; i < count; ++i) heard.insert(sender_of(incoming[i].bytes));
      if (count != 0) continue;
      pollfd waiting{datagrams_.descriptor(), POLLIN, 0};
      ASSERT_EQ(poll(&waiting, 1, -1), 1);
    }
    EXPECT_FALSE(heard.contains(info_.rank));
  }

 private:
  std::vector<std::byte> text_of(int source, int target) const {
    std::vector<std::byte> text(datagrams_.limits().max_payload, static_cast<std::byte>(source));
    text.back() = static_cast<std::byte>(target);
    return text;
  }
  int sender_of(std::span<const std::byte> bytes) const {
    const int source = static_cast<int>(bytes.front());
    EXPECT_TRUE(std::ranges::equal(bytes, text_of(source, info_.rank))) << source;
    return source;
  }

  const JobInfo& info_;
  transport::Datagrams& datagrams_;
};

std::string key_text(const JobInfo& info) {
  return fmt::format("{:x} {:x}", info.key.low, info.key.high);
}

TEST(NetBootstrap, RanksOfThreeHostsJoin) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto body = [](int rank, const Line& line) {
    const auto settings = settings_with(kPatient, rank == 4 ? "8M" : "1M");
    const auto info = bootstrap::join(job_of(rank), settings);
    line.say(info.ok() ? key_text(*info) : info.error().message);
    ASSERT_TRUE(info.ok()) << info.error().message;
    expect_places(*info);
    expect_connections(*info, line);
    expect_memory_of_host(*info, line);
    ASSERT_NE(info->datagrams, nullptr);
    EXPECT_EQ(info->datagrams->limits().max_payload, 1500U - 28);
    const DatagramExchange datagrams(*info);
    datagrams.send_to_all();
    datagrams.receive_from_all();
    pass_barrier(line);  // no socket closes before all have heard
  };
  auto processes = start_ranks(hosts, all_ranks(), body);
  std::set<std::string> keys;
  for (const HostProcess& each : processes) keys.insert(each.line().hear());
  EXPECT_EQ(keys.size(), 1U) << fmt::format("{}", fmt::join(keys, "\n"));
  int connections = 0;
  for (const HostProcess& each : processes) connections += std::stoi(each.line().hear());
  EXPECT_EQ(connections, kRanks) << "one for each rank, wherever its other end is";
  lead_barrier(processes);
  lead_barrier(processes);
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

// Also with a loopback address, which other hosts do not reach.
TEST(NetBootstrap, OnOneHostThereAreNoDatagrams) {
  const TestHosts hosts = TestHosts::up(1);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  for (const std::string rendezvous : {"10.77.0.1", "127.0.0.1"}) {
    const auto body = [&rendezvous](int rank) {
      return [&rendezvous, rank](const Line&) {
        const auto info = bootstrap::join(job_of(rank, rendezvous), settings_with(kPatient));
        ASSERT_TRUE(info.ok()) << info.error().message;
        EXPECT_EQ(info->hosts.hosts(), 1);
        EXPECT_EQ(info->datagrams, nullptr);
        for (const bootstrap::RankLocation& member : info->members) EXPECT_NE(member.pid, 0);
      };
    };
    std::vector<HostProcess> processes;
    for (const int rank : all_ranks()) processes.push_back(hosts.start(0, body(rank)));
    for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
  }
}

TEST(NetBootstrap, AWrongKeyIsRefusedAndDoesNotDisturb) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto honest = [](int rank, const Line&) {
    const auto info = bootstrap::join(job_of(rank), settings_with(kPatient));
    EXPECT_TRUE(info.ok()) << info.error().message;
  };
  auto processes = start_ranks(hosts, {0, 1, 2, 3, 4}, honest);
  EXPECT_EQ(hosts.run(2,
                      [](const Line&) {
                        JobDescription other = job_of(5);
                        other.key = "another key of some length";
                        expect_error(bootstrap::join(other, settings_with("1s")), Code::argument,
                                     "UNISONO_JOB_KEY must be the same");
                      }),
            0);
  EXPECT_EQ(hosts.run(2, [&honest](const Line& line) { honest(5, line); }), 0);
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

TEST(NetBootstrap, HostsThatWouldLayOutMemoryDifferentlyAreNamed) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto body = [](int rank, const Line&) {
    JobDescription job = job_of(rank);
    job.memory_layout = rank == 4 ? 2 : 1;
    expect_error(bootstrap::join(job, settings_with(kPatient)), Code::argument,
                 "ranks 0 and 4 would lay out their memory differently: UNISONO_BUFFERS");
  };
  auto processes = start_ranks(hosts, all_ranks(), body);
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

TEST(NetBootstrap, ARankThatIsMissingOnAnotherHostIsNamedOnAll) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto body = [](int rank, const Line& line) {
    pass_barrier(line);  // the time does not include the start of processes
    expect_error(bootstrap::join(job_of(rank), settings_with("5s")), Code::timeout,
                 "1 of 6 ranks did not join within 5s (UNISONO_START_TIMEOUT): missing rank 4");
  };
  auto processes = start_ranks(hosts, {0, 1, 2, 3, 5}, body);
  lead_barrier(processes);
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

// A rank with messages made by the test.
struct ByHand {
  std::optional<bootstrap::MessageStream> stream;
  bootstrap::Nonce challenge{};
};

void send_signed(ByHand& rank, const bootstrap::Message& message) {
  std::string frame = bootstrap::encode(message);
  bootstrap::sign(frame, wire::key_of(kKey), rank.challenge);
  ASSERT_TRUE(rank.stream->send(frame).ok());
}

void send_hello_by_hand(int rank, std::uint64_t relay_socket, ByHand& hand) {
  const JobDescription job = job_of(rank);
  while (!hand.stream) {
    auto attempt = bootstrap::try_connect(job.address, base::now_ns() + base::kSecond);
    ASSERT_TRUE(attempt.ok()) << attempt.error().message;
    if (*attempt) hand.stream.emplace(std::move(**attempt));
  }
  const auto challenge = hand.stream->receive(base::now_ns() + 60 * base::kSecond);
  ASSERT_TRUE(challenge.ok() && challenge->has_value());
  hand.challenge = std::get<bootstrap::Challenge>((*challenge)->message).nonce;
  bootstrap::Hello hello;
  hello.nonce = *bootstrap::random_nonce();
  hello.host = *bootstrap::own_host_id();
  hello.rank = static_cast<std::uint32_t>(rank);
  hello.ranks = kRanks;
  hello.memory_bytes = 1 << 20;
  hello.endpoint = *transport::parse_endpoint("10.77.0.2:9");
  hello.max_payload = 1000;
  hello.relay_socket = relay_socket;
  hello.kernel = *bootstrap::own_kernel();
  send_signed(hand, hello);
}

// Like a launcher on host 0. Reports when rank 1 has joined, and when all ranks but 3 and 5 have.
void serve_until_death(const Line& line) {
  bootstrap::Rendezvous::Options options;
  options.ranks = kRanks;
  options.address = job_of(0).address;
  options.key = kKey;
  options.memory_bytes = 1 << 20;
  options.timeout_ns = 60 * base::kSecond;
  const auto server = bootstrap::Rendezvous::open(options);
  ASSERT_TRUE(server.ok()) << server.error().message;
  line.say("listening");
  const auto await = [&](const std::vector<int>& ranks) {
    const auto has_joined = [&](int rank) { return (*server)->has_joined(rank); };
    while (!std::ranges::all_of(ranks, has_joined)) {
      pollfd waiting{(*server)->descriptor(), POLLIN, 0};
      poll(&waiting, 1, -1);
      (*server)->step();
    }
  };
  await({1});
  line.say("the relay has joined");
  await({0, 1, 2, 4});
  line.say("all have joined");
  EXPECT_FALSE((*server)->serve(base::now_ns() + 60 * base::kSecond).ok());
}

// Rank 1 is the relay of host 1, through which rank 4 joins. `heard`: the error of each other rank.
void expect_death(const TestHosts& hosts, int victim,
                  const std::function<std::string(int)>& heard) {
  HostProcess server = hosts.start(0, serve_until_death);
  ASSERT_EQ(server.line().hear(), "listening");
  const auto body = [&](int rank, const Line&) {
    expect_error(bootstrap::join(job_of(rank), settings_with(kPatient)), Code::rank_lost,
                 heard(rank));
  };
  auto processes = start_ranks(hosts, {1}, body);
  EXPECT_EQ(server.line().hear(), "the relay has joined");
  for (HostProcess& each : start_ranks(hosts, {0, 2, 4}, body))
    processes.push_back(std::move(each));
  EXPECT_EQ(server.line().hear(), "all have joined");
  HostProcess& dying = processes[victim == 1 ? 0 : 3];
  kill(dying.pid(), SIGKILL);  // and with it the rank, its child
  EXPECT_EQ(dying.wait(), 128 + SIGKILL);
  EXPECT_EQ(server.wait(), 0);
  for (HostProcess& each : processes) {
    if (&each == &dying) continue;
    EXPECT_EQ(each.wait(), 0);
  }
}

TEST(NetBootstrap, TheDeathOfARelayIsToldToAll) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  expect_death(hosts, 1, [](int rank) -> std::string {
    if (rank == 4) return "served by rank 1, ended before all ranks had joined";
    return "rank 1 (another host, 10.77.0.2) ended before all ranks had joined";
  });
}

TEST(NetBootstrap, TheDeathOfARelayedRankIsToldToAll) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  expect_death(hosts, 4, [](int) {
    return "rank 4 (another host, 10.77.0.2) ended before all ranks had joined";
  });
}

// As rank 1, relays the Hello of rank 4 and gets the Welcome, but does not pass it on.
void be_a_relay_and_die(const Line& line) {
  auto acceptor = bootstrap::Acceptor::open(wire::key_of(kKey), kRanks);
  ASSERT_TRUE(acceptor.ok());
  const std::uint64_t relay_socket = *bootstrap::random_number();
  bootstrap::Address address = bootstrap::relay_address(relay_socket);
  ASSERT_TRUE((*acceptor)->listen(address).ok());
  ByHand to_rendezvous;
  ASSERT_NO_FATAL_FAILURE(send_hello_by_hand(1, relay_socket, to_rendezvous));
  line.say("here");
  std::vector<bootstrap::Acceptor::Event> events;
  while (events.empty()) {
    pollfd waiting{(*acceptor)->descriptor(), POLLIN, 0};
    poll(&waiting, 1, -1);
    events = *(*acceptor)->step();
  }
  (*acceptor)->admit(events[0].connection);
  send_signed(to_rendezvous, *events[0].message);
  const auto answer = to_rendezvous.stream->receive(base::now_ns() + 60 * base::kSecond);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_TRUE(std::holds_alternative<bootstrap::Welcome>((*answer)->message));
  raise(SIGKILL);
}

TEST(NetBootstrap, ARelayThatDiesDuringTheStartIsNamedOnItsHost) {
  const TestHosts hosts = TestHosts::up(kHosts);
  if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
  const auto body = [](int rank, const Line&) {
    const auto info = bootstrap::join(job_of(rank), settings_with(kPatient));
    if (rank == 4) {
      expect_error(info, Code::rank_lost, "served by rank 1, ended before all ranks had joined");
    } else {
      EXPECT_TRUE(info.ok()) << info.error().message;  // the job detects its death later
    }
  };
  auto processes = start_ranks(hosts, {0, 2, 3, 5}, body);
  HostProcess relay = hosts.start(1, be_a_relay_and_die);
  EXPECT_EQ(relay.line().hear(), "here");
  for (HostProcess& each : start_ranks(hosts, {4}, body)) processes.push_back(std::move(each));
  EXPECT_EQ(relay.wait(), 128 + SIGKILL);
  for (HostProcess& each : processes) EXPECT_EQ(each.wait(), 0);
}

}  // namespace
}  // namespace unisono::bootstrap_test

// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/rendezvous/host_relay: real ranks join a rendezvous of the test's own that claims to be
// on another host; the first one relays the others. With real networks:
// test/net/bootstrap_test.cpp.
#include "bootstrap/rendezvous/host_relay.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/rendezvous/acceptor.hpp"
#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"
#include "transport/datagrams.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::host_relay_test {
namespace {

using base::Code;
using base::kSecond;
using base::Result;
using test::expect_error;
using test::expect_refused;
using test::hello_from;
using test::host_of;
using test::kKey;
using test::RawRank;
using test::settings_with;

// A rendezvous that claims to be on another host, with rank 0; the other ranks are on this one. It
// keeps the first as the relay and redirects the others to it. Then the test decides.
class FarRendezvous {
 public:
  using ConnectionId = Acceptor::ConnectionId;
  enum class Then { welcome, nothing };

  explicit FarRendezvous(std::uint32_t ranks, Then then = Then::welcome)
      : ranks_(ranks), then_(then), address_(*parse_address("tcp:127.0.0.1:0")) {
    acceptor_ = std::move(*Acceptor::open(wire::key_of(kKey), static_cast<int>(ranks)));
    EXPECT_TRUE(acceptor_->listen(address_).ok());
    descriptor_ = acceptor_->descriptor();
    hellos_.resize(ranks);
    hellos_[0] = hello_from(host_of('x'), 0, ranks);
  }
  ~FarRendezvous() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }
  FarRendezvous(const FarRendezvous&) = delete;
  FarRendezvous& operator=(const FarRendezvous&) = delete;

  // Not in the constructor, so that a test can fork before it has threads.
  void start() {
    thread_ = std::thread([this] { serve(); });
  }

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

  // Each of these waits.
  Hello await_hello(std::uint32_t rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hellos_[rank].has_value(); });
    return *hellos_[rank];
  }
  Withdrawal await_withdrawal() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !withdrawals_.empty(); });
    return withdrawals_.front();
  }
  bool has_withdrawal() {
    const std::lock_guard lock(mutex_);
    return !withdrawals_.empty();
  }
  // Before start().
  void set_rank_zero_serves(bool serves) { rank_zero_serves_ = serves; }
  void await_end_of_relay() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return relay_has_ended_; });
  }
  Address address_of_relay() { return relay_address(await_hello(relay_rank()).relay_socket); }
  std::uint32_t relay_rank() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return relay_ != 0; });
    return relay_rank_;
  }
  void refuse_at_relay(const Refused& refused) {
    std::string frame = encode(refused);
    sign(frame, wire::key_of(kKey), await_hello(relay_rank()).nonce);
    send_to_relay(frame);
  }
  void send_to_relay(const std::string& frame) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(acceptor_->send(relay_, frame));
  }
  void send_welcome() {
    const std::lock_guard lock(mutex_);
    welcome();
  }
  // As if its process had died.
  void disconnect() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    acceptor_.reset();
  }

 private:
  void serve() {
    for (;;) {
      pollfd waiting{descriptor_, POLLIN, 0};
      poll(&waiting, 1, 10);
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      auto events = acceptor_->step();
      ASSERT_TRUE(events.ok()) << events.error().message;
      for (const Acceptor::Event& event : *events) take(event);
      changed_.notify_all();
    }
  }
  void take(const Acceptor::Event& event) {
    if (!event.message) {
      EXPECT_EQ(event.connection, relay_);
      relay_has_ended_ = true;
    } else if (const Hello* hello = std::get_if<Hello>(&*event.message)) {
      take_hello(event.connection, *hello);
    } else {
      withdrawals_.push_back(std::get<Withdrawal>(*event.message));
    }
  }
  void take_hello(ConnectionId connection, const Hello& hello) {
    if (relay_ == 0) {
      relay_ = connection;
      relay_rank_ = hello.rank;
      acceptor_->admit(connection);
    } else if (connection != relay_) {
      std::string frame = encode(Redirect{relay_address(hellos_[relay_rank_]->relay_socket).name,
                                          hello.host, relay_rank_});
      sign(frame, wire::key_of(kKey), hello.nonce);
      acceptor_->send(connection, frame);
      return acceptor_->close(connection);
    }
    if (!hellos_[hello.rank]) hellos_[hello.rank] = hello;
    const bool all =
        std::ranges::all_of(hellos_, [](const auto& each) { return each.has_value(); });
    if (all && then_ == Then::welcome) welcome();
  }
  void welcome() {
    // The ranks here have loopback addresses, which compose_welcome() would refuse.
    Welcome welcome{kMemoryBytes, "far", job_id_, 2, 1000, 0, {}};
    welcome.rank_zero_serves = rank_zero_serves_;
    for (const auto& hello : hellos_) {
      welcome.members.push_back({0, hello->rank == 0 ? 0U : 1U, hello->endpoint});
    }
    std::string frame = encode(welcome);
    sign(frame, wire::key_of(kKey), hellos_[relay_rank_]->nonce);
    EXPECT_TRUE(acceptor_->send(relay_, frame));
  }

  std::uint32_t ranks_;
  Then then_;
  std::uint64_t job_id_ = *random_number();
  Address address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::optional<Hello>> hellos_;  // by rank
  std::vector<Withdrawal> withdrawals_;
  ConnectionId relay_ = 0;
  std::uint32_t relay_rank_ = 0;
  bool relay_has_ended_ = false;
  bool rank_zero_serves_ = false;
  int descriptor_ = -1;  // the acceptor's
  bool stopping_ = false;
  std::thread thread_;
};

// A rank that joins in a thread.
class Joiner {
 public:
  Joiner(const FarRendezvous& server, std::uint32_t rank, const std::string& timeout = "60s")
      : thread_([this, job = server.job(rank), timeout] {
          info_.emplace(join(job, settings_with(timeout)));
        }) {}
  ~Joiner() { end(); }
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;
  const Result<JobInfo>& info() {
    end();
    return *info_;
  }

 private:
  void end() {
    if (thread_.joinable()) thread_.join();
  }

  std::optional<Result<JobInfo>> info_;
  std::thread thread_;
};

// Sends a datagram from one to the other.
void expect_datagram(const JobInfo& from, const JobInfo& to) {
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

TEST(HostRelay, RanksOfOneHostShareItsMemoryAndKnowAllRanks) {
  FarRendezvous server(3);
  server.start();
  const auto joined = test::join_all({server.job(1), server.job(2)}, settings_with("30s"));
  const int relay = static_cast<int>(server.relay_rank());
  for (const auto& info : joined) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->hosts.hosts(), 2);
    EXPECT_EQ(info->memory_bytes, FarRendezvous::kMemoryBytes);
    EXPECT_TRUE(memory::verify_memory(info->memory, FarRendezvous::kMemoryBytes).ok());
    ASSERT_EQ(info->members.size(), 3U);
    EXPECT_EQ(info->members[0].pid, 0);
    EXPECT_EQ(info->hosts.of(0), 0);
    EXPECT_EQ(info->members[0].address, *transport::parse_ip("10.0.0.1"));
    EXPECT_EQ(info->members[1].address, *transport::parse_ip("127.0.0.1"));
    for (const std::size_t rank : {std::size_t{1}, std::size_t{2}}) {
      EXPECT_EQ(info->members[rank].pid, getpid());
      EXPECT_EQ(info->hosts.of(static_cast<int>(rank)), 1);
    }
    EXPECT_TRUE(info->connections->is_connected());
    info->connections->end_start();
    EXPECT_EQ(info->connections->accepted().size(), info->rank == relay ? 1U : 0U);
    ASSERT_NE(info->datagrams, nullptr);
    EXPECT_EQ(info->datagrams->limits().max_payload, 1000U);
    EXPECT_EQ(info->datagrams->rank(), info->rank);
    EXPECT_EQ(info->key.low, packet_key(wire::key_of(kKey), server.job_id()).low);
  }
  ASSERT_EQ(pwrite(joined[0]->memory.get(), "together", 8, 4096), 8);
  std::array<char, 8> read{};
  ASSERT_EQ(pread(joined[1]->memory.get(), read.data(), read.size(), 4096), 8);
  EXPECT_EQ(std::string(read.data(), read.size()), "together");
  expect_datagram(*joined[0], *joined[1]);
  expect_datagram(*joined[1], *joined[0]);
}

TEST(HostRelay, ManyRanksOfOneHostJoinThroughOne) {
  constexpr std::uint32_t kRanks = 60;
  FarRendezvous server(kRanks);
  server.start();
  std::vector<JobDescription> jobs;
  for (std::uint32_t rank = 1; rank < kRanks; ++rank) jobs.push_back(server.job(rank));
  std::size_t accepted = 0;
  for (const auto& info : test::join_all(jobs, settings_with("60s"))) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->members.back().pid, getpid());
    info->connections->end_start();
    accepted += info->connections->accepted().size();
  }
  EXPECT_EQ(accepted, kRanks - 2);
}

TEST(HostRelay, TheRendezvousIsToldOfARankThatEnded) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  const Address relay_socket = server.address_of_relay();
  RawRank relayed(relay_socket, hello_from(*own_host_id(), 2, 3));
  const Hello hello = server.await_hello(2);
  EXPECT_EQ(hello.endpoint, hello_from(*own_host_id(), 2, 3).endpoint);
  relayed.disconnect();
  EXPECT_EQ(server.await_withdrawal(), (Withdrawal{hello.nonce, Withdrawal::Reason::ended}));
  server.refuse_at_relay(Refused{Code::rank_lost, "rank 2 ended", {}});
  expect_error(relay.info(), Code::rank_lost, "rank 2 ended");
}

TEST(HostRelay, ARefusalByTheRendezvousIsToldToAll) {
  FarRendezvous server(4, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  RawRank raw(server.address_of_relay(), hello_from(*own_host_id(), 2, 4));
  Joiner relayed(server, 3);
  server.await_hello(2);
  server.await_hello(3);
  server.refuse_at_relay(Refused{Code::timeout, "missing rank 0", {}});
  expect_refused(raw, Code::timeout, "missing rank 0");
  expect_error(relayed.info(), Code::timeout, "missing rank 0");
  expect_error(relay.info(), Code::timeout, "missing rank 0");
}

TEST(HostRelay, ARefusalOfOneRankKeepsTheOthers) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  const Hello hello = hello_from(*own_host_id(), 2, 3);
  RawRank twin(server.address_of_relay(), hello);
  server.await_hello(2);
  server.refuse_at_relay(Refused{Code::argument, "rank 2 was claimed twice", hello.nonce});
  expect_refused(twin, Code::argument, "rank 2 was claimed twice");
  twin.expect_end();
  Hello other = hello;
  other.nonce = *random_nonce();
  RawRank relayed(server.address_of_relay(), other);
  server.refuse_at_relay(Refused{Code::argument, "of nobody here", *random_nonce()});
  // The relay has sent its Hello once it has sent the next one.
  RawRank late(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  late.disconnect();
  server.await_withdrawal();
  server.send_welcome();
  const auto welcome = relayed.receive<Welcome>();
  EXPECT_EQ(welcome.members[2].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_TRUE(memory::verify_memory(relayed.take_attached(), FarRendezvous::kMemoryBytes).ok());
  EXPECT_TRUE(relay.info().ok());
}

// After the Welcome the relay still serves its ranks, as long as it looks.
template <class Condition>
void step_until(const Result<JobInfo>& info, const Condition& condition) {
  ASSERT_TRUE(info.ok()) << info.error().message;
  while (!condition()) {
    info->connections->step();
    sched_yield();
  }
}

TEST(HostRelay, AFailureOfARankAfterTheWelcomeGoesToTheRendezvous) {
  FarRendezvous server(3);
  server.start();
  Joiner relay(server, 1);
  const Hello hello = hello_from(*own_host_id(), 2, 3);
  RawRank relayed(server.address_of_relay(), hello);
  EXPECT_EQ(relayed.receive<Welcome>().hosts, 2U);
  const Withdrawal withdrawal{hello.nonce, Withdrawal::Reason::failed, Code::system, "no socket"};
  relayed.send(withdrawal);
  step_until(relay.info(), [&] { return server.has_withdrawal(); });
  EXPECT_EQ(server.await_withdrawal(), withdrawal);
}

TEST(HostRelay, AFailureAfterTheWelcomeIsToldToAll) {
  FarRendezvous server(3);
  server.start();
  Joiner relay(server, 1);
  RawRank relayed(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  EXPECT_EQ(relayed.receive<Welcome>().hosts, 2U);
  ASSERT_TRUE(relay.info().ok());
  server.refuse_at_relay(Refused{Code::system, "rank 0 cannot start", {}});
  StartConnections& connections = *relay.info()->connections;
  step_until(relay.info(), [&] { return connections.failure().has_value(); });
  EXPECT_EQ(connections.failure()->code, Code::system);
  EXPECT_EQ(connections.failure()->message, "rank 0 cannot start");
  expect_refused(relayed, Code::system, "rank 0 cannot start");
}

TEST(HostRelay, AFailureOfTheRelayAfterTheWelcomeIsToldToAll) {
  FarRendezvous server(3);
  server.start();
  Joiner relay(server, 1);
  RawRank relayed(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  EXPECT_EQ(relayed.receive<Welcome>().hosts, 2U);
  ASSERT_TRUE(relay.info().ok());
  relay.info()->connections->tell({Code::resources, "no memory"});
  expect_refused(relayed, Code::resources, "rank 1 cannot start: no memory");
  const Withdrawal told = server.await_withdrawal();
  EXPECT_EQ(told.reason, Withdrawal::Reason::failed);
  EXPECT_EQ(told.text, "no memory");
}

// Rank 0 is lost, and not a launcher, which may end its rendezvous when the ranks have met.
TEST(HostRelay, TheEndOfTheRendezvousAfterTheWelcomeIsTheLossOfRankZero) {
  for (const bool rank_zero_serves : {false, true}) {
    FarRendezvous server(2);
    server.set_rank_zero_serves(rank_zero_serves);
    server.start();
    Joiner relay(server, 1);
    ASSERT_TRUE(relay.info().ok());
    StartConnections& connections = *relay.info()->connections;
    EXPECT_TRUE(connections.take_lost().empty());
    server.disconnect();
    step_until(relay.info(), [&] { return connections.has_ended(); });
    EXPECT_EQ(connections.take_lost(), rank_zero_serves ? std::vector<int>{0} : std::vector<int>{});
    EXPECT_FALSE(connections.failure());
  }
}

TEST(HostRelay, ARankThatIsTooLateIsRefused) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  RawRank relayed(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  server.await_hello(2);
  RawRank twin(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  RawRank probe(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  probe.disconnect();
  server.await_withdrawal();
  server.send_welcome();
  EXPECT_EQ(relayed.receive<Welcome>().hosts, 2U);
  expect_refused(twin, Code::state, "is too late: job far has started");
  EXPECT_TRUE(relay.info().ok());
}

TEST(HostRelay, ARankThatOnlyTheRendezvousKnowsIsAnError) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  const Hello hello = server.await_hello(1);
  Welcome welcome{1 << 20, "far", 1, 2, 1000, 0, {{0, 0, hello.endpoint}}};
  welcome.members.resize(3, {0, 1, hello.endpoint});
  std::string frame = encode(welcome);
  sign(frame, wire::key_of(kKey), hello.nonce);
  server.send_to_relay(frame);
  expect_error(relay.info(), Code::state,
               "says that rank 2 is on the host of rank 1, but it has not joined");
}

TEST(HostRelay, ALostRendezvousIsToldToAll) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1);
  RawRank relayed(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  server.await_hello(2);
  server.disconnect();
  expect_refused(relayed, Code::rank_lost, "rank 1 of 3: the rendezvous at tcp:127.0.0.1:");
  expect_error(relay.info(), Code::rank_lost, "ended before all ranks had joined");
}

TEST(HostRelay, ASilentRendezvousIsATimeoutForAll) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner relay(server, 1, "300ms");
  RawRank relayed(server.address_of_relay(), hello_from(*own_host_id(), 2, 3));
  expect_refused(relayed, Code::timeout, "rank 1 of 3: the rendezvous at tcp:127.0.0.1:");
  expect_error(relay.info(), Code::timeout, "gave no answer within 300ms");
}

TEST(HostRelay, APeerWithoutTheKeyIsRejected) {
  FarRendezvous server(3);
  server.start();
  Joiner relay(server, 1);
  const Address relay_socket = server.address_of_relay();
  {
    auto silent = try_connect(relay_socket, base::now_ns() + kSecond);
    ASSERT_TRUE(silent.ok() && silent->has_value());
    MessageStream stream(std::move(**silent));
    ASSERT_TRUE((*stream.receive(base::now_ns() + 30 * kSecond)).has_value());
    std::string unsigned_frame = encode(hello_from(*own_host_id(), 2, 3));
    ASSERT_TRUE(stream.send(unsigned_frame).ok());
    const auto answer = stream.receive(base::now_ns() + 30 * kSecond);
    ASSERT_TRUE(answer.ok() && answer->has_value());
    test::expect_text(std::get<Refused>((*answer)->message), Code::argument, "UNISONO_JOB_KEY");
  }
  Joiner relayed(server, 2);
  EXPECT_TRUE(relayed.info().ok()) << relayed.info().error().message;
  EXPECT_TRUE(relay.info().ok());
}

// Exits with 0, after the body, if it may make a namespace.
pid_t fork_in_pid_namespace(const std::function<void()>& body) {
  const pid_t outer = fork();
  if (outer != 0) return outer;
  if (unshare(CLONE_NEWPID) != 0) _exit(1);
  const pid_t inner = fork();
  if (inner == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(inner, &status, 0);
  _exit(status == 0 ? 0 : 1);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(HostRelay, ARelayThatDiesIsNamedByItsRanks) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  const pid_t relay = fork();
  if (relay == 0) {
    static_cast<void>(join(server.job(1), settings_with("60s")));
    _exit(1);
  }
  server.start();
  EXPECT_EQ(server.relay_rank(), 1U);
  Joiner relayed(server, 2);
  EXPECT_EQ(server.await_hello(2).rank, 2U);
  kill(relay, SIGKILL);
  EXPECT_EQ(exit_code_of(relay), 128 + SIGKILL);
  server.await_end_of_relay();
  expect_error(relayed.info(), Code::rank_lost, "served by rank 1, ended before all ranks");
}

TEST(HostRelay, TheRendezvousIsToldOfARankWithAnUnseenPid) {
  if (exit_code_of(fork_in_pid_namespace([] {})) != 0) {
    GTEST_SKIP() << "this user or this machine may not make pid namespaces";
  }
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  const pid_t relay =
      fork_in_pid_namespace([&] { static_cast<void>(join(server.job(1), settings_with("60s"))); });
  server.start();
  EXPECT_EQ(server.relay_rank(), 1U);
  Joiner relayed(server, 2);
  EXPECT_EQ(server.await_withdrawal(),
            (Withdrawal{server.await_hello(2).nonce, Withdrawal::Reason::unseen_pid}));
  server.refuse_at_relay(Refused{Code::unsupported, "in a pid namespace", {}});
  expect_error(relayed.info(), Code::unsupported, "in a pid namespace");
  EXPECT_EQ(exit_code_of(relay), 0);
}

}  // namespace
}  // namespace unisono::bootstrap::host_relay_test

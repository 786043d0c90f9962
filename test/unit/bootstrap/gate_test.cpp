// SPDX-License-Identifier: BSD-3-Clause
// bootstrap, gates: real ranks come to a rendezvous that says it is elsewhere, which the test
// plays; the first of them lets the others in. With real networks: test/net/bootstrap_test.cpp.
#include "bootstrap/rendezvous/gate.hpp"

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

#include "bootstrap/rendezvous/reception.hpp"
#include "bootstrap/rendezvous/welcome.hpp"
#include "memory/memory_file.hpp"
#include "transport/datagrams.hpp"
#include "unit/bootstrap/raw_rank.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap {
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

// A rendezvous that says it is elsewhere, for a job of which rank 0 is there with it, and the
// others are here. It keeps the first as the gate, sends the others to it, and does for the rest
// what the test says.
class FarRendezvous {
 public:
  using Number = Reception::Number;
  enum class Then { welcome, nothing };

  explicit FarRendezvous(std::uint32_t ranks, Then then = Then::welcome)
      : ranks_(ranks), then_(then), address_(*parse_address("tcp:127.0.0.1:0")) {
    reception_ = std::move(*Reception::open(wire::key_of(kKey), static_cast<int>(ranks)));
    EXPECT_TRUE(reception_->listen(address_).ok());
    descriptor_ = reception_->descriptor();
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

  // Apart from the constructor, so that a test can fork before it has threads.
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

  // These wait.
  Hello await_hello(std::uint32_t rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hellos_[rank].has_value(); });
    return *hellos_[rank];
  }
  Objection await_objection() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !objections_.empty(); });
    return objections_.front();
  }
  void await_end_of_gate() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return gate_has_gone_; });
  }
  Address address_of_gate() { return gate_address(await_hello(gate_rank()).door); }
  std::uint32_t gate_rank() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return gate_ != 0; });
    return gate_rank_;
  }
  void refuse_at_gate(const Refused& refused) {
    std::string frame = encode(refused);
    sign(frame, wire::key_of(kKey), await_hello(gate_rank()).nonce);
    send_to_gate(frame);
  }
  void send_to_gate(const std::string& frame) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(reception_->send(gate_, frame));
  }
  void send_welcome() {
    const std::lock_guard lock(mutex_);
    welcome();
  }
  // As if its process died.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    reception_.reset();
  }

 private:
  void serve() {
    for (;;) {
      pollfd waiting{descriptor_, POLLIN, 0};
      poll(&waiting, 1, 10);
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      auto events = reception_->step();
      ASSERT_TRUE(events.ok()) << events.error().message;
      for (const Reception::Event& event : *events) take(event);
      changed_.notify_all();
    }
  }
  void take(const Reception::Event& event) {
    if (!event.message) {
      EXPECT_EQ(event.visitor, gate_);
      gate_has_gone_ = true;
    } else if (const Hello* hello = std::get_if<Hello>(&*event.message)) {
      take_hello(event.visitor, *hello);
    } else {
      objections_.push_back(std::get<Objection>(*event.message));
    }
  }
  void take_hello(Number visitor, const Hello& hello) {
    if (gate_ == 0) {
      gate_ = visitor;
      gate_rank_ = hello.rank;
      reception_->keep(visitor);
    } else if (visitor != gate_) {
      std::string frame =
          encode(Redirect{gate_address(hellos_[gate_rank_]->door).name, hello.host, gate_rank_});
      sign(frame, wire::key_of(kKey), hello.nonce);
      reception_->send(visitor, frame);
      return reception_->close(visitor);
    }
    if (!hellos_[hello.rank]) hellos_[hello.rank] = hello;
    const bool all =
        std::ranges::all_of(hellos_, [](const auto& each) { return each.has_value(); });
    if (all && then_ == Then::welcome) welcome();
  }
  void welcome() {
    // The addresses of ranks here are loopback's, which compose_welcome() would refuse.
    Welcome welcome{kMemoryBytes, "far", job_id_, 2, 1000, {}};
    for (const auto& hello : hellos_) {
      welcome.places.push_back({0, hello->rank == 0 ? 0U : 1U, hello->endpoint});
    }
    std::string frame = encode(welcome);
    sign(frame, wire::key_of(kKey), hellos_[gate_rank_]->nonce);
    EXPECT_TRUE(reception_->send(gate_, frame));
  }

  std::uint32_t ranks_;
  Then then_;
  std::uint64_t job_id_ = *random_number();
  Address address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Reception> reception_;
  std::vector<std::optional<Hello>> hellos_;  // by rank
  std::vector<Objection> objections_;
  Number gate_ = 0;
  std::uint32_t gate_rank_ = 0;
  bool gate_has_gone_ = false;
  int descriptor_ = -1;  // the reception's
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

// A datagram from one to the other.
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

TEST(BootstrapGate, RanksOfOneHostShareItsMemoryAndAllKnowTheirPlaces) {
  FarRendezvous server(3);
  server.start();
  const auto joined = test::join_all({server.job(1), server.job(2)}, settings_with("30s"));
  const int gate = static_cast<int>(server.gate_rank());
  for (const auto& info : joined) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->hosts, 2);
    EXPECT_EQ(info->memory_bytes, FarRendezvous::kMemoryBytes);
    EXPECT_TRUE(memory::verify_memory(info->memory, FarRendezvous::kMemoryBytes).ok());
    ASSERT_EQ(info->members.size(), 3U);
    EXPECT_EQ(info->members[0].pid, 0);
    EXPECT_EQ(info->members[0].host, 0);
    EXPECT_EQ(info->members[0].address, *transport::parse_ip("10.0.0.1"));
    EXPECT_EQ(info->members[1].address, *transport::parse_ip("127.0.0.1"));
    for (const std::size_t rank : {std::size_t{1}, std::size_t{2}}) {
      EXPECT_EQ(info->members[rank].pid, getpid());
      EXPECT_EQ(info->members[rank].host, 1);
    }
    EXPECT_TRUE(info->connection.valid());
    EXPECT_EQ(info->accepted.size(), info->rank == gate ? 1U : 0U);
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

TEST(BootstrapGate, ManyRanksOfOneHostComeByOne) {
  constexpr std::uint32_t kRanks = 60;
  FarRendezvous server(kRanks);
  server.start();
  std::vector<JobDescription> jobs;
  for (std::uint32_t rank = 1; rank < kRanks; ++rank) jobs.push_back(server.job(rank));
  std::size_t accepted = 0;
  for (const auto& info : test::join_all(jobs, settings_with("60s"))) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->members.back().pid, getpid());
    accepted += info->accepted.size();
  }
  EXPECT_EQ(accepted, kRanks - 2);
}

TEST(BootstrapGate, TheEndOfARankIsToldToTheRendezvous) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  const Address door = server.address_of_gate();
  RawRank guest(door, hello_from(*own_host_id(), 2, 3));
  const Hello heard = server.await_hello(2);
  EXPECT_EQ(heard.endpoint, hello_from(*own_host_id(), 2, 3).endpoint);
  guest.hang_up();
  EXPECT_EQ(server.await_objection(), (Objection{heard.nonce, Objection::Reason::ended}));
  server.refuse_at_gate(Refused{Code::rank_lost, "rank 2 ended", {}});
  expect_error(gate.info(), Code::rank_lost, "rank 2 ended");
}

TEST(BootstrapGate, WhatTheRendezvousRefusesIsToldToAll) {
  FarRendezvous server(4, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  RawRank raw(server.address_of_gate(), hello_from(*own_host_id(), 2, 4));
  Joiner guest(server, 3);
  server.await_hello(2);
  server.await_hello(3);
  server.refuse_at_gate(Refused{Code::timeout, "missing rank 0", {}});
  expect_refused(raw, Code::timeout, "missing rank 0");
  expect_error(guest.info(), Code::timeout, "missing rank 0");
  expect_error(gate.info(), Code::timeout, "missing rank 0");
}

TEST(BootstrapGate, ARefusalOfOneLeavesTheOthersIn) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  const Hello hello = hello_from(*own_host_id(), 2, 3);
  RawRank twin(server.address_of_gate(), hello);
  server.await_hello(2);
  server.refuse_at_gate(Refused{Code::argument, "rank 2 was claimed twice", hello.nonce});
  expect_refused(twin, Code::argument, "rank 2 was claimed twice");
  twin.expect_end();
  Hello other = hello;
  other.nonce = *random_nonce();
  RawRank guest(server.address_of_gate(), other);
  server.refuse_at_gate(Refused{Code::argument, "of nobody here", *random_nonce()});
  // Its Hello has been passed on when the next one's has.
  RawRank late(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  late.hang_up();
  server.await_objection();
  server.send_welcome();
  const auto welcome = guest.hear<Welcome>();
  EXPECT_EQ(welcome.places[2].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_TRUE(memory::verify_memory(guest.take_attached(), FarRendezvous::kMemoryBytes).ok());
  EXPECT_TRUE(gate.info().ok());
}

TEST(BootstrapGate, WhoComesTooLateIsRefused) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  RawRank guest(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  server.await_hello(2);
  RawRank twin(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  RawRank probe(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  probe.hang_up();
  server.await_objection();
  server.send_welcome();
  EXPECT_EQ(guest.hear<Welcome>().hosts, 2U);
  expect_refused(twin, Code::state, "comes too late: job far has started");
  EXPECT_TRUE(gate.info().ok());
}

TEST(BootstrapGate, ARankOfWhichOnlyTheRendezvousKnowsIsAnError) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  const Hello hello = server.await_hello(1);
  Welcome welcome{1 << 20, "far", 1, 2, 1000, {{0, 0, hello.endpoint}}};
  welcome.places.resize(3, {0, 1, hello.endpoint});
  std::string frame = encode(welcome);
  sign(frame, wire::key_of(kKey), hello.nonce);
  server.send_to_gate(frame);
  expect_error(gate.info(), Code::state, "says that rank 2 is on the host of rank 1, by which it");
}

TEST(BootstrapGate, ARendezvousThatIsLostIsToldToAll) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1);
  RawRank guest(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  server.await_hello(2);
  server.hang_up();
  expect_refused(guest, Code::rank_lost, "rank 1 of 3: the rendezvous at tcp:127.0.0.1:");
  expect_error(gate.info(), Code::rank_lost, "ended before all ranks had joined");
}

TEST(BootstrapGate, ASilentRendezvousIsATimeoutForAll) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  server.start();
  Joiner gate(server, 1, "300ms");
  RawRank guest(server.address_of_gate(), hello_from(*own_host_id(), 2, 3));
  expect_refused(guest, Code::timeout, "rank 1 of 3: the rendezvous at tcp:127.0.0.1:");
  expect_error(gate.info(), Code::timeout, "gave no answer within 300ms");
}

TEST(BootstrapGate, AStrangerIsNotLetIn) {
  FarRendezvous server(3);
  server.start();
  Joiner gate(server, 1);
  const Address door = server.address_of_gate();
  {
    auto silent = try_connect(door, base::now_ns() + kSecond);
    ASSERT_TRUE(silent.ok() && silent->has_value());
    Line line(std::move(**silent));
    ASSERT_TRUE((*line.receive(base::now_ns() + 30 * kSecond)).has_value());
    std::string unsigned_frame = encode(hello_from(*own_host_id(), 2, 3));
    ASSERT_TRUE(line.send(unsigned_frame).ok());
    const auto answer = line.receive(base::now_ns() + 30 * kSecond);
    ASSERT_TRUE(answer.ok() && answer->has_value());
    test::expect_text(std::get<Refused>((*answer)->message), Code::argument, "UNISONO_JOB_KEY");
  }
  Joiner guest(server, 2);
  EXPECT_TRUE(guest.info().ok()) << guest.info().error().message;
  EXPECT_TRUE(gate.info().ok());
}

// Exits with 0 if it could, and if so after the body.
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

TEST(BootstrapGate, AGateThatDiesIsNamedByThoseWhoCameByIt) {
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  const pid_t gate = fork();
  if (gate == 0) {
    static_cast<void>(join(server.job(1), settings_with("60s")));
    _exit(1);
  }
  server.start();
  EXPECT_EQ(server.gate_rank(), 1U);
  Joiner guest(server, 2);
  EXPECT_EQ(server.await_hello(2).rank, 2U);
  kill(gate, SIGKILL);
  EXPECT_EQ(exit_code_of(gate), 128 + SIGKILL);
  server.await_end_of_gate();
  expect_error(guest.info(), Code::rank_lost, "which rank 1 hosts, ended before all ranks");
}

TEST(BootstrapGate, ARankWhosePidItDoesNotSeeIsToldToTheRendezvous) {
  if (exit_code_of(fork_in_pid_namespace([] {})) != 0) {
    GTEST_SKIP() << "this user or this machine may not make pid namespaces";
  }
  FarRendezvous server(3, FarRendezvous::Then::nothing);
  const pid_t gate =
      fork_in_pid_namespace([&] { static_cast<void>(join(server.job(1), settings_with("60s"))); });
  server.start();
  EXPECT_EQ(server.gate_rank(), 1U);
  Joiner guest(server, 2);
  EXPECT_EQ(server.await_objection(),
            (Objection{server.await_hello(2).nonce, Objection::Reason::unseen_pid}));
  server.refuse_at_gate(Refused{Code::unsupported, "in a pid namespace", {}});
  expect_error(guest.info(), Code::unsupported, "in a pid namespace");
  EXPECT_EQ(exit_code_of(gate), 0);
}

}  // namespace
}  // namespace unisono::bootstrap

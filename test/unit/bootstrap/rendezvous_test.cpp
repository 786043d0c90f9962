// SPDX-License-Identifier: BSD-3-Clause
// bootstrap: ranks (threads and forked processes) join through a real rendezvous. Every error
// before the start is reported to all ranks that it affects.
#include "bootstrap/rendezvous/rendezvous.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/socket.hpp"
#include "harness/network_namespace.hpp"
#include "memory/memory_file.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"
#include "unit/bootstrap/shared_memory_check.hpp"

namespace unisono::bootstrap::rendezvous_test {
namespace {

using base::Code;
using base::kSecond;
using base::Result;
using base::Settings;
using test::expect_error;
using test::Host;
using test::join_all;
using test::kKey;
using test::settings_with;

// A process that runs `body` and exits with 0 if it gave true.
pid_t fork_rank(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body() ? 0 : 1);
  return pid;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(BootstrapRendezvous, ProcessesShareMemoryAndKnowEachOther) {
  constexpr int kRanks = 4;
  Host host(kRanks);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kRanks; ++rank) {
    pids.push_back(fork_rank([&host, rank] {
      const auto info = join(host.job(rank, kRanks), settings_with("30s"));
      return info.ok() && info->rank == rank && info->ranks == kRanks &&
             info->members.size() == kRanks &&
             info->members[static_cast<std::size_t>(rank)].pid == getpid() &&
             info->connections->is_connected() && !info->job.empty() && share_memory(*info);
    }));
  }
  host.serve();
  for (const pid_t pid : pids) EXPECT_EQ(exit_code_of(pid), 0);
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().rejected_peers(), 0);
}

TEST(BootstrapRendezvous, ManyRanksAtOnce) {
  constexpr int kRanks = 100;
  Host host(kRanks);
  host.serve();
  std::vector<JobDescription> jobs;
  for (int rank = 0; rank < kRanks; ++rank) jobs.push_back(host.job(rank, kRanks));
  for (const auto& info : join_all(jobs, settings_with("30s"))) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_EQ(info->members.back().pid, getpid());
  }
}

TEST(BootstrapRendezvous, MemoryIsPrivateSparseAndCannotShrink) {
  Host host(1);
  host.serve();
  const auto info = join(host.job(0, 1), settings_with("30s"));
  ASSERT_TRUE(info.ok()) << info.error().message;
  struct stat status {};
  ASSERT_EQ(fstat(info->memory.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(status.st_size, 1 << 20);
  EXPECT_EQ(status.st_blocks, 0);
  EXPECT_NE(ftruncate(info->memory.get(), 4096), 0);
}

TEST(BootstrapRendezvous, TheLargestMemorySizeWins) {
  Host host(2);
  host.serve();
  const auto big = Settings::from({{"UNISONO_SHARED_LIMIT", "8M"}});
  ASSERT_TRUE(big.ok());
  std::optional<Result<JobInfo>> other;
  std::thread rank1([&] { other.emplace(join(host.job(1, 2), *big)); });
  const auto info = join(host.job(0, 2), settings_with("30s"));
  rank1.join();
  ASSERT_TRUE(info.ok() && other->ok());
  EXPECT_EQ(info->memory_bytes, 8U << 20);
}

TEST(BootstrapRendezvous, MissingRanksAreNamedToAllRanksThatJoined) {
  constexpr int kRanks = 7;
  Host host(kRanks, "1s");
  host.serve();
  const auto infos = join_all({host.job(0, kRanks), host.job(2, kRanks), host.job(6, kRanks)},
                              settings_with("1s"));
  for (const auto& info : infos) {
    expect_error(info, Code::timeout, "4 of 7 ranks did not join within 1s");
    expect_error(info, Code::timeout, "missing ranks 1, 3-5");
  }
  EXPECT_FALSE(host.finish().ok());
}

TEST(BootstrapRendezvous, ALateRankIsToldWhyTheJobFailed) {
  Host host(2, "100ms");
  host.serve();
  expect_error(join(host.job(0, 2), settings_with("100ms")), Code::timeout, "missing rank 1");
  expect_error(join(host.job(1, 2), settings_with("30s")), Code::timeout, "missing rank 1");
  EXPECT_FALSE(host.finish().ok());
}

TEST(BootstrapRendezvous, WrongKeyIsRefusedAndDoesNotDisturb) {
  Host host(1);
  host.serve();
  JobDescription other = host.job(0, 1);
  other.key = "another key of some length";
  const auto refused = join(other, settings_with("30s"));
  expect_error(refused, Code::argument, "rank 0 of 1: the rendezvous at unix:@");
  expect_error(refused, Code::argument, "served by the launcher or rank 0, refuses this rank: ");
  expect_error(refused, Code::argument, "UNISONO_JOB_KEY must be the same for all ranks");
  EXPECT_TRUE(join(host.job(0, 1), settings_with("30s")).ok());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().rejected_peers(), 1);
}

TEST(BootstrapRendezvous, WrongSizeEndsTheJobAtOnce) {
  Host host(3);
  host.serve();
  const auto infos = join_all({host.job(0, 3), host.job(1, 4)}, settings_with("30s"));
  expect_error(infos[0], Code::argument,
               "was told that the job has 4 ranks, the rendezvous that it has 3");
  expect_error(infos[1], Code::argument, "rank 1 (pid");
}

TEST(BootstrapRendezvous, ARankThatJoinsTwiceIsRefusedTheSecondTime) {
  Host host(2);
  host.serve();
  std::array<std::optional<Result<JobInfo>>, 2> twice;
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (auto& info : twice) {
    threads.emplace_back([&] {
      info.emplace(join(host.job(1, 2), settings_with("30s")));
      ++answered;
    });
  }
  while (answered == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(join(host.job(0, 2), settings_with("30s")).ok());
  for (std::thread& thread : threads) thread.join();
  const std::size_t refused = twice[0]->ok() ? 1 : 0;
  EXPECT_TRUE(twice[1 - refused]->ok());
  expect_error(*twice[refused], Code::argument, "rank 1 was claimed twice: by pid");
}

TEST(BootstrapRendezvous, TheTimeoutMentionsARankThatJoinedTwice) {
  Host host(3, "1s");
  host.serve();
  const auto infos =
      join_all({host.job(1, 3), host.job(1, 3), host.job(0, 3)}, settings_with("1s"));
  expect_error(infos[2], Code::timeout, "missing rank 2; rank 1 was claimed twice");
}

TEST(BootstrapRendezvous, ADeathBeforeTheStartIsToldToTheOthers) {
  Host host(3);
  const pid_t victim =
      fork_rank([&host] { return join(host.job(1, 3), settings_with("30s")).ok(); });
  while (!host.server().has_joined(1)) host.step_once(1000);
  kill(victim, SIGKILL);
  EXPECT_EQ(exit_code_of(victim), 128 + SIGKILL);
  host.serve();
  const auto info = join(host.job(0, 3), settings_with("30s"));
  expect_error(info, Code::rank_lost, "rank 1 (pid " + std::to_string(victim) + ") ended before");
}

TEST(BootstrapRendezvous, TheLauncherCanReportARankThatNeverConnected) {
  Host host(2);
  const pid_t waiting = fork_rank([&host] {
    const auto info = join(host.job(0, 2), settings_with("30s"));
    return !info.ok() && info.error().code == Code::rank_lost &&
           info.error().message ==
               "rank 1 exited with status 3 before all ranks had joined the job";
  });
  while (!host.server().has_joined(0)) host.step_once(1000);
  host.server().rank_ended(1, "exited with status 3");
  EXPECT_EQ(exit_code_of(waiting), 0);
}

// Connects without the protocol, sends `bytes`, and waits until the server closes.
void send_raw(const JobDescription& job, std::string_view bytes) {
  auto socket = try_connect(job.address, base::now_ns() + kSecond);
  ASSERT_TRUE(socket.ok() && socket->has_value());
  MessageStream stream(std::move(**socket));
  ASSERT_TRUE(stream.send(bytes).ok());
  const auto challenge = stream.receive(base::now_ns() + 30 * kSecond);
  ASSERT_TRUE(challenge.ok() && challenge->has_value());
  EXPECT_TRUE(std::holds_alternative<Challenge>((*challenge)->message));
  const auto end = stream.receive(base::now_ns() + 30 * kSecond);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
  EXPECT_TRUE(stream.closed());
}

TEST(BootstrapRendezvous, MalformedAndSilentConnectionsAreDroppedAndCounted) {
  Host host(1);
  host.serve();
  send_raw(host.job(0, 1), "GET / HTTP/1.1\r\n\r\n");
  send_raw(host.job(0, 1), encode(Challenge{}));  // valid, but no rank sends it
  std::string broken = encode(Hello{});
  send_raw(host.job(0, 1), broken);  // 0 ranks
  {
    auto silent = try_connect(host.job(0, 1).address, base::now_ns() + kSecond);
    ASSERT_TRUE(silent.ok() && silent->has_value());
    auto cut_short = try_connect(host.job(0, 1).address, base::now_ns() + kSecond);
    ASSERT_TRUE(cut_short.ok() && cut_short->has_value());
    EXPECT_TRUE(send_frame(**cut_short, std::string_view(broken).substr(0, 20)));
    EXPECT_TRUE(join(host.job(0, 1), settings_with("30s")).ok());
    EXPECT_TRUE(host.finish().ok());
  }
  EXPECT_EQ(host.server().rejected_peers(), 3);
}

TEST(BootstrapRendezvous, ManySilentConnectionsDoNotKeepARankOut) {
  Host host(1);
  host.serve();
  std::vector<base::Descriptor> silent;
  for (int i = 0; i < 200; ++i) {
    auto socket = try_connect(host.job(0, 1).address, base::now_ns() + kSecond);
    ASSERT_TRUE(socket.ok() && socket->has_value());
    silent.push_back(std::move(**socket));
  }
  EXPECT_TRUE(join(host.job(0, 1), settings_with("30s")).ok());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_GT(host.server().rejected_peers(), 100);
}

TEST(BootstrapRendezvous, AnotherUserIsRejected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user for this test";
  Host host(1);
  const pid_t other = fork_rank([&host] {
    if (setuid(65534) != 0) return false;
    const auto info = join(host.job(0, 1), settings_with("30s"));
    return !info.ok() && info.error().message.find("belongs to user 0") != std::string::npos;
  });
  host.serve();
  EXPECT_EQ(exit_code_of(other), 0);
  EXPECT_TRUE(join(host.job(0, 1), settings_with("30s")).ok());
  EXPECT_TRUE(host.finish().ok());
  EXPECT_EQ(host.server().rejected_peers(), 1);
}

TEST(BootstrapRendezvous, TcpLeadsToTheUnixSocket) {
  Host host(2, "30s", "tcp:127.0.0.1:0");
  host.serve();
  EXPECT_TRUE(host.server().address().starts_with("tcp:127.0.0.1:"));
  for (const auto& info : join_all({host.job(0, 2), host.job(1, 2)}, settings_with("30s"))) {
    ASSERT_TRUE(info.ok()) << info.error().message;
    EXPECT_TRUE(info->memory.valid());
  }
  EXPECT_TRUE(host.finish().ok());
}

TEST(BootstrapRendezvous, MissingRanksMayHaveAnotherKey) {
  Host host(2, "1s");
  host.serve();
  JobDescription other = host.job(1, 2);
  other.key = "another key of some length";
  const auto infos = join_all({host.job(0, 2), other}, settings_with("1s"));
  expect_error(infos[0], Code::timeout, "missing rank 1; a process (pid ");
  expect_error(infos[0], Code::timeout, "UNISONO_JOB_KEY must be the same for all ranks of a job");
}

// Over TCP such an answer has no proof and could be of any process, so the rank keeps trying.
TEST(BootstrapRendezvous, TcpWithAWrongKeyIsRefusedInTheEnd) {
  Host host(1, "30s", "tcp:127.0.0.1:0");
  host.serve();
  JobDescription other = host.job(0, 1);
  other.key = "another key of some length";
  expect_error(join(other, settings_with("1s")), Code::argument,
               "Its answer was: the job key does not fit: UNISONO_JOB_KEY");
  EXPECT_TRUE(join(host.job(0, 1), settings_with("30s")).ok());
}

TEST(BootstrapRendezvous, TcpNeedsAKey) {
  Rendezvous::Options options;
  options.address = *parse_address("tcp:127.0.0.1:0");
  const auto server = Rendezvous::open(options);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("UNISONO_JOB_KEY"), std::string::npos);
}

// A server that speaks the protocol up to the Hello and then gives the answer that `make` makes.
class FakeServer {
 public:
  using Make = std::function<std::string(const Hello& hello)>;
  FakeServer(const std::string& address, Make make) : address_(*parse_address(address)) {
    auto listening = listen_at(address_);
    EXPECT_TRUE(listening.ok());
    listener_ = std::move(*listening);
    thread_ = std::thread([this, make = std::move(make)] { answer(make); });
  }
  ~FakeServer() { thread_.join(); }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  JobDescription job() const {
    JobDescription description;
    description.rank = 1;
    description.ranks = 2;
    description.address = address_;
    description.address_given = true;
    description.key = kKey;
    return description;
  }

 private:
  void answer(const Make& make) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    poll(&waiting, 1, 30000);
    base::Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(send_frame(socket, encode(Challenge{})));
    MessageStream stream(std::move(socket));
    const auto hello = stream.receive(base::now_ns() + 30 * kSecond);
    ASSERT_TRUE(hello.ok() && hello->has_value());
    ASSERT_TRUE(stream.send(make(std::get<Hello>((*hello)->message))).ok());
    auto end = stream.receive(base::now_ns() + 30 * kSecond);
    if (end.ok() && end->has_value()) {
      const Withdrawal* failed = std::get_if<Withdrawal>(&(*end)->message);
      ASSERT_NE(failed, nullptr);
      EXPECT_EQ(failed->hello, std::get<Hello>((*hello)->message).nonce);
      EXPECT_EQ(failed->reason, Withdrawal::Reason::failed);
      end = stream.receive(base::now_ns() + 30 * kSecond);
    }
    EXPECT_TRUE(end.ok() && !end->has_value());
  }

  Address address_;
  base::Descriptor listener_;
  std::thread thread_;
};

std::string signed_frame(const Message& message, const Hello& hello) {
  std::string frame = encode(message);
  sign(frame, wire::key_of(kKey), hello.nonce);
  return frame;
}

TEST(BootstrapJoin, ARedirectToAnotherHostIsNotFollowed) {
  const FakeServer server("tcp:127.0.0.1:0", [](const Hello& hello) {
    return signed_frame(Redirect{"somewhere", HostId{'x'}, kNoRelay}, hello);
  });
  expect_error(join(server.job(), settings_with("30s")), Code::state, "a socket of another host");
}

TEST(BootstrapJoin, ARendezvousThatEndsAfterItsRedirectIsLost) {
  const FakeServer server("tcp:127.0.0.1:0", [](const Hello& hello) {
    return signed_frame(Redirect{"unisono-nobody-listens-here", hello.host, kNoRelay}, hello);
  });
  expect_error(join(server.job(), settings_with("30s")), Code::rank_lost,
               "ended before all ranks had joined");
}

TEST(BootstrapJoin, AServerThatDoesNotKnowTheKeyIsNotFollowed) {
  const FakeServer server("tcp:127.0.0.1:0", [](const Hello& hello) {
    return encode(Redirect{"unisono-anywhere", hello.host, kNoRelay});
  });
  expect_error(join(server.job(), settings_with("30s")), Code::argument,
               "does not know this job's key");
}

Welcome welcome_for(std::uint32_t own_pid) {
  return {.memory_bytes = 1 << 20,
          .job = "job",
          .job_id = 1,
          .hosts = 1,
          .max_payload = 0,
          .members = {{1, 0, {}}, {own_pid, 0, {}}}};
}

TEST(BootstrapJoin, AWelcomeWithoutMemoryIsAnError) {
  const FakeServer server(address_text(*random_unix_address()), [](const Hello& hello) {
    return signed_frame(welcome_for(static_cast<std::uint32_t>(getpid())), hello);
  });
  EXPECT_FALSE(join(server.job(), settings_with("30s")).ok());
}

TEST(BootstrapJoin, PidsFromAnotherHostAreNotBelieved) {
  const FakeServer server("tcp:127.0.0.1:0", [](const Hello& hello) {
    return signed_frame(welcome_for(static_cast<std::uint32_t>(getpid())), hello);
  });
  expect_error(join(server.job(), settings_with("30s")), Code::state, "reports pid");
}

TEST(BootstrapJoin, GarbageFromTheServerIsAnError) {
  const FakeServer server("tcp:127.0.0.1:0", [](const Hello&) { return std::string(64, 'x'); });
  expect_error(join(server.job(), settings_with("30s")), Code::argument, "magic");
}

// As while the kernel sets up an interface: the rank tries again until the start limit.
TEST(BootstrapJoin, ARouteThatIsMissingIsATimeoutThatSaysSo) {
  const auto network = harness::NetworkNamespace::enter();
  if (!network.ok()) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE((*network)->ip("link set lo up").ok());
  const Address address = *parse_address("tcp:10.71.0.9:7000");
  const std::int64_t deadline_ns = base::now_ns() + 1'000'000'000;
  const auto attempt = attempt_connect(address, deadline_ns);
  ASSERT_TRUE(attempt.ok());
  EXPECT_EQ(attempt->unreachable, ENETUNREACH);
  JobDescription job;
  job.rank = 1;
  job.ranks = 2;
  job.address = address;
  job.address_given = true;
  expect_error(join(job, settings_with("50ms")), Code::timeout,
               "rank 1 of 2: no route to the network at tcp:10.71.0.9:7000");

  ASSERT_TRUE((*network)->ip("addr add 10.71.0.9/32 dev lo").ok());
  const auto later = attempt_connect(address, deadline_ns);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->unreachable, 0);
}

TEST(BootstrapJoin, AMissingServerIsATimeoutThatNamesTheAddress) {
  JobDescription job;
  job.rank = 1;
  job.ranks = 2;
  job.address = *random_unix_address();
  job.address_given = true;
  expect_error(join(job, settings_with("50ms")), Code::timeout,
               "rank 1 of 2: no process listens at unix:@unisono-");
}

TEST(BootstrapJoin, AServerThatIsSilentIsATimeout) {
  Host host(1);  // listens, but does not serve
  expect_error(join(host.job(0, 1), settings_with("50ms")), Code::timeout, "no answer");
}

// Jobs whose rank 0 serves, at a given or derived address, in any order of starting.
class RankZeroServes : public testing::TestWithParam<bool> {};

TEST_P(RankZeroServes, AndTheOthersWaitForIt) {
  constexpr int kRanks = 3;
  JobDescription job;
  job.ranks = kRanks;
  job.address = *random_unix_address();
  job.address_given = GetParam();
  const auto rank_body = [&job](int rank) {
    JobDescription own = job;
    own.rank = rank;
    const auto info = join(own, settings_with("30s"));
    if (!info.ok() || !share_memory(*info)) return false;
    info->connections->end_start();
    return info->connections->accepted().size() == (rank == 0 ? std::size_t{kRanks} : 0);
  };
  std::vector<pid_t> pids;
  for (int rank = kRanks; rank-- > 0;) {
    pids.push_back(fork_rank([&rank_body, rank] { return rank_body(rank); }));
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (const pid_t pid : pids) EXPECT_EQ(exit_code_of(pid), 0);
  const auto left = try_connect(job.address, base::now_ns());
  ASSERT_TRUE(left.ok());
  EXPECT_FALSE(left->has_value());
}

INSTANTIATE_TEST_SUITE_P(Addresses, RankZeroServes, testing::Bool(),
                         [](const auto& given) { return given.param ? "given" : "derived"; });

TEST(BootstrapJoin, RankZeroNamesTheMissingRanksWhenItServes) {
  JobDescription job;
  job.ranks = 2;
  job.address = *random_unix_address();
  expect_error(join(job, settings_with("100ms")), Code::timeout, "missing rank 1");
}

// The failure may happen before the Hello of the serving rank, or after it.
TEST(BootstrapJoin, RankZeroIsToldOfAFailureAtAnyTime) {
  for (int turn = 0; turn < 50; ++turn) {
    JobDescription job;
    job.ranks = 2;
    job.address = *random_unix_address();
    JobDescription wrong = job;
    wrong.rank = 1;
    wrong.ranks = 3;
    const auto infos = join_all({wrong, job}, settings_with("10min"));
    expect_error(infos[1], Code::argument, "was told that the job has 3 ranks");
  }
}

JobDescription failing(JobDescription job) {
  job.failure = {Code::argument, "UNISONO_BUFFERS=\"junk\" is not valid"};
  return job;
}

constexpr std::string_view kCannotStart = ") cannot start: UNISONO_BUFFERS=\"junk\" is not valid";

TEST(BootstrapRendezvous, ARankThatCannotStartIsToldToAll) {
  Host host(3);
  host.serve();
  const auto infos =
      join_all({host.job(0, 3), failing(host.job(1, 3)), host.job(2, 3)}, settings_with("10min"));
  for (const auto& info : infos) expect_error(info, Code::argument, kCannotStart);
  const base::Status served = host.finish();
  ASSERT_FALSE(served.ok());
  EXPECT_NE(served.error().message.find("rank 1 (pid "), std::string::npos)
      << served.error().message;
}

// Rank 0 serves until it has told all, also if it is the one that cannot start.
TEST(BootstrapJoin, ARankThatCannotStartIsToldToLateRanks) {
  for (const int victim : {0, 1}) {
    JobDescription job;
    job.ranks = 3;
    job.address = *random_unix_address();
    JobDescription other = job;
    other.rank = 1;
    (victim == 0 ? job : other) = failing(victim == 0 ? job : other);
    JobDescription late = job;
    late.rank = 2;
    late.failure = {};
    std::optional<base::Result<JobInfo>> served;
    std::thread serving([&] { served.emplace(join(job, settings_with("10min"))); });
    expect_error(join(other, settings_with("10min")), Code::argument, kCannotStart);
    expect_error(join(late, settings_with("10min")), Code::argument, kCannotStart);
    serving.join();
    expect_error(*served, Code::argument, kCannotStart);
  }
}

TEST(BootstrapRendezvous, SettingsThatDifferAreNamedToAll) {
  Host host(3);
  host.serve();
  const auto with = [](const std::string& learn) {
    return *base::Settings::from({{"UNISONO_START_TIMEOUT", "10min"},
                                  {"UNISONO_SHARED_LIMIT", "1M"},
                                  {"UNISONO_LEARN", learn}});
  };
  std::vector<std::optional<base::Result<JobInfo>>> infos(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      infos[static_cast<std::size_t>(rank)].emplace(
          join(host.job(rank, 3), with(rank == 1 ? "on" : "")));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& info : infos) {
    ASSERT_TRUE((*info).ok()) << (*info).error().message;
    EXPECT_EQ((**info).differing_settings,
              "UNISONO_LEARN: rank 1 has on, all others have the default off");
  }
  EXPECT_TRUE(host.finish().ok());
}

TEST(BootstrapJoin, AnAddressInUseIsNamed) {
  Host other(1);
  JobDescription job = other.job(0, 2);
  job.address_given = false;
  expect_error(join(job, settings_with("100ms")), Code::system, "another job or process");
}

TEST(BootstrapJoin, AJobOfOneHasItsOwnMemory) {
  const auto info = join(JobDescription{}, settings_with("30s"));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->ranks, 1);
  EXPECT_EQ(info->members.size(), 1U);
  EXPECT_EQ(info->members[0].pid, getpid());
  EXPECT_EQ(info->connections, nullptr);
  EXPECT_TRUE(memory::verify_memory(info->memory, 1 << 20).ok());
  EXPECT_FALSE(memory::verify_memory(info->memory, 1 << 21).ok());
}

TEST(BootstrapJoin, ALimitOfFileSizesIsNamed) {
  const pid_t limited = fork_rank([] {
    const rlimit limit{1 << 16, 1 << 16};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto memory = memory::create_memory(1 << 20);
    return !memory.ok() && memory.error().code == Code::resources &&
           memory.error().message.find("ulimit -f") != std::string::npos;
  });
  EXPECT_EQ(exit_code_of(limited), 0);
}

}  // namespace
}  // namespace unisono::bootstrap::rendezvous_test

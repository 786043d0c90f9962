// SPDX-License-Identifier: BSD-3-Clause
// kill -9 at random moments: ranks and daemons die while groups are made and operations run. Ranks
// that are left have right results or an error; nothing is left in the kernel, and where a daemon
// has died another one serves at once. A failure prints its seed; `--seed N` runs that one alone,
// and `--seeds N` (label slow) many.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "engine/nic/nic_wait.hpp"
#include "harness/seeds.hpp"
#include "model/default_machine.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/kernel_objects.hpp"
#include "nic/harness/processes.hpp"
#include "nic/loader/device.hpp"
#include "nic/port/vector_limit.hpp"
#include "nic/service/client.hpp"

namespace unisono::nic::test::kill_test {
namespace {

using engine::NicGroup;
using plan::NicCall;

constexpr int kHosts = 3;
constexpr int kOperations = 60;
constexpr uid_t kUser = 54321;
// A rank that lost another one gets no notice here; NicGroup waits no longer than this.
constexpr std::int64_t kPatience = 100 * base::kMillisecond;
constexpr std::int64_t kForever = 600 * base::kSecond;
// The steps of all ranks of a group.
constexpr std::uint32_t kAllSteps = kHosts * (kOperations + 3);

unisono::test::Seeds seeds{.count = 16};

enum Outcome : int { kRight = 0, kError = 1, kWrong = 2, kKilled = 128 + SIGKILL };

// Memory shared by the processes of a round.
struct Round {
  std::atomic<std::uint32_t> steps;  // that ranks have made, of any kind
  std::atomic<int> described, joined, ended;
  std::atomic<bool> over;  // a process was killed, or failed: do not wait for all to arrive
  std::array<nic::Capabilities, kHosts> hosts;
};

// The sum that every rank gets, and the contribution of each.
std::int64_t part_of(int rank, int operation) { return operation * 1000 + (1 << rank); }
std::int64_t sum_of(int operation) { return kHosts * operation * 1000 + (1 << kHosts) - 1; }

// False: a process will not arrive.
bool all_came(const std::atomic<int>& count, const Round& round) {
  while (count < kHosts && !round.over) std::this_thread::yield();
  return count == kHosts;
}

Outcome reduce(NicGroup& group, int rank, int operation, std::int64_t patience_ns) {
  plan::NicShape shape;
  shape.collective = schedule::Collective::allreduce;
  shape.count = 3;
  const NicCall call = *plan::lower_call(shape, rank);
  std::array<std::int64_t, 3> input;
  std::array<std::int64_t, 3> output = {};
  input.fill(part_of(rank, operation));
  const auto done =
      engine::run_in_nic(group, call, input.data(), output.data(), base::now_ns() + patience_ns);
  if (!done.ok()) return kError;
  for (const std::int64_t word : output) {
    if (word != sum_of(operation)) return kWrong;
  }
  return kRight;
}

// Blocks of more packets than are in flight at once.
Outcome gather(NicGroup& group, int rank, int operation, std::int64_t patience_ns) {
  constexpr std::size_t kWords = 1000;
  model::Machine machine = model::default_machine();
  machine.constants[static_cast<std::size_t>(model::Constant::nic_host_block)]->number = 8 * kWords;
  plan::NicShape shape;
  shape.machine = &machine;
  shape.collective = schedule::Collective::allgather;
  shape.count = kWords;
  shape.ranks = shape.hosts = kHosts;
  const NicCall call = *plan::lower_call(shape, rank);
  const std::vector<std::int64_t> input(kWords, part_of(rank, operation));
  std::vector<std::int64_t> output(kWords * kHosts);
  const auto done =
      engine::run_in_nic(group, call, input.data(), output.data(), base::now_ns() + patience_ns);
  if (!done.ok()) return kError;
  for (std::size_t word = 0; word < output.size(); ++word) {
    if (output[word] != part_of(static_cast<int>(word / kWords), operation)) return kWrong;
  }
  return kRight;
}

// Sums and an allgather in flight at the same time. They are taken as they end.
Outcome reduce_and_gather(NicGroup& group, int rank, int operation, std::int64_t patience_ns) {
  struct One {
    NicCall call;
    engine::NicFlight* flight = nullptr;
    std::array<std::int64_t, kHosts> output = {};
    bool is_right(int number) const {
      if (!call.gathers) return output[0] == sum_of(number);
      for (int host = 0; host < kHosts; ++host) {
        if (output[static_cast<std::size_t>(host)] != part_of(host, number)) return false;
      }
      return true;
    }
  };
  std::array<One, nic::kInFlightMax> all;
  const std::int64_t input = part_of(rank, operation);
  plan::NicShape shape;
  shape.count = 1;
  shape.ranks = shape.hosts = kHosts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    shape.collective = i == 1 ? schedule::Collective::allgather : schedule::Collective::allreduce;
    all[i].call = *plan::lower_call(shape, rank);
    if (!group.may_start(all[i].call)) return kWrong;
    const auto started = group.start(all[i].call, &input, all[i].output.data());
    if (!started.ok()) return kError;
    all[i].flight = *started;
  }
  const std::int64_t deadline_ns = base::now_ns() + patience_ns;
  for (std::size_t left = all.size(); left > 0;) {
    if (base::now_ns() > deadline_ns || !group.repair().ok()) {
      group.give_up({base::Code::timeout, "not in time"});
      return kError;
    }
    for (One& one : all) {
      if (one.flight == nullptr) continue;
      const auto done = group.poll(*one.flight);
      if (!done.ok()) return kError;
      if (!*done) continue;
      if (!group.take(*one.flight).ok()) return kError;
      one.flight = nullptr;
      --left;
      if (!one.is_right(operation)) return kWrong;
    }
    std::this_thread::yield();
  }
  return kRight;
}

Outcome operate_once(NicGroup& group, int rank, int operation, std::int64_t patience_ns) {
  switch (operation % 3) {
    case 0:
      return reduce(group, rank, operation, patience_ns);
    case 1:
      return reduce_and_gather(group, rank, operation, patience_ns);
    default:
      return gather(group, rank, operation, patience_ns);
  }
}

Outcome operate(NicGroup& group, Round& round, int rank, std::int64_t patience_ns) {
  for (int operation = 0; operation < kOperations; ++operation) {
    ++round.steps;
    const Outcome outcome = operate_once(group, rank, operation, patience_ns);
    if (outcome != kRight) return outcome;
  }
  return kRight;
}

Outcome run_rank(Round& round, const std::string& path, int rank, std::uint32_t communicator,
                 std::int64_t patience_ns) {
  engine::NicGroupOptions options;
  options.path = path;
  options.id = {4711, communicator};
  options.key = {5, communicator};
  options.multicast = htonl(0xEFFF000A);
  options.rank = rank;
  options.ranks = kHosts;
  ++round.steps;
  const auto group = NicGroup::open(options);
  if (!group.ok()) return kError;
  round.hosts[static_cast<std::size_t>(rank)] = (*group)->capabilities();
  ++round.described;
  ++round.steps;
  if (!all_came(round.described, round) || !(*group)->join(round.hosts).ok()) return kError;
  ++round.joined;
  ++round.steps;
  if (!all_came(round.joined, round)) return kError;
  const Outcome outcome = operate(**group, round, rank, patience_ns);
  ++round.ended;
  if (outcome == kRight) all_came(round.ended, round);  // all stay until the others have a result
  return outcome;
}

// The victims, by host.
struct Victims {
  std::array<bool, kHosts> ranks = {};
  std::array<bool, kHosts> daemons = {};
};

Victims choose(base::Prng& random) {
  Victims victims;
  const std::size_t host = random.below(kHosts);
  const std::uint64_t what = random.below(10);
  victims.ranks[host] = what < 5 || what == 8;
  victims.daemons[host] = what >= 5 && what < 9;
  if (what == 7) victims.ranks[(host + 1) % kHosts] = true;
  if (what == 9) victims.daemons.fill(true);
  return victims;
}

class NicKill : public testing::Test {
 protected:
  void SetUp() override {
    const auto trial = load_device({});
    auto made = trial.ok() ? Hosts::make(kHosts) : trial.error();
    if (!made.ok() && made.error().code == base::Code::unsupported) {
      GTEST_SKIP() << made.error().message;
    }
    ASSERT_TRUE(made.ok()) << made.error().message;
    hosts = *std::move(made);
    char name[] = "/tmp/nic_kill_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    ASSERT_EQ(chmod(name, 0755), 0);
    folder = name;
    void* const memory =
        mmap(nullptr, sizeof(Round), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    round = new (memory) Round;
    for (int host = 0; host < kHosts; ++host) serve(host);
  }
  void TearDown() override {
    for (Child& rank : ranks) rank.end(SIGKILL);
    for (Child& daemon : daemons) daemon.end(SIGKILL);
    if (round != nullptr) munmap(round, sizeof(Round));
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  std::string path(int host) const { return folder + "/nic" + std::to_string(host); }
  Child& daemon_of(int host) { return daemons[static_cast<std::size_t>(host)]; }
  Child& rank_of(int host) { return ranks[static_cast<std::size_t>(host)]; }

  // Starts the host's daemon, which takes over the remains of a killed one.
  void serve(int host) {
    StartedDaemon started = start_daemon(*hosts, host, path(host));
    daemon_of(host) = std::move(started.process);
    ASSERT_EQ(started.said, "unisonod: serves u0 (generic mode) at " + path(host));
    maps_at_start[static_cast<std::size_t>(host)] = objects_of(daemon_of(host).pid()).maps.size();
  }

  // All ranks of a group, each a process without privilege.
  void start_ranks(std::int64_t patience_ns) {
    round = new (round) Round;
    ++communicator;
    for (int rank = 0; rank < kHosts; ++rank) {
      rank_of(rank) = run_as(kUser, *hosts, rank, [&, rank] {
        const Outcome outcome = run_rank(*round, path(rank), rank, communicator, patience_ns);
        if (outcome != kRight) round->over = true;
        round->steps += kAllSteps;  // visible to any process that waits for a step
        return static_cast<int>(outcome);
      });
    }
  }

  void run_scenario(std::uint64_t seed);
  KernelObjects kill_daemon(int host, base::Prng& random);
  void expect_outcomes(const Victims& victims);
  void expect_nothing_of_a_daemon(int host);
  void expect_nothing_of_ranks(int host);
  void expect_service();

  std::unique_ptr<Hosts> hosts;
  std::string folder;
  Round* round = nullptr;
  std::uint32_t communicator = 0;
  std::array<Child, kHosts> daemons;
  std::array<std::size_t, kHosts> maps_at_start = {};
  std::array<Child, kHosts> ranks;
  int right = 0;  // ranks that were spared, by how they ended
  int failed = 0;
};

// The objects that it had when it died. Empty if it was killed at an unknown moment.
KernelObjects NicKill::kill_daemon(int host, base::Prng& random) {
  KernelObjects had;
  if (random.below(2) == 0) {
    daemon_of(host).stop();  // so that nothing comes to it after the look
    had = objects_of(daemon_of(host).pid());
    EXPECT_GE(had.links.size(), 3U);
  }
  EXPECT_EQ(daemon_of(host).end(SIGKILL), kKilled);
  return had;
}

void NicKill::expect_outcomes(const Victims& victims) {
  for (int rank = 0; rank < kHosts; ++rank) {
    const bool killed = victims.ranks[static_cast<std::size_t>(rank)];
    const int outcome = killed ? rank_of(rank).end(SIGKILL) : rank_of(rank).wait();
    EXPECT_TRUE(outcome == kRight || outcome == kError || (killed && outcome == kKilled))
        << "rank " << rank << (killed ? ", killed," : "") << " ended with " << outcome
        << (outcome == kWrong ? ": a wrong sum" : "");
    if (!killed) ++(outcome == kRight ? right : failed);
  }
}

// The kernel takes links away soon after the process has gone.
void NicKill::expect_nothing_of_a_daemon(int host) {
  std::thread([&] {
    hosts->enter(host);
    while (programs_on_egress() != 0 || programs_on_ingress() != 0) std::this_thread::yield();
    while (attached_to_u0().find("xdp") != std::string::npos) std::this_thread::yield();
    EXPECT_EQ(attached_to_u0(), "");
  }).join();
}

// A living daemon has removed the objects of its ranks.
void NicKill::expect_nothing_of_ranks(int host) {
  const auto client = ServiceClient::connect(path(host));
  ASSERT_TRUE(client.ok()) << client.error().message;
  auto status = (*client)->status();
  while (status.ok() && status->groups != 0) {
    std::this_thread::yield();
    status = (*client)->status();
  }
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(objects_of(daemon_of(host).pid()).maps.size(),
            maps_at_start[static_cast<std::size_t>(host)]);
}

// A new group of all hosts gets all its results.
void NicKill::expect_service() {
  start_ranks(kForever);
  for (int rank = 0; rank < kHosts; ++rank) {
    EXPECT_EQ(rank_of(rank).wait(), kRight) << "rank " << rank << " of the group after the kill";
  }
}

void NicKill::run_scenario(std::uint64_t seed) {
  base::Prng random(seed);
  const Victims victims = choose(random);
  // Some moments are after the last operation, when the first rank has ended.
  const std::uint64_t step = random.below(kAllSteps + kAllSteps / 4);
  start_ranks(kPatience);
  while (round->steps < step) std::this_thread::yield();
  for (std::uint64_t spins = random.below(200'000); spins > 0; --spins) round->steps.load();
  std::vector<KernelObjects> had;
  for (std::size_t host = 0; host < kHosts; ++host) {
    if (victims.ranks[host]) kill(ranks[host].pid(), SIGKILL);
    if (victims.daemons[host]) had.push_back(kill_daemon(static_cast<int>(host), random));
  }
  round->over = true;
  expect_outcomes(victims);
  for (const KernelObjects& objects : had) {  // ranks had groups' memory mapped until now
    while (any_exists(objects)) std::this_thread::yield();
  }
  for (int host = 0; host < kHosts; ++host) {
    if (victims.daemons[static_cast<std::size_t>(host)]) {
      expect_nothing_of_a_daemon(host);
      serve(host);
    } else {
      expect_nothing_of_ranks(host);
    }
  }
  if (!HasFatalFailure()) expect_service();
}

TEST_F(NicKill, AtRandomMoments) {
  for (int i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: nic_kill --seed " + std::to_string(seed));
    run_scenario(seed);
    if (HasFailure()) return;
  }
  if (seeds.count > 10) {  // or the moments were not as different as they are meant to be
    EXPECT_GT(right, 0);
    EXPECT_GT(failed, 0);
  }
  for (int host = 0; host < kHosts; ++host) {
    EXPECT_EQ(daemon_of(host).end(SIGTERM), 0);
    expect_nothing_of_a_daemon(host);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "a socket that nobody serves";
}

}  // namespace
}  // namespace unisono::nic::test::kill_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  unisono::nic::test::kill_test::seeds.read(argc, argv);
  return RUN_ALL_TESTS();
}

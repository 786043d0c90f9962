// SPDX-License-Identifier: BSD-3-Clause
// Groups in the NIC path as communicators use them: a rank and a daemon on each host. Results have
// the bits of the host engine's on the same tree. The end of a daemon, a missing rank and ranks
// that disagree are errors, and no rank hangs.
#include "engine/nic/nic_blocks.hpp"
#include "engine/nic/nic_flight.hpp"
#include "engine/nic/nic_wait.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "base/process_record.hpp"
#include "nic/harness/hosts.hpp"
#include "nic/harness/with_hosts.hpp"

namespace unisono::engine::test::nic_group_test {
namespace {

using nic::test::Hosts;
using schedule::Collective;

constexpr int kHosts = 3;
constexpr std::int64_t kLong = 3600 * base::kSecond;

std::int64_t far_away() { return base::now_ns() + kLong; }

template <int Count>
class NicGroupsOf : public nic::test::WithHosts<Count> {
 protected:
  void SetUp() override {
    nic::test::WithHosts<Count>::SetUp();
    if (this->IsSkipped() || this->HasFatalFailure()) return;
    char name[] = "/tmp/nic_group_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    for (int host = 0; host < Count; ++host) start_daemon(host);
  }
  void TearDown() override {
    for (int host = 0; host < Count; ++host) kill_daemon(host);
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }

  std::string path(int host) const { return folder + "/nic" + std::to_string(host); }

  // Returns when it serves.
  void start_daemon(int host) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string socket = path(host);
    const pid_t pid = fork();
    if (pid == 0) {
      this->hosts->enter(host);
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      execl(UNISONOD_PROGRAM, "unisonod", "--interface", "u0", "--socket", socket.c_str(),
            static_cast<char*>(nullptr));
      _exit(127);
    }
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    daemons[static_cast<std::size_t>(host)] = pid;
  }
  void kill_daemon(int host) {
    const pid_t pid = std::exchange(daemons[static_cast<std::size_t>(host)], 0);
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  // All hosts make the group, and then each runs the body.
  void run(const std::function<void(int rank, NicGroup& group)>& body) {
    std::array<nic::Capabilities, Count> capabilities;
    std::atomic<int> joined = 0;
    std::barrier<> together(Count);
    this->hosts->run([&](int rank) {
      NicGroupOptions options;
      options.path = path(rank);
      options.id = {31, 1};
      options.key = {5, 7};
      options.multicast = htonl(0xEFFF0009);
      options.preferences.rooted = base::Toggle::on;  // roots multicast broadcasts
      options.rank = rank;
      options.ranks = Count;
      auto group = NicGroup::open(options);
      if (group.ok()) capabilities[static_cast<std::size_t>(rank)] = (*group)->capabilities();
      if (!group.ok()) ADD_FAILURE() << group.error().message;
      together.arrive_and_wait();
      if (group.ok()) {
        const base::Status status = (*group)->join(capabilities);
        if (status.ok()) ++joined;
        if (!status.ok()) ADD_FAILURE() << status.error().message;
      }
      together.arrive_and_wait();
      if (joined == Count) body(rank, **group);
      together.arrive_and_wait();  // no group goes while others use it
    });
  }

  std::string folder;
  std::array<pid_t, Count> daemons = {};  // 0: none
};

// Each way has a group of its own. One multicast carries a block to all hosts.
TEST(NicBlocks, RowsOfHosts) {
  const std::array<unisono_nic_address, kHosts> addresses = {};
  nic::GroupAddresses group;
  group.id = {31, 1};
  group.ranks = addresses;
  group.multicast = nic::multicast_address(htonl(0xEFFF0009), 7);
  const auto gathers = make_block_row(1, group, NicWay::singly);
  const auto casts = make_block_row(1, group, NicWay::from_root);
  const auto joins = make_joined_row(1, group);
  ASSERT_TRUE(gathers.ok() && casts.ok() && joins.ok());
  EXPECT_NE(gathers->id.communicator, casts->id.communicator);
  EXPECT_NE(joins->id.communicator, casts->id.communicator);
  EXPECT_EQ(casts->route[1].targets, 1);
  EXPECT_EQ(casts->target[casts->route[1].first], UNISONO_NIC_TO_ALL);
  EXPECT_GT(joins->gives, 0U);
}

using NicGroups = NicGroupsOf<kHosts>;
using NicGroupsOfSixteen = NicGroupsOf<16>;

// Numbers of very different sizes: each order of summation has another result.
std::vector<double> vector_of(int rank, int operation, std::size_t count) {
  base::Prng random(static_cast<std::uint64_t>(operation * 100 + rank));
  std::vector<double> vector(count);
  for (double& x : vector) x = (random.unit() - 0.5) * static_cast<double>(1 << random.below(30));
  return vector;
}

TEST_F(NicGroups, AllFourCollectives) {
  run([](int rank, NicGroup& group) {
    for (int operation = 0; operation < 100; ++operation) {
      const auto count = 1 + static_cast<std::size_t>(operation) * 29 % nic::kWordsMax;
      const int root = operation % kHosts;
      plan::NicShape shape;
      shape.type = arith::Type::float64;
      shape.count = 1;
      shape.root = root;
      // Rank 0 combines its own with those of ranks 1 and 2, in this order.
      std::vector<double> sum = vector_of(0, operation, count);
      for (int other = 1; other < kHosts; ++other) {
        const auto more = vector_of(other, operation, count);
        for (std::size_t i = 0; i < count; ++i) sum[i] += more[i];
      }
      const std::vector<double> own = vector_of(rank, operation, count);
      const std::vector<double> untouched(count, 42);
      for (const Collective collective : {Collective::allreduce, Collective::reduce,
                                          Collective::broadcast, Collective::barrier}) {
        shape.collective = collective;
        std::vector<double> output = untouched;
        plan::NicCall call =
            *plan::lower_call(shape, rank);  // also of those that processes do faster
        call.count = static_cast<std::int64_t>(count);
        call.bytes = collective == Collective::barrier ? 0 : count * sizeof(double);
        if (call.gives != 0) call.gives = call.bytes;
        const base::Status done = run_in_nic(group, call, own.data(), output.data(), far_away());
        ASSERT_TRUE(done.ok()) << done.error().message;
        const std::vector<double> expected = collective == Collective::allreduce ? sum
                                             : collective == Collective::reduce && rank == root
                                                 ? sum
                                             : collective == Collective::broadcast && rank != root
                                                 ? vector_of(root, operation, count)
                                                 : untouched;
        ASSERT_EQ(std::memcmp(output.data(), expected.data(), count * sizeof(double)), 0)
            << schedule::collective_name(collective) << " " << operation;
      }
    }
  });
}

plan::NicCall allgather_of(int hosts, std::size_t bytes) {
  return plan::gather_off_trees({.ranks = hosts, .hosts = hosts}, bytes);
}

TEST_F(NicGroups, AllgathersOfAnyLength) {
  run([](int rank, NicGroup& group) {
    ASSERT_TRUE(group.gathers());
    for (int operation = 0; operation < 60; ++operation) {
      const auto count = static_cast<std::size_t>(operation * operation);
      std::vector<double> expected;
      for (int other = 0; other < kHosts; ++other) {
        const auto block = vector_of(other, operation, count);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      const auto own = vector_of(rank, operation, count);
      std::vector<double> result(count * kHosts, 42);
      const base::Status done = run_in_nic(group, allgather_of(kHosts, count * sizeof(double)),
                                           own.data(), result.data(), far_away());
      ASSERT_TRUE(done.ok()) << done.error().message;
      ASSERT_EQ(result, expected) << operation;
      const plan::NicCall barrier = *plan::lower_call({}, rank);
      ASSERT_TRUE(run_in_nic(group, barrier, nullptr, nullptr, far_away()).ok())
          << "the tree is there too";
    }
  });
}

// With many ranks, short blocks are joined, and longer ones in between are not. A rank names all
// blocks that it lacks: that of rank 2 would have come to rank 15 with that of rank 1.
TEST_F(NicGroupsOfSixteen, AllgathersOfShortBlocksAndOthers) {
  constexpr int kRanks = 16;
  ASSERT_TRUE(allgather_of(kRanks, sizeof(double)).joins);
  ASSERT_FALSE(allgather_of(kRanks, 100 * sizeof(double)).joins);
  run([&](int rank, NicGroup& group) {
    for (int operation = 0; operation < 40; ++operation) {
      const std::size_t count = operation % 5 == 4 ? 100 : 1;
      std::vector<double> expected;
      for (int other = 0; other < kRanks; ++other) {
        const auto block = vector_of(other, operation, count);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      const auto own = vector_of(rank, operation, count);
      std::vector<double> result(count * kRanks, 42);
      const base::Status done = run_in_nic(group, allgather_of(kRanks, count * sizeof(double)),
                                           own.data(), result.data(), far_away());
      ASSERT_TRUE(done.ok()) << done.error().message;
      ASSERT_EQ(result, expected) << operation;
    }
    if (rank == 1) return;
    const std::array<std::byte, 4> block = {};
    std::array<std::byte, 4 * kRanks> result = {};
    const auto status = run_in_nic(group, allgather_of(kRanks, block.size()), block.data(),
                                   result.data(), base::now_ns() + 200 * base::kMillisecond);
    ASSERT_FALSE(status.ok());
    const std::string& message = status.error().message;
    const std::string ranks = rank == 0 ? " 1, which" : rank == 15 ? " 1 2, which" : "";
    EXPECT_NE(message.find("lacks the blocks of hosts" + ranks), std::string::npos) << message;
    EXPECT_NE(message.find(", which may wait for each other in time"), std::string::npos)
        << message;
  });
}

TEST_F(NicGroups, AnAllgatherSaysWhoDidNotCome) {
  run([&](int rank, NicGroup& group) {
    if (rank == 1) return;
    const std::array<std::byte, 4> block = {};
    std::array<std::byte, 4 * kHosts> result = {};
    const auto status = run_in_nic(group, allgather_of(kHosts, block.size()), block.data(),
                                   result.data(), base::now_ns() + 50 * base::kMillisecond);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "NIC path: an allgather on host " + std::to_string(rank) +
                                          " lacks the blocks of hosts 1 in time");
  });
}

TEST_F(NicGroups, ADaemonThatDiesIsAnErrorOnItsHost) {
  std::atomic<int> failed = 0;
  run([&](int rank, NicGroup& group) {
    const plan::NicCall barrier = *plan::lower_call({}, rank);
    ASSERT_TRUE(run_in_nic(group, barrier, nullptr, nullptr, far_away()).ok());
    if (rank == 0) {
      kill_daemon(0);
      // Whether the others have their results before the kernel has taken the program away is open;
      // rank 0 cannot have its own without them.
    }
    base::Status status = base::success();
    while (status.ok()) {
      // A rank whose own daemon lives gets no notice from it, so it waits no longer than this.
      const std::int64_t deadline =
          rank == 0 ? far_away() : base::now_ns() + 200 * base::kMillisecond;
      status = run_in_nic(group, barrier, nullptr, nullptr, deadline);
    }
    ++failed;
    EXPECT_EQ(status.error().code, rank == 0 ? base::Code::system : base::Code::timeout)
        << status.error().message;
    EXPECT_FALSE(run_in_nic(group, barrier, nullptr, nullptr, far_away()).ok())
        << "it stays of no use";
  });
  EXPECT_EQ(failed, kHosts);
}

// Split-phase: once all have started, no process of any rank is needed for the results.
TEST_F(NicGroups, StartedOperationsEndWhileTheirRanksDoOtherWork) {
  std::barrier<> all_started(kHosts);
  run([&](int rank, NicGroup& group) {
    for (int operation = 0; operation < 20; ++operation) {
      const std::int64_t own = 1 << rank;
      std::array<std::int64_t, kHosts> output = {-1, -1, -1};
      plan::NicShape shape;
      shape.collective = operation % 2 == 0 ? Collective::allreduce : Collective::allgather;
      shape.count = 1;
      shape.ranks = kHosts;
      const auto started = group.start(*plan::lower_call(shape, rank), &own, output.data());
      ASSERT_TRUE(started.ok()) << started.error().message;
      EXPECT_EQ(output[0], -1);
      all_started.arrive_and_wait();
      for (;;) {
        const auto done = group.poll(**started);
        ASSERT_TRUE(done.ok()) << done.error().message;
        if (*done) break;
        ASSERT_TRUE(group.repair().ok());
        std::this_thread::yield();
      }
      ASSERT_TRUE(group.take(**started).ok());
      const std::array<std::int64_t, kHosts> expected =
          operation % 2 == 0 ? std::array<std::int64_t, kHosts>{7, -1, -1}
                             : std::array<std::int64_t, kHosts>{1, 2, 4};
      ASSERT_EQ(output, expected) << operation;
    }
  });
}

// All kinds at once: packets of several operations are on their way at the same time, and each rank
// takes the results in another order.
TEST_F(NicGroups, SeveralOperationsAreInFlight) {
  constexpr std::size_t kMost = nic::kInFlightMax;
  std::array<std::atomic<std::uint64_t>, kHosts> most_in_flight = {};
  std::array<std::atomic<int>, kHosts> casts = {};
  run([&](int rank, NicGroup& group) {
    base::Prng random(static_cast<std::uint64_t>(rank));
    struct Started {
      int number = 0;
      int root = -1;  // of a broadcast
      NicFlight* flight = nullptr;
      std::vector<double> own, output;
    };
    std::vector<std::unique_ptr<Started>> in_flight;
    // From one word to the longest vector, and allgathers of up to two packets. The roots of
    // broadcasts multicast their blocks.
    const auto call_of = [&](int number) {
      const auto count = static_cast<std::size_t>(1 + number * 37 % (number % 3 == 1 ? 300 : 700));
      plan::NicShape shape;
      const bool only_broadcasts = number > 200;  // with several acknowledgements
      if (number % 3 == 1 && !only_broadcasts) {
        return std::pair(allgather_of(kHosts, count * sizeof(double)), count);
      }
      if (number % 7 == 3 && !only_broadcasts)
        return std::pair(*plan::lower_call(shape, rank), std::size_t{0});
      if (number % 4 == 2 || only_broadcasts) {
        shape = {.collective = Collective::broadcast, .root = number % kHosts};
        shape.count = static_cast<std::int64_t>(1 + count % UNISONO_NIC_WORDS_MAX);
        return std::pair(*plan::lower_call(shape, rank), static_cast<std::size_t>(shape.count));
      }
      shape.collective = Collective::allreduce;
      shape.type = arith::Type::float64;
      shape.count = 1;
      plan::NicCall call = *plan::lower_call(shape, rank);
      call.count = static_cast<std::int64_t>(count);
      call.bytes = call.gives = count * sizeof(double);
      return std::pair(call, count);
    };
    int started = 0;
    int taken = 0;
    constexpr int kOperations = 300;
    while (taken < kOperations) {
      while (started < kOperations) {
        const auto [call, count] = call_of(started);
        if (!group.may_start(call)) break;
        auto next = std::make_unique<Started>();
        next->number = started++;
        next->root = call.sender;
        next->own = vector_of(rank, next->number, count);
        next->output.assign(count * (call.gathers ? kHosts : 1), 42);
        const auto flight = group.start(call, next->own.data(), next->output.data());
        ASSERT_TRUE(flight.ok()) << flight.error().message;
        next->flight = *flight;
        in_flight.push_back(std::move(next));
        auto& most = most_in_flight[static_cast<std::size_t>(rank)];
        most = std::max<std::uint64_t>(most, in_flight.size());
        if (random.below(4) == 0) break;
      }
      ASSERT_LE(in_flight.size(), kMost);
      if (in_flight.empty()) {  // an acknowledgement is under way
        ASSERT_TRUE(group.repair().ok());
        std::this_thread::yield();
        continue;
      }
      const std::size_t any = random.below(in_flight.size());
      Started& one = *in_flight[any];
      const auto done = group.poll(*one.flight);
      ASSERT_TRUE(done.ok()) << done.error().message;
      if (!*done) {
        for (const auto& other : in_flight) ASSERT_TRUE(group.poll(*other->flight).ok());
        ASSERT_TRUE(group.repair().ok());
        std::this_thread::yield();
        continue;
      }
      const bool gathers = one.flight->awaits_blocks();
      casts[static_cast<std::size_t>(rank)] += one.flight->is_casting() ? 1 : 0;
      ASSERT_TRUE(group.take(*one.flight).ok());
      std::vector<double> expected;
      for (int other = 0; other < kHosts; ++other) {
        auto more = vector_of(other, one.number, one.own.size());
        if (one.root == rank) std::ranges::fill(more, 42);
        if (one.root >= 0) {
          if (other == one.root) expected = more;
        } else if (gathers || other == 0) {
          expected.insert(expected.end(), more.begin(), more.end());
        } else {
          for (std::size_t i = 0; i < more.size(); ++i) expected[i] += more[i];
        }
      }
      ASSERT_EQ(one.output.size(), expected.size());
      ASSERT_TRUE(expected.empty() || std::memcmp(one.output.data(), expected.data(),
                                                  expected.size() * sizeof(double)) == 0)
          << one.number;
      in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(any));
      ++taken;
    }
  });
  for (const auto& most : most_in_flight) EXPECT_EQ(most, kMost);
  for (const auto& of_rank : casts) EXPECT_GT(of_rank, 100);
}

TEST_F(NicGroups, WhatIsGivenUpTouchesNoBuffer) {
  std::barrier<> together(kHosts);
  run([&](int rank, NicGroup& group) {
    for (const bool gathers : {false, true}) {
      if (group.failure()) break;
      std::int64_t own = 1;
      std::array<std::int64_t, kHosts> output = {-1, -1, -1};
      plan::NicShape shape;
      shape.collective = gathers ? Collective::allgather : Collective::allreduce;
      shape.count = 1;
      shape.ranks = kHosts;
      const plan::NicCall call = *plan::lower_call(shape, rank);
      const bool gives_up = gathers && rank == 0;
      NicFlight* flight = nullptr;
      if (rank == 0) {
        const auto started = group.start(call, &own, output.data());
        ASSERT_TRUE(started.ok());
        flight = *started;
        ASSERT_FALSE(*group.poll(*flight));
        EXPECT_EQ(flight->describe(),
                  gathers ? "an allgather on host 0 lacks the blocks of hosts 1 2"
                          : "operation 0 on host 0 lacks a contribution of hosts 1 2");
      }
      if (gives_up) group.give_up({base::Code::cancelled, "enough"});
      together.arrive_and_wait();
      if (rank != 0) {
        const auto started = group.start(call, &own, output.data());
        ASSERT_TRUE(started.ok());
        flight = *started;
      }
      while (!gives_up) {
        const auto done = group.poll(*flight);
        ASSERT_TRUE(done.ok()) << done.error().message;
        if (*done) break;
        ASSERT_TRUE(group.repair().ok());
        std::this_thread::yield();
      }
      together.arrive_and_wait();
      if (!gives_up) {
        EXPECT_TRUE(group.take(*flight).ok());
        continue;
      }
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(group.poll(*flight).error().message, "enough");
        EXPECT_EQ(group.take(*flight).error().message, "enough");
        EXPECT_EQ(group.start(call, &own, output.data()).error().code, base::Code::cancelled);
      }
      EXPECT_EQ(output, (std::array<std::int64_t, kHosts>{-1, -1, -1}));
    }
  });
}

bool is_asleep(pid_t thread) {
  const auto record = base::read_process(thread);
  return record.has_value() && record->state == 'S';
}

// It wakes now and then to check for lost packets, and not more often.
TEST_F(NicGroups, WhoSleepsIsWokenByItsResult) {
  std::array<std::atomic<pid_t>, kHosts> threads = {};
  std::atomic<int> entered = 0;
  run([&](int rank, NicGroup& group) {
    threads[static_cast<std::size_t>(rank)] = gettid();
    const plan::NicCall barrier = *plan::lower_call({}, rank);
    for (int operation = 0; operation < 4; ++operation) {
      const bool late = rank == operation % kHosts;
      // How long the others look and yield before they sleep is the machine's to say.
      const auto others_sleep = [&] {
        if (entered < operation * kHosts + kHosts - 1) return false;
        return std::ranges::count_if(threads, is_asleep) == kHosts - 1;
      };
      while (late && !others_sleep()) usleep(1000);
      ++entered;
      const std::int64_t from_ns = base::now_ns();
      rusage before = {}, after = {};
      getrusage(RUSAGE_THREAD, &before);
      ASSERT_TRUE(run_in_nic(group, barrier, nullptr, nullptr, far_away()).ok());
      getrusage(RUSAGE_THREAD, &after);
      const std::int64_t naps = (base::now_ns() - from_ns) / (10 * base::kMillisecond);
      EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, naps + 5);
    }
  });
  std::uint64_t woken = 0;
  for (int host = 0; host < kHosts; ++host) {
    const auto client = nic::ServiceClient::connect(path(host));
    ASSERT_TRUE(client.ok()) << client.error().message;
    const auto status = (*client)->status();
    ASSERT_TRUE(status.ok()) << status.error().message;
    woken += status->counters[UNISONO_NIC_WOKEN];
    EXPECT_LE(status->counters[UNISONO_NIC_WOKEN], 4U);
    EXPECT_EQ(status->counters[UNISONO_NIC_NOT_WOKEN], 0U);
  }
  EXPECT_GE(woken, 2U) << "of 8 waits; one may just be looking around";
}

TEST_F(NicGroups, ARankThatDoesNotComeIsATimeout) {
  run([&](int rank, NicGroup& group) {
    if (rank == 1) return;
    const auto status = run_in_nic(group, *plan::lower_call({}, rank), nullptr, nullptr,
                                   base::now_ns() + 50 * base::kMillisecond);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message,
              rank == 0
                  ? "NIC path: operation 0 on host 0 lacks a contribution of hosts 1 2 in time"
                  : "NIC path: operation 0 on host 2 lacks the result of host 0 in time");
  });
}

// Packets that agree are followed by those that do not.
TEST_F(NicGroups, RanksThatDisagreeInALaterPacketGetNoSum) {
  run([&](int rank, NicGroup& group) {
    plan::NicShape shape;
    shape.collective = Collective::allreduce;
    shape.count = rank == 2 ? 500 : 600;
    const std::vector<std::int64_t> input(600, 1);
    std::vector<std::int64_t> output(600, -1);
    const auto status = run_in_nic(group, *plan::lower_call(shape, rank), input.data(),
                                   output.data(), base::now_ns() + 200 * base::kMillisecond);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(output, std::vector<std::int64_t>(600, -1));
    EXPECT_EQ(status.error().code, rank == 0 ? base::Code::mismatch : base::Code::timeout);
    if (rank == 0) {
      EXPECT_EQ(group.oldest().mismatching_rank().value_or(NicRank{-1, 0}).host, 2);
    }
  });
}

TEST_F(NicGroups, RanksThatDisagreeGetNoSum) {
  run([&](int rank, NicGroup& group) {
    plan::NicShape shape;
    shape.collective = Collective::allreduce;
    shape.count = rank == 1 ? 2 : 1;
    const std::array<std::int64_t, 2> input = {1, 1};
    std::array<std::int64_t, 2> output = {-1, -1};
    const auto status = run_in_nic(group, *plan::lower_call(shape, rank), input.data(),
                                   output.data(), base::now_ns() + 50 * base::kMillisecond);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(output[0], -1);
    EXPECT_EQ(status.error().code, rank == 0 ? base::Code::mismatch : base::Code::timeout);
  });
}

}  // namespace
}  // namespace unisono::engine::test::nic_group_test

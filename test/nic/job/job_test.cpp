// SPDX-License-Identifier: BSD-3-Clause
// Jobs whose communicators have a NIC path (nic_setup, nic_engine, nic_peers), with a rank on each
// of four hosts. The programs' counters prove which operations went by the NIC path.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "engine/nic/nic_broadcast.hpp"
#include "harness/scale.hpp"
#include "nic/job/allreduce_bits.hpp"
#include "nic/job/nic_job.hpp"

namespace unisono::harness::job_test {
namespace {

TEST_F(NicJob, EveryCollectiveIsRight) { expect_everything_right(); }

// Results as text, to be compared with those of another job.
class Digest {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    for (const std::byte byte : std::as_bytes(std::span(values))) {
      hash_ = (hash_ ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;  // FNV-1a
    }
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 14695981039346656037U;
};

template <class T>
void add_results(const NicRank& self, unisono_type_t type, unisono_op_t op, Digest& digest) {
  for (const std::size_t count : counts_of(sizeof(T))) {
    const auto input = numbers_of<T>(type * 100 + op * 10, self.rank, count);
    const auto n = static_cast<std::int64_t>(count);
    std::vector<T> blocking(count);
    std::vector<T> started(count);
    ASSERT_TRUE(
        succeeded(unisono_allreduce(input.data(), blocking.data(), n, type, op, self.world)));
    digest.add(blocking);
    unisono_request_t request = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_allreduce_start(input.data(), started.data(), n, type, op, self.world, &request)));
    ASSERT_TRUE(succeeded(unisono_wait(&request)));
    ASSERT_EQ(std::memcmp(blocking.data(), started.data(), count * sizeof(T)), 0)
        << "type " << type << " operator " << op << " count " << count;
    auto in_place = input;
    ASSERT_TRUE(
        succeeded(unisono_allreduce(UNISONO_IN_PLACE, in_place.data(), n, type, op, self.world)));
    ASSERT_EQ(in_place, blocking);
    for (int root = 0; root < self.ranks; ++root) {
      std::vector<T> at_root(count, T{42});
      ASSERT_TRUE(
          succeeded(unisono_reduce(input.data(), at_root.data(), n, type, op, root, self.world)));
      ASSERT_EQ(at_root, self.rank == root ? blocking : std::vector<T>(count, T{42}));
    }
  }
}

TEST_F(NicJob, TypesAndOperatorsHaveTheBitsOfTheHostEngine) {
  start_daemons();
  const Body body = [](const NicRank& self) {
    Digest digest;
    for (const unisono_op_t op : {UNISONO_SUM, UNISONO_MIN, UNISONO_MAX}) {
      ASSERT_NO_FATAL_FAILURE(add_results<std::int32_t>(self, UNISONO_INT32, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<std::uint32_t>(self, UNISONO_UINT32, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<std::int64_t>(self, UNISONO_INT64, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<std::uint64_t>(self, UNISONO_UINT64, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<float>(self, UNISONO_FLOAT32, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<double>(self, UNISONO_FLOAT64, op, digest));
    }
    for (const unisono_op_t op :
         {UNISONO_BITWISE_AND, UNISONO_BITWISE_OR, UNISONO_BITWISE_XOR, UNISONO_PROD}) {
      ASSERT_NO_FATAL_FAILURE(add_results<std::uint8_t>(self, UNISONO_UINT8, op, digest));
      ASSERT_NO_FATAL_FAILURE(add_results<std::int64_t>(self, UNISONO_INT64, op, digest));
    }
    self.line.say(digest.text());
    leave(self);
  };
  auto by_nic = start_job(body);
  std::vector<std::string> results;
  for (const HostProcess& rank : by_nic) results.push_back(rank.line().hear());
  expect_all_clean(by_nic);
  // 3 lengths of a packet and 2 of two, 3 allreduces and a reduce to each
  // root; and the trial.
  EXPECT_EQ(operations(), (3 * 6 + 4 * 2) * (3 + 2 * 2) * (3 + kHosts) + 1U);
  auto by_hosts = start_job(body, {{"UNISONO_NIC", "off"}});
  for (std::size_t rank = 0; rank < by_hosts.size(); ++rank) {
    EXPECT_EQ(by_hosts[rank].line().hear(), results[rank]) << "rank " << rank;
  }
  expect_all_clean(by_hosts);
}

// Blocking, split-phase and persistent calls are the same call for other ranks. Each rank may make
// an operation in another form, and all go by the NIC path.
TEST_F(NicJob, SplitPhaseAndPersistentCallsGoThereToo) {
  constexpr int kRounds = 60;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    std::int64_t own = 0, sum = 0;
    unisono_plan_t plan = nullptr;
    ASSERT_TRUE(succeeded(
        unisono_allreduce_plan(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world, &plan)));
    for (int i = 0; i < kRounds; ++i) {
      own = self.rank + i;
      sum = 0;
      switch ((self.rank + i) % 3) {
        case 0:
          ASSERT_TRUE(
              succeeded(unisono_allreduce(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)));
          break;
        case 1: {
          unisono_request_t request = nullptr;
          ASSERT_TRUE(succeeded(unisono_allreduce_start(&own, &sum, 1, UNISONO_INT64, UNISONO_SUM,
                                                        self.world, &request)));
          ASSERT_TRUE(succeeded(unisono_wait(&request)));
          break;
        }
        default:
          ASSERT_TRUE(succeeded(unisono_plan_start(plan)));
          ASSERT_TRUE(succeeded(unisono_plan_wait(plan)));
          break;
      }
      ASSERT_EQ(sum, 4 * i + 6);
    }
    ASSERT_TRUE(succeeded(unisono_plan_free(plan)));
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), kRounds + 1U);  // and the trial
}

// Several at once, beside operations of the host engine, and collected in another order.
TEST_F(NicJob, ManySplitPhaseCallsAtOnce) {
  constexpr int kRounds = 20, kAtOnce = 12;
  constexpr std::int64_t kLong = 5'000;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int i = 0; i < kRounds; ++i) {
      std::vector<std::vector<std::int64_t>> sums(kAtOnce);
      std::vector<unisono_request_t> requests(kAtOnce);
      for (int k = 0; k < kAtOnce; ++k) {
        // Every third one is too long for the NIC path.
        const std::int64_t count = k % 3 == 2 ? kLong : 1 + k;
        auto& vector = sums[static_cast<std::size_t>(k)];
        vector.assign(static_cast<std::size_t>(count), self.rank + i + k);
        ASSERT_TRUE(succeeded(unisono_allreduce_start(UNISONO_IN_PLACE, vector.data(), count,
                                                      UNISONO_INT64, UNISONO_SUM, self.world,
                                                      &requests[static_cast<std::size_t>(k)])));
      }
      for (int left = kAtOnce; left > 0; --left) {
        int index = -1;
        if (self.rank % 2 == 0) {
          ASSERT_TRUE(succeeded(unisono_wait_any(requests.data(), kAtOnce, &index)));
        } else {
          index = left - 1;
          ASSERT_TRUE(succeeded(unisono_wait(&requests[static_cast<std::size_t>(index)])));
        }
        const auto& vector = sums[static_cast<std::size_t>(index)];
        ASSERT_EQ(vector, std::vector<std::int64_t>(vector.size(), 4 * (i + index) + 6));
      }
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_EQ(operations(), kRounds * (kAtOnce - kAtOnce / 3) + 1U);
}

TEST_F(NicJob, ACancelledSplitPhaseCallEndsTheCommunicatorForAll) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    unisono_request_t request = nullptr;
    if (self.rank == 2) {
      ASSERT_TRUE(succeeded(unisono_barrier_start(self.world, &request)));
      ASSERT_TRUE(succeeded(unisono_cancel(&request)));
      self.line.say("cancelled");
    } else {
      self.line.hear();
      // The start fails if this rank knows of the cancellation already. Rank 2 had given its part:
      // the operation itself may have ended well.
      int error = unisono_barrier_start(self.world, &request);
      if (error == UNISONO_OK) error = unisono_wait(&request);
      EXPECT_TRUE(error == UNISONO_OK || error == UNISONO_ERROR_CANCELLED)
          << unisono_error_name(error) << ": " << unisono_last_error();
    }
    EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_CANCELLED, {"rank 2"}));
    unisono_finalize(self.world);
  });
  EXPECT_EQ(processes[2].line().hear(), "cancelled");
  for (const int rank : {0, 1, 3}) processes[static_cast<std::size_t>(rank)].line().say("go");
  expect_all_clean(processes);
}

TEST_F(NicJob, BroadcastsOfAnyTypeFromEveryRoot) {
  constexpr std::uint64_t kCalls = 200;
  constexpr std::uint64_t kAcknowledged = kCalls / engine::NicBroadcast::kInARow;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int i = 0; std::cmp_less(i, kCalls); ++i) {
      const int root = i % self.ranks;
      const auto count = static_cast<std::size_t>(1 + i * 7 % 1400);
      std::vector<std::uint8_t> expected(count);
      base::Prng random(static_cast<std::uint64_t>(i));
      for (auto& byte : expected) byte = static_cast<std::uint8_t>(random.next());
      auto buffer = self.rank == root ? expected : std::vector<std::uint8_t>(count);
      ASSERT_TRUE(succeeded(unisono_broadcast(buffer.data(), static_cast<std::int64_t>(count),
                                              UNISONO_UINT8, root, self.world)));
      ASSERT_EQ(buffer, expected);
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_LE(operations(), kAcknowledged + 1) << "and the trial's";
  EXPECT_GE(operations(), kAcknowledged) << "nobody waits for the last one";
  EXPECT_EQ(counted(UNISONO_NIC_BLOCK_SENT), kCalls + kHosts) << "and the trial's";
}

// A rooted collective that no rank waits for. If the root waited, no rank would continue: the
// others call after it has reported that it is done. The root does the same after them.
TEST_F(NicJob, WhoHasNothingToTakeWaitsForNobody) {
  environment_ = {{"UNISONO_NIC_ROOTED", "auto"}};
  start_daemons();
  constexpr int kRoot = 1;
  auto processes = start_job([](const NicRank& self) {
    const auto give = [&self] {
      std::int64_t value = self.rank == kRoot ? 17 : -1;
      ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, kRoot, self.world)));
      ASSERT_EQ(value, 17);
    };
    const auto reduce = [&self] {
      const std::int64_t value = self.rank;
      std::int64_t sum = 0;
      ASSERT_TRUE(succeeded(
          unisono_reduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, kRoot, self.world)));
      ASSERT_EQ(sum, self.rank == kRoot ? 6 : 0);
    };
    if (self.rank != kRoot) self.line.hear();
    ASSERT_NO_FATAL_FAILURE(give());
    if (self.rank == kRoot) {
      self.line.say("given");
      self.line.hear();
    }
    ASSERT_NO_FATAL_FAILURE(reduce());
    if (self.rank != kRoot) self.line.say("given");
    leave(self);
  });
  EXPECT_EQ(processes[kRoot].line().hear(), "given");
  const auto each_other = [&processes](const auto& act) {
    for (int rank = 0; std::cmp_less(rank, processes.size()); ++rank) {
      if (rank != kRoot) act(processes[static_cast<std::size_t>(rank)].line());
    }
  };
  each_other([](const Line& line) { line.say("go"); });
  each_other([](const Line& line) { EXPECT_EQ(line.hear(), "given"); });
  processes[kRoot].line().say("go");
  expect_all_clean(processes);
  EXPECT_EQ(operations(), 1U) << "the trial";
}

// Operations that start before, between and after others in the NIC path neither delay them nor are
// delayed. The same holds for long ones, other communicators, and late ranks.
TEST_F(NicJob, BothPathsKeepOneOrder) {
  constexpr int kRounds = harness::kSanitized ? 60 : 300;
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    base::Prng together(7);
    unisono_comm_t twin = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_dup(self.world, &twin)));
    constexpr std::int64_t kLong = 20'000;
    for (int i = 0; i < kRounds; ++i) {
      const std::int64_t value = self.rank + i;
      const std::int64_t sum = 4 * i + 6;
      const std::vector<std::int64_t> vector(kLong, value);
      std::vector<std::int64_t> sums(kLong);
      unisono_request_t request = nullptr;
      ASSERT_TRUE(succeeded(unisono_allreduce_start(
          vector.data(), sums.data(), kLong, UNISONO_INT64, UNISONO_SUM, self.world, &request)));
      if (i % 50 == self.rank) usleep(3000);
      for (const unisono_comm_t comm : {self.world, twin, self.world}) {
        const auto count = static_cast<std::int64_t>(1 + together.below(1000));
        std::vector<std::int64_t> own(static_cast<std::size_t>(count), value);
        ASSERT_TRUE(succeeded(unisono_allreduce(UNISONO_IN_PLACE, own.data(), count, UNISONO_INT64,
                                                UNISONO_SUM, comm)));
        ASSERT_EQ(own.front(), sum);
        ASSERT_EQ(own.back(), sum);
        if (together.below(2) == 0) {
          ASSERT_TRUE(succeeded(unisono_barrier(comm)));
        }
      }
      ASSERT_TRUE(succeeded(unisono_wait(&request)));
      ASSERT_EQ(sums.back(), sum);
    }
    ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_GT(operations(), 7U * kRounds / 3);
}

// Each rank is the last in one barrier. All others sleep then, and are stopped in their sleep. So
// the program finds all of them asleep, and the woken ones do not depend on their speed.
TEST_F(NicJob, WhoWaitsForLongIsWokenByItsResultOnly) {
  environment_ = {{"UNISONO_DETECT_TIMEOUT", "300s"}, {"UNISONO_DETECT_TIMEOUT_HOSTS", "300s"}};
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int late = 0; late < self.ranks; ++late) {
      if (self.rank == late) {
        self.line.say("is late");
        self.line.hear();
      }
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      self.line.say("has the result");
      self.line.hear();
    }
    leave(self);
  });
  const auto woken = [this](int host) { return counted(host, UNISONO_NIC_WOKEN); };
  for (int late = 0; late < kHosts; ++late) {
    const HostProcess& last = processes[static_cast<std::size_t>(late)];
    ASSERT_EQ(last.line().hear(), "is late");
    std::vector<std::uint64_t> before;
    std::vector<pid_t> stopped(kHosts);
    for (int host = 0; host < kHosts; ++host) {
      const auto at = static_cast<std::size_t>(host);
      before.push_back(woken(host));
      if (host == late) continue;
      stopped[at] = stop_in_its_sleep(processes[at], host);
      ASSERT_GT(stopped[at], 0) << "it has ended";
      EXPECT_EQ(woken(host), before.back()) << "by contributions of others";
    }
    last.line().say("go");
    EXPECT_EQ(last.line().hear(), "has the result") << "nobody else had to be awake";
    for (int host = 0; host < kHosts; ++host) {
      const HostProcess& rank = processes[static_cast<std::size_t>(host)];
      if (host == late) continue;
      // It reaches this host by a packet of its own.
      while (nic::test::has_armed_waiter(daemon_on(host))) std::this_thread::yield();
      EXPECT_EQ(woken(host), before[static_cast<std::size_t>(host)] + 1) << host;
      ASSERT_EQ(kill(stopped[static_cast<std::size_t>(host)], SIGCONT), 0);
      EXPECT_EQ(rank.line().hear(), "has the result");
    }
    for (const HostProcess& rank : processes) rank.line().say("next");
  }
  expect_all_clean(processes);
  EXPECT_EQ(counted(UNISONO_NIC_NOT_WOKEN), 0U);
}

TEST_F(NicJob, CommunicatorsComeAndGo) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    for (int round = 0; round < 20; ++round) {
      unisono_comm_t part = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_split(self.world, self.rank % 2, -self.rank, &part)));
      unisono_comm_t twin = nullptr;
      ASSERT_TRUE(succeeded(unisono_comm_dup(part, &twin)));
      for (int i = 0; i < round; ++i) {
        std::int64_t sum = self.rank;
        ASSERT_TRUE(succeeded(
            unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, twin)));
        ASSERT_EQ(sum, self.rank % 2 == 0 ? 2 : 4);
      }
      ASSERT_TRUE(succeeded(unisono_comm_free(part)));
      ASSERT_TRUE(succeeded(unisono_comm_free(twin)));
    }
    leave(self);
  });
  expect_all_clean(processes);
  EXPECT_GT(operations(), 100U);
  for (int host = 0; host < kHosts; ++host) EXPECT_EQ(status(host).groups, 0U) << host;
}

// All do without it: a host that has no daemon, a setting. (A communicator of the other hosts only
// may use it.)
TEST_F(NicJob, WithoutAllHostsNobodyUsesIt) {
  start_daemons(3);
  const auto expect_without = [this](const Environment& environment) {
    auto processes = start_job(
        [](const NicRank& self) {
          for (int root = 0; root < self.ranks; ++root) {
            ASSERT_NO_FATAL_FAILURE(check_reductions(self, 1 + 50 * root, root));
          }
          ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
          leave(self);
        },
        environment);
    expect_all_clean(processes);
    EXPECT_EQ(operations(), 0U);
  };
  expect_without({});
  expect_without({{"UNISONO_NIC", "on"}});
  start_daemons();
  expect_without({{"UNISONO_NIC", "off"}});
}

// The victim ends, or hangs, while the others wait for it in the NIC path.
void expect_loss(const NicRank& self, int victim, int signal, const std::string& how) {
  ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
  lose(self, victim, signal);
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST,
                     {"rank " + std::to_string(victim), how, "in the NIC path"}));
  EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST));
  unisono_comm_t rest = nullptr;
  ASSERT_TRUE(succeeded(unisono_shrink(self.world, &rest)));
  std::int64_t sum = 1;
  EXPECT_TRUE(
      succeeded(unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, rest)));
  EXPECT_EQ(sum, self.ranks - 1);
  leave(self);
}

TEST_F(NicJob, ALostRankIsNamed) {
  start_daemons();
  for (const int victim : {3, 0}) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      auto processes = start_job([victim, signal](const NicRank& self) {
        expect_loss(self, victim, signal, "it does not answer");
      });
      expect_all_clean_but(processes, victim);
    }
  }
}

TEST_F(NicJob, ARankThatLeavesIsNamed) {
  start_daemons();
  auto processes = start_job([](const NicRank& self) {
    ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
    if (self.rank != 2) {
      EXPECT_TRUE(failed(unisono_barrier(self.world), UNISONO_ERROR_RANK_LOST, {"rank 2"}));
    }
    unisono_finalize(self.world);
  });
  expect_all_clean(processes);
}

// Its host's rank tells all; a communicator without the NIC path goes on.
TEST_F(NicJob, ADaemonThatEndsIsToldToAll) {
  for (const int host : {1, 0}) {
    start_daemons();
    auto processes = start_job([](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      self.line.say("ready");
      self.line.hear();
      constexpr int kMost = 1'000'000;  // many times as many as fit until then
      int error = UNISONO_OK;
      for (int i = 0; i < kMost && error == UNISONO_OK; ++i) error = unisono_barrier(self.world);
      EXPECT_TRUE(failed(error, UNISONO_ERROR_SYSTEM, {"unisonod has ended", "NIC path"}));
      unisono_comm_t all = nullptr;
      ASSERT_TRUE(succeeded(unisono_shrink(self.world, &all)));
      std::int64_t sum = 1;
      EXPECT_TRUE(
          succeeded(unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT64, UNISONO_SUM, all)));
      EXPECT_EQ(sum, self.ranks);
      leave(self);
    });
    for (const auto& process : processes) EXPECT_EQ(process.line().hear(), "ready");
    for (const auto& process : processes) process.line().say("go");
    kill_daemon(host);
    expect_all_clean(processes);
  }
}

// The daemon lives, and does not notice: packets received at a leaf, or at the root, are lost from
// some moment on. (A doorbell packet that is not intercepted is repaired: the parent asks.)
TEST_F(NicJob, AProgramThatSomebodyDetachesIsAnErrorForAll) {
  for (const int host : {2, 0}) {
    SCOPED_TRACE(host);
    start_daemons();
    auto processes = start_job([](const NicRank& self) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world)));
      self.line.say("ready");
      self.line.hear();
      // Others may have the result of the first that one of them lacks.
      int error = UNISONO_OK;
      for (int call = 0; call < 3 && error == UNISONO_OK; ++call) {
        error = unisono_barrier(self.world);
      }
      EXPECT_TRUE(failed(error, UNISONO_ERROR_SYSTEM,
                         {"gets no further", "The network drops packets of the NIC path"}));
      unisono_finalize(self.world);
    });
    for (const auto& process : processes) EXPECT_EQ(process.line().hear(), "ready");
    EXPECT_TRUE(nic::test::detach_program(daemon_on(host), 0));
    spoil();
    for (const auto& process : processes) process.line().say("go");
    expect_all_clean(processes);
  }
}

TEST_F(NicJob, CallsThatDifferAreFound) {
  start_daemons();
  std::vector<std::int64_t> values(1000, 1);
  // Within the NIC path: another length, another operator, another root.
  expect_difference([&values](const NicRank& self) {
    return unisono_allreduce(UNISONO_IN_PLACE, values.data(), self.rank == 1 ? 2 : 1, UNISONO_INT64,
                             UNISONO_SUM, self.world);
  });
  expect_difference([&values](const NicRank& self) {
    return unisono_allreduce(UNISONO_IN_PLACE, values.data(), 1, UNISONO_INT64,
                             self.rank == 3 ? UNISONO_MAX : UNISONO_SUM, self.world);
  });
  expect_difference([&values](const NicRank& self) {
    std::int64_t sum = 0;
    return error_so_far(self, unisono_reduce(values.data(), &sum, 1, UNISONO_INT64, UNISONO_SUM,
                                             self.rank == 2 ? 1 : 0, self.world));
  });
  // In different numbers of packets: more, fewer, and none.
  for (const int odd : {0, 2}) {
    for (const auto& [of_odd, of_others] :
         {std::pair{600, 200}, {200, 600}, {600, 700}, {1, 350}}) {
      expect_difference([&values, odd, long_one = of_odd, other = of_others](const NicRank& self) {
        return unisono_allreduce(UNISONO_IN_PLACE, values.data(),
                                 self.rank == odd ? long_one : other, UNISONO_INT64, UNISONO_SUM,
                                 self.world);
      });
    }
    expect_difference([&values, odd](const NicRank& self) {
      if (self.rank == odd) return unisono_barrier(self.world);
      std::vector<std::int64_t> least(700);
      return error_so_far(self, unisono_reduce(values.data(), least.data(), 700, UNISONO_INT64,
                                               UNISONO_MIN, 2, self.world));
    });
  }
  // One in the NIC path, the other not: too long for it.
  expect_difference([&values](const NicRank& self) {
    return unisono_allreduce(UNISONO_IN_PLACE, values.data(), self.rank == 1 ? 1000 : 1,
                             UNISONO_INT64, UNISONO_SUM, self.world);
  });
}

TEST_F(NicJob, ADeadlineHolds) {
  start_daemons();
  expect_deadline();
}

}  // namespace
}  // namespace unisono::harness::job_test

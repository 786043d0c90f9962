// SPDX-License-Identifier: BSD-3-Clause
// A sender learns whether all hosts have what it has multicast (multicast_results): if a host is
// lost before, a later call of the sender fails, and all members learn of it. Hosts of a rank each,
// in one thread, in virtual time.
#include "comm/operations/multicast_results.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "arith/type.hpp"
#include "harness/world.hpp"

namespace unisono::comm::multicast_results_test {
namespace {

using base::Code;
using base::Status;
using job::RankState;
using test::World;
using test::WorldOptions;

constexpr int kRanks = 4;
constexpr int kVictim = 2;
using Values = std::vector<std::int64_t>;

WorldOptions options_of(const std::string& algorithm) {
  WorldOptions options;
  options.ranks = kRanks;
  options.hosts = {0, 1, 2, 3};
  options.virtual_datagrams = true;
  options.datagrams.multicast = true;
  options.settings = {{"UNISONO_ALGORITHM", algorithm}};
  return options;
}

plan::Call broadcast(std::size_t count) {
  plan::Call call;
  call.collective = schedule::Collective::broadcast;
  call.count = static_cast<std::int64_t>(count);
  call.type = static_cast<int>(arith::Type::int64);
  call.element_bytes = sizeof(std::int64_t);
  return call;
}

class Senders {
 public:
  explicit Senders(std::size_t count, const std::string& algorithm = "broadcast: flat")
      : world(options_of(algorithm)), call_(broadcast(count)) {
    for (Values& each : buffers_) each.assign(count, 0);
  }
  ~Senders() { world.part(); }

  // All members make the call, and have what the root has sent.
  void broadcast_to_all() {
    fill_root();
    EXPECT_TRUE(world.run(call_, inputs(), outputs()));
    for (const Values& each : buffers_) EXPECT_EQ(each, buffers_[0]);
  }
  // The root alone: it does not wait for the others.
  Status send() {
    fill_root();
    const Status started = start(0, sent_);
    if (started) {
      EXPECT_EQ(sent_.state, Pending::State::complete);
    }
    return started;
  }
  Status start(int rank, Pending& pending) {
    auto plan = world.at(rank).plan(call_);
    if (!plan) return plan.error();
    auto& buffer = buffers_[static_cast<std::size_t>(rank)];
    return world.at(rank).start(**plan, buffer.data(), buffer.data(), pending);
  }
  const plan::Plan& plan_at(int rank) { return **world.at(rank).plan(call_); }
  const Values& buffer(int rank) const { return buffers_[static_cast<std::size_t>(rank)]; }

  // The root asks for the answers of all.
  void settle() {
    const auto is_settled = [this] { return world.reliable_at(0).settle(); };
    for (int i = 0; i < 10'000 && !is_settled(); ++i) world.step();
    EXPECT_TRUE(world.reliable_at(0).is_settled());
  }
  // Rank `finder` finds that the victim has gone.
  void lose(int finder, RankState how) {
    world.datagrams()->kill(kVictim);
    job::Job& job = world.at(finder).members().job();
    ASSERT_TRUE(job.losses().mark_gone(kVictim, how));
    job.events().raise();
  }
  // The living ranks go on, and look for failures, until that is so.
  template <class Ended>
  bool go_on_until(const Ended& ended) {
    for (int i = 0; i < 100'000; ++i) {
      if (ended()) return true;
      const int rank = world.random_rank();
      if (!world.datagrams()->advance()) {
        world.datagrams()->advance_to(world.datagrams()->now_ns() + 20'000);
      }
      if (rank == kVictim) continue;
      world.at(rank).progress();
      world.at(rank).watchdog().examine(true);
    }
    return false;
  }

  World world;

 private:
  void fill_root() { std::ranges::fill(buffers_[0], ++value_); }
  std::vector<const void*> inputs() const {
    std::vector<const void*> all;
    for (const Values& each : buffers_) all.push_back(each.data());
    return all;
  }
  std::vector<void*> outputs() {
    std::vector<void*> all;
    for (Values& each : buffers_) all.push_back(each.data());
    return all;
  }

  plan::Call call_;
  std::array<Values, kRanks> buffers_;
  std::int64_t value_ = 0;
  Pending sent_;
};

void expect_names(const Status& status, const std::string& operation) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::rank_lost) << status.error().message;
  for (const std::string& part : {std::string("rank 2 is lost"), operation}) {
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  }
}

TEST(MulticastResults, PlansSayWhoSends) {
  Senders flat(1);
  Senders tree(1, "broadcast: fnomial");
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(flat.plan_at(rank).multicasts, rank == 0);
    EXPECT_EQ(flat.plan_at(rank).has_extras, rank == 0);
    EXPECT_FALSE(tree.plan_at(rank).multicasts);
  }
}

// The message has one packet, several, or many.
TEST(MulticastResults, WhatALostHostMayLackFailsTheNextCall) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{5000}}) {
    SCOPED_TRACE(count);
    Senders job(count);
    job.broadcast_to_all();
    job.settle();
    ASSERT_TRUE(job.send().ok());  // operation 1
    std::array<Pending, kRanks> received;
    for (const int rank : {1, 3}) {
      ASSERT_TRUE(job.start(rank, received[static_cast<std::size_t>(rank)]).ok());
    }
    job.lose(0, RankState::silent);
    expect_names(job.send(), "rank 0 multicast in operation 1 ");
    const auto all_know = [&] {
      return std::ranges::all_of(std::array{0, 1, 3}, [&](int rank) {
        return job.world.at(rank).failures().has_failed() &&
               received[static_cast<std::size_t>(rank)].state != Pending::State::running;
      });
    };
    received[0].state = Pending::State::complete;
    EXPECT_TRUE(job.go_on_until(all_know)) << "a member does not learn of it";
    for (const int rank : {1, 3}) {
      if (received[static_cast<std::size_t>(rank)].state == Pending::State::complete) {
        EXPECT_EQ(job.buffer(rank), Values(count, 2));
      }
      Pending next;
      expect_names(job.start(rank, next), "operation ");
    }
  }
}

TEST(MulticastResults, WhatAllHostsHaveIsNoFailure) {
  Senders job(1000);
  job.broadcast_to_all();
  job.settle();
  job.lose(0, RankState::silent);
  EXPECT_TRUE(job.send().ok()) << "all had the first one, and the second one begins only now";
}

TEST(MulticastResults, AHostThatHasLeftLacksNothing) {
  Senders job(1000);
  job.broadcast_to_all();
  job.lose(0, RankState::left);
  EXPECT_TRUE(job.send().ok());
}

// The loss reaches the sender from another host.
TEST(MulticastResults, ASenderLearnsOfALossThatAnotherHostFinds) {
  Senders job(1);
  job.broadcast_to_all();
  job.lose(3, RankState::silent);
  const auto knows = [&] { return job.world.at(0).members().state(kVictim) == RankState::silent; };
  EXPECT_TRUE(job.go_on_until(knows));
  EXPECT_FALSE(job.world.at(0).failures().has_failed()) << "nothing is in progress";
  expect_names(job.send(), "rank 0 multicast in operation 0 ");
}

// Also if that is many calls ago.
TEST(MulticastResults, TheFirstOfManyIsNamed) {
  constexpr int kCalls = 70;
  Senders job(1);
  for (int i = 0; i < 3; ++i) job.broadcast_to_all();
  job.settle();
  for (int i = 3; i < kCalls; ++i) job.broadcast_to_all();
  job.lose(0, RankState::silent);
  expect_names(job.send(), "rank 0 multicast in operation 3 ");
}

}  // namespace
}  // namespace unisono::comm::multicast_results_test

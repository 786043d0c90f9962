// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a world that die, hang or are cut off from each other at moments that a seed decides,
// and those who are left, who shrink their communicator and go on. In one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "harness/world.hpp"
#include "world/multicast_end.hpp"
#include "world/narrow_paths.hpp"

namespace unisono::test {

// A job's own clock was the machine's until it had begun. Virtual time begins later than the
// machine's in the last scenario of the longest run.
inline void watch_at(job::Job& job, std::int64_t virtual_ns) {
  constexpr std::int64_t kLongestRunNs = 1'000'000 * base::kSecond;
  static const std::int64_t begin_ns = base::now_ns() + kLongestRunNs;
  job.watch().look(begin_ns + virtual_ns);
}

// The state of one rank: nothing yet, shrink, and the result.
struct Survivor {
  bool shrinking = false;
  bool dead = false;
  std::optional<base::Error> error;
  std::unique_ptr<comm::Communicator> made;

  bool done() const { return dead || error || made; }
};

class Survivors {
 public:
  explicit Survivors(const WorldOptions& options)
      : world(options),
        hosts_(options.hosts),
        multicast_end_(world.prng()),
        narrow_paths_(world.prng()),
        ranks(static_cast<std::size_t>(options.ranks)) {
    hosts_.resize(ranks.size());
  }
  ~Survivors() { world.part(); }

  int size() const { return static_cast<int>(ranks.size()); }
  Survivor& at(int rank) { return ranks[static_cast<std::size_t>(rank)]; }
  std::int64_t now() { return world.datagrams() == nullptr ? 0 : world.datagrams()->now_ns(); }

  // Its process ends. The ranks of its host see it, at a moment of their own.
  void kill(int rank) {
    at(rank).dead = true;
    if (world.datagrams() != nullptr) world.datagrams()->kill(rank);
    unseen_.push_back(rank);
  }
  void cut(int left, int right) { world.datagrams()->cut(left, right); }

  // The rank's request for memory of this number, from now on, is refused.
  void refuse(int rank, int number) {
    world.memory_at(rank).refuse_where([this, rank, number](const char*) {
      const bool is_this = stepping_ == rank && requests_++ == number;
      was_refused_ |= is_this;
      return is_this;
    });
  }
  bool was_refused() const { return was_refused_; }

  // To the next arrival, or a moment on.
  void pass_time() {
    if (world.datagrams() != nullptr && !world.datagrams()->advance()) {
      world.datagrams()->advance_to(now() + 20'000);
    }
  }

  // One step of somebody.
  void step() {
    multicast_end_.step(world);
    narrow_paths_.step(world);
    pass_time();
    const int rank = world.random_rank();
    Survivor& self = at(rank);
    if (self.dead) return;
    stepping_ = rank;
    if (world.prng().below(8) == 0) watch(rank);
    world.at(rank).progress();
    if (self.done()) return;
    if (!self.shrinking) {
      if (world.prng().below(16) != 0) return;
      const base::Status begun = world.at(rank).begin_shrink();
      ASSERT_TRUE(begun.ok() || was_refused_) << begun.error().message;
      if (!begun) {
        self.error = begun.error();
        return;
      }
      self.shrinking = true;
    }
    auto turn = world.at(rank).step_shrink();
    if (!turn) {
      self.error = turn.error();
    } else if (*turn) {
      self.made = std::move(**turn);
    }
  }

  bool run(const std::function<bool()>& ended) {
    for (int steps = 0; steps < 2'000'000; ++steps) {
      if (ended()) return true;
      step();
    }
    return false;
  }
  bool run() {
    return run([this] { return std::ranges::all_of(ranks, &Survivor::done); });
  }

  // Those who have one have the same, and know their places in it; gives the first.
  comm::Communicator* expect_one_group() {
    comm::Communicator* first = nullptr;
    std::vector<bool> taken;
    for (Survivor& each : ranks) {
      if (!each.made) continue;
      if (first == nullptr) {
        first = each.made.get();
        taken.resize(static_cast<std::size_t>(first->size()));
      }
      EXPECT_EQ(each.made->members().job_ranks(), first->members().job_ranks());
      const auto place = static_cast<std::size_t>(each.made->rank());
      EXPECT_FALSE(taken[place]);
      taken[place] = true;
    }
    return first;
  }

  // An allreduce among those who have a communicator, if that is all its members; whether it is. It
  // ends also when one of them is taken for lost.
  bool expect_sums() {
    std::vector<comm::Communicator*> members;
    for (Survivor& each : ranks) {
      if (each.made && !each.dead) members.push_back(each.made.get());
    }
    if (members.empty() || std::ssize(members) != members[0]->size()) return false;
    expect_sum_of(members);
    return true;
  }

  // A waiting rank looks now and then for ranks that have died or are silent.
  void watch(int rank) {
    job::Job& job = world.at(rank).members().job();
    std::erase_if(unseen_, [&](int gone) {
      if (hosts_[static_cast<std::size_t>(gone)] != hosts_[static_cast<std::size_t>(rank)]) {
        return false;
      }
      if (job.losses().mark_gone(gone, job::RankState::dead)) job.events().raise();
      return true;
    });
    watch_at(job, now());
  }

  World world;

 private:
  void expect_sum_of(const std::vector<comm::Communicator*>& members) {
    plan::Call call;
    call.collective = schedule::Collective::allreduce;
    call.count = 100;
    call.element_bytes = sizeof(std::int64_t);
    call.type = static_cast<std::int32_t>(arith::Type::int64);
    call.op = static_cast<std::int32_t>(arith::Operator::sum);
    std::vector<comm::Pending> pending(members.size());
    std::vector<std::vector<std::int64_t>> in(members.size()), out(members.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      in[m].assign(100, members[m]->rank() + 1);
      out[m].assign(100, 0);
      auto plan = members[m]->plan(call);
      ASSERT_TRUE(plan.ok());
      ASSERT_TRUE(members[m]->start(**plan, in[m].data(), out[m].data(), pending[m]).ok());
    }
    const auto is_lost = [&](int other) {
      return std::ranges::any_of(members, [&](comm::Communicator* member) {
        return member->members().job().ranks().state(other) != job::RankState::present;
      });
    };
    const auto any_lost = [&] {
      return std::ranges::any_of(members[0]->members().job_ranks(), is_lost);
    };
    const auto ended = [&] {
      for (comm::Communicator* member : members) member->progress();
      return any_lost() || std::ranges::all_of(pending, [](const comm::Pending& p) {
               return p.state == comm::Pending::State::complete;
             });
    };
    EXPECT_TRUE(run(ended));
    const std::int64_t n = members[0]->size();
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (!any_lost()) {
        EXPECT_EQ(out[m], std::vector<std::int64_t>(100, n * (n + 1) / 2));
      }
    }
  }

  std::vector<int> hosts_;
  std::vector<int> unseen_;  // deaths that nobody has noticed
  int stepping_ = -1;        // whose step it is
  int requests_ = 0;         // for memory, of the rank to which some is refused
  bool was_refused_ = false;
  MulticastEnd multicast_end_;
  NarrowPaths narrow_paths_;

 public:
  std::vector<Survivor> ranks;
};

}  // namespace unisono::test

// SPDX-License-Identifier: BSD-3-Clause
// reservations.hpp and derive.cpp:
// Memory that is refused to one rank, at each of its requests in turn: every rank gets an error, or
// none does; nobody waits for ever; and what was taken from the job's memory is given back.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/agreement/consent.hpp"
#include "comm/start.hpp"
#include "harness/calls.hpp"
#include "harness/rank_threads.hpp"

namespace unisono::comm::refusal_test {
namespace {

using base::Error;
using base::Status;
using test::allreduce;
using test::RankThread;
using test::RankThreads;
using Communicators = std::vector<std::unique_ptr<Communicator>>;

const std::vector<std::vector<int>> kPlacements = {{0, 0, 0}, {0, 1, 1, 2}};

// The calls of each rank, which keeps what it makes.
using Body = std::function<Status(RankThread&, std::unique_ptr<Communicator>& made)>;

// The n-th request of one rank is refused, once.
class Refusal {
 public:
  explicit Refusal(int number) : number_(number) {}
  memory::JobMemory::Refuses hook() {
    // A rank that waits goes without an answer about failures, so that refusal is no error.
    return [this](const char* what) {
      return std::string_view(what) != "an answer about a failure" && seen_++ == number_;
    };
  }
  bool was_met() const { return seen_.load() > number_; }

 private:
  int number_;
  std::atomic<int> seen_{0};
};

std::string text_of(const std::vector<std::optional<Error>>& errors) {
  std::string text;
  for (std::size_t r = 0; r < errors.size(); ++r) {
    text += fmt::format("{}: {}\n", r, errors[r] ? errors[r]->message : "success");
  }
  return text;
}

std::vector<std::optional<Error>> run_on_all(RankThreads& ranks, Communicators& made,
                                             const Body& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(ranks.size()));
  made.resize(errors.size());
  ranks.run([&](RankThread& self) {
    const auto r = static_cast<std::size_t>(self.rank);
    if (self.is_dead) return;
    const Status status = body(self, made[r]);
    if (!status) errors[r] = status.error();
  });
  return errors;
}

bool none_failed(const std::vector<std::optional<Error>>& errors) {
  return std::ranges::none_of(errors, [](const auto& e) { return e.has_value(); });
}

// Between hosts a segment is free when its leader has heard of all, and looks.
void expect_given_out(RankThreads& ranks, const std::vector<std::int64_t>& before) {
  ranks.run([&](RankThread& self) {
    if (self.rank != 0) return;
    const std::int64_t deadline_ns = base::now_ns() + 20 * base::kSecond;
    while (ranks.given_out() != before && base::now_ns() < deadline_ns) {
      for (int r = 0; r < ranks.size(); ++r) {
        if (!ranks.at(r).is_dead) ranks.at(r).job->retired().reclaim();
      }
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(ranks.given_out(), before);
}

void end_all(RankThreads& ranks, Communicators& made) {
  ranks.run([&](RankThread& self) { made[static_cast<std::size_t>(self.rank)].reset(); });
}

// The error of each rank that lives, or all of their successes.
void expect_alike(RankThreads& ranks, const std::vector<std::optional<Error>>& errors,
                  std::optional<int> victim) {
  for (int r = 0; r < ranks.size(); ++r) {
    if (ranks.at(r).is_dead) continue;
    const auto& error = errors[static_cast<std::size_t>(r)];
    ASSERT_EQ(error.has_value(), victim.has_value()) << text_of(errors);
    if (!error) continue;
    EXPECT_EQ(error->code, base::Code::resources) << error->message;
    if (r == *victim) continue;
    const std::string name = fmt::format("rank {}", *victim);
    EXPECT_NE(error->message.find(name), std::string::npos) << error->message;
  }
}

// One refusal after the other, until a rank asks for memory less often than that. `prepare` is not
// disturbed.
void refuse_each(const std::vector<int>& hosts, const Body& prepare, const Body& body) {
  base::Prng prng(testing::UnitTest::GetInstance()->random_seed() + hosts.size());
  int refused = 0;
  for (int victim = 0; victim < static_cast<int>(hosts.size()); ++victim) {
    for (int number = 0;; ++number) {
      SCOPED_TRACE(fmt::format("{} ranks, request {} of rank {}", hosts.size(), number, victim));
      RankThreads ranks(hosts);
      ranks.run([&](RankThread& self) {
        const Status entered = ranks.enter(self);
        ASSERT_TRUE(entered.ok()) << entered.error().message;
      });
      Communicators made;
      auto errors = run_on_all(ranks, made, prepare);
      ASSERT_TRUE(none_failed(errors)) << text_of(errors);
      const auto before = ranks.given_out();
      Refusal refusal(number);
      ranks.at(victim).memory->refuse_where(refusal.hook());
      Communicators derived;
      // Only the first rank of a host asks for memory that all need: the victim has a start. It
      // begins when the victim's thread has got a core.
      std::atomic<std::int64_t> start_ends_ns =
          ranks.at(victim).is_dead ? 0 : std::numeric_limits<std::int64_t>::max();
      errors = run_on_all(ranks, derived, [&](RankThread& self, auto& own) {
        if (self.rank == victim) start_ends_ns = base::now_ns() + 50 * base::kMillisecond;
        while (self.rank != victim && !refusal.was_met() && base::now_ns() < start_ends_ns) {
          std::this_thread::yield();
        }
        return body(self, own);
      });
      ranks.at(victim).memory->refuse_where({});
      const bool was_met = refusal.was_met();
      expect_alike(ranks, errors, was_met ? std::optional(victim) : std::nullopt);
      refused += was_met ? 1 : 0;
      end_all(ranks, derived);
      expect_given_out(ranks, before);
      end_all(ranks, made);
      if (!was_met || testing::Test::HasFailure()) break;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

plan::Call barrier_call() {
  plan::Call call;
  call.collective = schedule::Collective::barrier;
  return call;
}

Status nothing(RankThread&, std::unique_ptr<Communicator>&) { return base::success(); }

// The last rank is lost.
Status lose_last(RankThread& self, std::unique_ptr<Communicator>&) {
  static_cast<void>(
      self.world->run(barrier_call(), nullptr, nullptr));  // others may be in it still
  if (self.rank == self.world->size() - 1) throw test::RankEnds();
  return base::success();
}

Status keep(base::Result<std::unique_ptr<Communicator>> from, std::unique_ptr<Communicator>& to) {
  if (!from) return from.error();
  to = std::move(*from);
  return base::success();
}

// So that the parent's own receive buffers are there.
Status warm_up(RankThread& self, std::unique_ptr<Communicator>&) {
  return self.world->run(barrier_call(), nullptr, nullptr);
}

TEST(Refusal, DupIsMadeOnAllRanksOrNone) {
  for (const auto& hosts : kPlacements) {
    refuse_each(hosts, warm_up, [](RankThread& self, std::unique_ptr<Communicator>& made) {
      return keep(self.world->duplicate(), made);
    });
  }
}

// Two groups and a rank that takes no part: they fail together.
TEST(Refusal, SplitIsMadeForAllGroupsOrNone) {
  for (const auto& hosts : {std::vector{0, 0, 0, 0, 0}, {0, 1, 2, 1, 0}}) {
    refuse_each(hosts, warm_up, [](RankThread& self, std::unique_ptr<Communicator>& made) {
      const int color = self.rank == 2 ? -1 : self.rank / 3;
      return keep(self.world->split(color, -self.rank), made);
    });
  }
}

TEST(Refusal, ShrinkIsMadeForAllSurvivorsOrNone) {
  for (const auto& hosts : {std::vector{0, 0, 0, 0}, {0, 1, 1, 2, 0}}) {
    refuse_each(hosts, lose_last, [](RankThread& self, std::unique_ptr<Communicator>& made) {
      return keep(self.world->shrink(), made);
    });
  }
}

std::string text_of_left(RankThreads& ranks, const std::vector<std::int64_t>& before) {
  std::string text;
  for (int host = 0; host < ranks.hosts(); ++host) {
    const auto h = static_cast<std::size_t>(host);
    text += fmt::format("host {}: {} bytes before, {} now, {} bytes real; ", host, before[h],
                        ranks.given_out()[h], ranks.real_bytes_from(host, before.front()));
  }
  return text;
}

// Nothing is left of the segments that were reserved after the world. On several hosts that is said
// of their pages. Words of other hosts that are still under way may make a few of them real again:
// failure notices, ends and leave records.
void expect_nothing_reserved(RankThreads& ranks, const std::vector<std::int64_t>& before) {
  const std::int64_t end_of_world = before.front();
  const std::int64_t late_bytes = 4 * sysconf(_SC_PAGESIZE);
  const auto is_free = [&] {
    if (!ranks.has_several_hosts()) return ranks.given_out() == before;
    for (int host = 0; host < ranks.hosts(); ++host) {
      if (ranks.has_living(host) && ranks.real_bytes_from(host, end_of_world) > late_bytes)
        return false;
    }
    return true;
  };
  ranks.run([&](RankThread& self) {
    if (self.is_dead || (self.rank != 0 && !ranks.at(0).is_dead)) return;
    const std::int64_t deadline_ns = base::now_ns() + 20 * base::kSecond;
    while (!is_free() && base::now_ns() < deadline_ns) {
      for (int r = 0; r < ranks.size(); ++r) {
        if (!ranks.at(r).is_dead) ranks.at(r).job->retired().reclaim();
      }
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(is_free()) << "a segment is left: " << text_of_left(ranks, before);
}

// A rank ends where it asks for memory the n-th time. The others get an error, or a communicator
// whose next call gives one; on one host all get the same. No segment is left.
void die_at_each(const std::vector<int>& hosts, int victim, const Body& prepare, const Body& body) {
  for (int number = 0;; ++number) {
    SCOPED_TRACE(fmt::format("{} ranks, rank {} dies at request {}", hosts.size(), victim, number));
    RankThreads ranks(hosts);
    Communicators made;
    ASSERT_TRUE(none_failed(run_on_all(ranks, made, [&](RankThread& self, auto& own) -> Status {
      UNISONO_TRY(ranks.enter(self));
      return prepare(self, own);
    })));
    const auto before = ranks.given_out();
    Refusal death(number);
    ranks.at(victim).memory->refuse_where([hook = death.hook()](const char* purpose) {
      if (hook(purpose)) throw test::RankEnds();
      return false;
    });
    auto errors = run_on_all(ranks, made, body);
    if (!death.was_met()) return end_all(ranks, made);
    int with_error = 0, living = 0;
    for (int r = 0; r < ranks.size(); ++r) {
      if (ranks.at(r).is_dead) continue;
      ++living;
      with_error += errors[static_cast<std::size_t>(r)] ? 1 : 0;
    }
    if (!ranks.has_several_hosts()) {
      EXPECT_TRUE(with_error == 0 || with_error == living) << text_of(errors);
    }
    Communicators none;
    errors = run_on_all(ranks, none, [&](RankThread& self, std::unique_ptr<Communicator>&) {
      const auto& own = made[static_cast<std::size_t>(self.rank)];
      return own ? own->run(barrier_call(), nullptr, nullptr) : base::success();
    });
    for (int r = 0; r < ranks.size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      const bool owns = !ranks.at(r).is_dead && made[i] != nullptr;
      const bool has_dead = owns && std::ranges::count(made[i]->members().job_ranks(), victim) != 0;
      EXPECT_EQ(errors[i].has_value(), has_dead) << text_of(errors);
    }
    end_all(ranks, made);
    expect_nothing_reserved(ranks, before);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Refusal, ADeathInADupLeavesNobodyWithACommunicatorThatHangs) {
  for (const auto& hosts : {std::vector{0, 0, 0}, {0, 1, 1, 2}, {0, 0, 1, 1}}) {
    for (const int victim : {0, 1, 2}) {
      die_at_each(hosts, victim, nothing,
                  [](RankThread& self, auto& made) { return keep(self.world->duplicate(), made); });
    }
  }
}

TEST(Refusal, ADeathInAShrinkLeavesNobodyWithACommunicatorThatHangs) {
  for (const auto& hosts : {std::vector{0, 0, 0, 0}, {0, 1, 1, 2, 0}, {0, 0, 1, 1, 2}}) {
    for (const int victim : {0, 1}) {
      die_at_each(hosts, victim, lose_last,
                  [](RankThread& self, auto& made) { return keep(self.world->shrink(), made); });
    }
  }
}

Body blocking(std::int64_t count) {
  return [count](RankThread& self, std::unique_ptr<Communicator>&) {
    const std::vector<double> in(static_cast<std::size_t>(count), 1);
    std::vector<double> out(in.size());
    return self.world->run(allreduce(count), in.data(), out.data());
  };
}

// A plan that is started twice.
Body split_phase(std::int64_t count) {
  return [count](RankThread& self, std::unique_ptr<Communicator>&) -> Status {
    const std::vector<double> in(static_cast<std::size_t>(count), 1);
    std::vector<double> out(in.size());
    Communicator& world = *self.world;
    const auto found = world.plan(allreduce(count));
    if (!found) return world.failures().refuse(found.error().code, found.error().message);
    const plan::Plan* const plan = *found;
    for (int i = 0; i < 2; ++i) {
      Pending pending;
      UNISONO_TRY(world.start(*plan, in.data(), out.data(), pending));
      Communicator* const all[] = {&world};
      Pending* const awaited[] = {&pending};
      Communicator::wait_any(all, awaited);
      if (pending.state != Pending::State::complete) return world.failures().tell();
    }
    return base::success();
  };
}

TEST(Refusal, AFirstCollectiveEndsAlikeOnAllRanks) {
  for (const auto& hosts : kPlacements) {
    for (const std::int64_t count : {1, 1 << 16, 1 << 18}) {  // the last goes in 16 segments
      SCOPED_TRACE(fmt::format("hosts {}, {} elements", testing::PrintToString(hosts), count));
      refuse_each(hosts, nothing, blocking(count));
      refuse_each(hosts, nothing, split_phase(count));
    }
  }
}

// Nobody takes part in it but the rank that asks.
TEST(Refusal, AQueryFailsWhereMemoryWasRefusedAndNowhereElse) {
  RankThreads ranks({0, 1, 1, 2});
  ranks.run([&](RankThread& self) {
    const Status entered = ranks.enter(self);
    ASSERT_TRUE(entered.ok()) << entered.error().message;
    self.world->words().publish(7);
    ASSERT_TRUE(self.world->run(barrier_call(), nullptr, nullptr).ok());
    Refusal refusal(0);
    if (self.rank == 1) {
      self.memory->refuse_where(refusal.hook());
      const auto refused = self.world->query(Comparison::equal, 7);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, base::Code::resources);
    }
    const auto holds = self.world->query(Comparison::equal, 7);
    ASSERT_TRUE(holds.ok()) << holds.error().message;
    EXPECT_TRUE(*holds);
    ASSERT_TRUE(self.world->run(barrier_call(), nullptr, nullptr).ok());
  });
}

TEST(Refusal, AJobStartsOnAllRanksOrNone) {
  for (const auto& hosts : kPlacements) {
    for (int victim = 0; victim < static_cast<int>(hosts.size()); ++victim) {
      for (int number = 0;; ++number) {
        SCOPED_TRACE(fmt::format("{} ranks, request {} of rank {}", hosts.size(), number, victim));
        RankThreads ranks(hosts, {{"UNISONO_START_TIMEOUT", "1h"}});
        Refusal refusal(number);
        ranks.at(victim).memory->refuse_where(refusal.hook());
        Communicators none;
        const auto errors = run_on_all(
            ranks, none,
            [&](RankThread& self, std::unique_ptr<Communicator>&) { return ranks.enter(self); });
        const bool was_met = refusal.was_met();
        expect_alike(ranks, errors, was_met ? std::optional(victim) : std::nullopt);
        if (!was_met || HasFailure()) break;
      }
    }
  }
}

}  // namespace
}  // namespace unisono::comm::refusal_test

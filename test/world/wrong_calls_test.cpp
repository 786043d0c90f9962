// SPDX-License-Identifier: BSD-3-Clause
// call_check.hpp and remote_calls.hpp:
// One rank makes a wrong call while random collectives are under way, several at once: another
// collective, count, root or operator than the others, an invalid argument, no place for the
// request, a plan that is still active, more requests than there are. Of every rank each call ends:
// with the right result, or with an error that names the rank which was wrong. Between hosts, paths
// may come to carry less than full datagrams, and multicast may cease to be carried. On one host,
// between hosts of a rank each, and between hosts of several. A seed decides it all: a failure
// prints the command that repeats it; `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "api/objects.hpp"
#include "harness/scale.hpp"
#include "unisono/unisono.h"
#include "world/random_jobs.hpp"

namespace unisono::test::wrong_calls_test {
namespace {

using base::Code;

const Seeds seeds = Seeds::asked(300);

enum class Place : std::uint8_t { one_host, single_ranks, several_ranks };

WorldOptions options_of(std::uint64_t seed, Place place, base::Prng& prng) {
  WorldOptions options;
  options.ranks = 2 + static_cast<int>(prng.below(7));
  options.network.seed = seed;
  options.settings = {
      {"UNISONO_BUFFERS", prng.below(8) == 0 ? "8M" : "512K"},
      {"UNISONO_CHANNELS", std::to_string(2 + prng.below(4))},
      {"UNISONO_FIRST_SEQUENCE", sequence_before_the_wrap(prng.below(20))},
  };
  if (place == Place::one_host) {
    options.settings["UNISONO_ENGINE"] = prng.below(2) == 0 ? "inline" : "helping";
    options.settings["UNISONO_SINGLE_COPY_FROM"] = prng.below(2) == 0 ? "64" : "auto";
    return options;
  }
  for (int r = 0; r < options.ranks; ++r) options.hosts.push_back(r);
  if (place == Place::several_ranks) options.hosts = place_on_hosts(options.ranks, prng);
  options.virtual_datagrams = true;
  options.datagrams.seed = seed;
  options.datagrams.loss = prng.below(3) == 0 ? 0.05 : 0;
  options.datagrams.duplicates = prng.below(2) == 0 ? 0.05 : 0;
  options.datagrams.reorder = prng.below(4) != 0;
  options.datagrams.multicast = prng.below(2) == 0;
  if (options.datagrams.multicast && prng.below(2) == 0) {
    options.settings["UNISONO_ALGORITHM"] = kMulticasting;
  }
  options.pool_packets = prng.below(4) == 0 ? 16 : 256;
  return options;
}

// A communicator of the world, as the C API has it.
class Handle {
 public:
  explicit Handle(comm::Communicator& communicator) {
    auto comm = std::make_unique<api::Comm>();
    comm->communicator.reset(&communicator);
    handle_ = api::comms().insert(std::move(comm));
  }
  ~Handle() { std::ignore = api::comms().remove(handle_)->communicator.release(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  unisono_comm_t get() const { return handle_; }

 private:
  unisono_comm_t handle_;
};

enum class Wrong : std::uint8_t {
  other_call,
  null_buffer,
  null_request,
  root,
  operator_,
  active_plan,
  too_many_requests,
  ended_request,
  kinds
};

// Takes all requests that are left.
class NoRequestsLeft {
 public:
  NoRequestsLeft() {
    while (const auto one = api::requests().insert(std::make_unique<api::Request>())) {
      taken_.push_back(one);
    }
  }
  ~NoRequestsLeft() {
    for (const unisono_request_t one : taken_) api::requests().remove(one);
  }

 private:
  std::vector<unisono_request_t> taken_;
};

struct Fates {
  int completed = 0, failed = 0, differed = 0, refused = 0, overwritten = 0;
  int without_multicast = 0, narrow = 0;  // jobs whose network came to carry less
};

class Mistaken {
 public:
  Mistaken(const WorldOptions& options, base::Prng& prng)
      : world_(options),
        prng_(prng),
        multicast_end_(prng),
        narrow_paths_(prng),
        options_(options),
        wrong_rank_(static_cast<int>(prng.below(static_cast<std::uint64_t>(options.ranks)))),
        kind_(static_cast<Wrong>(prng.below(static_cast<std::uint64_t>(Wrong::kinds)))),
        next_(static_cast<std::size_t>(options.ranks)),
        refused_(next_.size()),
        given_out_(world_.given_out(0)) {
    const std::size_t jobs = 4 + prng.below(8);
    for (std::size_t j = 0; j < jobs; ++j) jobs_.emplace_back(options.ranks, prng, 6'000);
    other_.emplace(options.ranks, prng, 6'000);
    wrong_job_ = prng.below(jobs);
  }

  void run(Fates& fates) {
    constexpr int kMostSteps = 400'000;
    for (int steps = 0; steps < kMostSteps && !all_ended(); ++steps) step();
    ASSERT_TRUE(all_ended()) << "a call does not end: " << who_waits();
    compare(fates);
    if (options_.hosts.empty()) expect_no_memory_left();
  }

 private:
  void step() {
    multicast_end_.step(world_);
    narrow_paths_.step(world_);
    if (world_.datagrams() != nullptr && !world_.datagrams()->advance()) {
      world_.datagrams()->advance_to(world_.datagrams()->now_ns() + 20'000);
    }
    const int rank = world_.random_rank();
    if (prng_.below(8) == 0) start_next(rank);
    comm::Communicator& communicator = world_.at(rank);
    communicator.progress();
    communicator.watchdog().examine(prng_.below(16) == 0);
  }

  void start_next(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (refused_[r] || next_[r] == jobs_.size()) return;
    if (rank == wrong_rank_ && next_[r] == wrong_job_ && !is_done_) return go_wrong();
    const base::Status status = jobs_[next_[r]].start(world_.at(rank));
    if (status.ok()) {
      ++next_[r];
      return;
    }
    refused_[r] = true;
    expect_names(rank, status.error());
  }

  // Instead of the job, or before it.
  void go_wrong() {
    is_done_ = true;
    comm::Communicator& communicator = world_.at(wrong_rank_);
    if (communicator.failures().has_failed()) return;
    const Handle comm(communicator);
    std::int64_t in = 0, out = 0;
    unisono_request_t request = nullptr;
    switch (kind_) {
      case Wrong::other_call:
        is_other_under_way_ = other_->start(communicator).ok();
        ++next_[static_cast<std::size_t>(wrong_rank_)];
        is_other_call_ = true;
        return;
      case Wrong::null_buffer:
        return expect_refused(
            unisono_allreduce(nullptr, &out, 1, UNISONO_INT64, UNISONO_SUM, comm.get()),
            UNISONO_ERROR_ARGUMENT);
      case Wrong::null_request:
        return expect_refused(unisono_barrier_start(comm.get(), nullptr), UNISONO_ERROR_ARGUMENT);
      case Wrong::root:
        return expect_refused(
            unisono_broadcast_start(&out, 1, UNISONO_INT64, world_.ranks(), comm.get(), &request),
            UNISONO_ERROR_ARGUMENT);
      case Wrong::operator_:
        return expect_refused(unisono_allreduce_start(&in, &out, 1, UNISONO_FLOAT64,
                                                      UNISONO_BITWISE_XOR, comm.get(), &request),
                              UNISONO_ERROR_TYPE);
      case Wrong::active_plan:
        return start_active_plan(comm.get());
      case Wrong::too_many_requests: {
        const NoRequestsLeft none;
        return expect_refused(unisono_barrier_start(comm.get(), &request), UNISONO_ERROR_RESOURCES);
      }
      case Wrong::ended_request:
        request = reinterpret_cast<unisono_request_t>(&out);
        EXPECT_EQ(unisono_wait(&request), UNISONO_ERROR_STATE);
        return;  // which is nobody else's affair
      case Wrong::kinds:
        return;
    }
  }

  // The start that it is active by was wrong as well, where others do something else.
  void start_active_plan(unisono_comm_t comm) {
    unisono_plan_t plan = nullptr;
    ASSERT_EQ(unisono_barrier_plan(comm, &plan), UNISONO_OK);
    api::plans().get(plan)->active = true;
    expect_refused(unisono_plan_start(plan), UNISONO_ERROR_STATE);
    api::plans().get(plan)->active = false;
    EXPECT_EQ(unisono_plan_free(plan), UNISONO_OK);
  }

  void expect_refused(int error, int expected) {
    EXPECT_EQ(error, expected) << unisono_last_error();
    is_refused_ = true;
  }

  bool all_ended() {
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (!refused_[r] && next_[r] < jobs_.size()) return false;
      for (std::size_t j = 0; j < next_[r]; ++j) {
        if (is_other(rank, j)) continue;
        if (jobs_[j].at(rank).state == comm::Pending::State::running) return false;
      }
    }
    return !is_other_under_way_ || other_->at(wrong_rank_).state != comm::Pending::State::running;
  }
  bool is_other(int rank, std::size_t job) const {
    return is_other_call_ && rank == wrong_rank_ && job == wrong_job_;
  }

  std::string who_waits() {
    std::string text = "wrong is rank " + std::to_string(wrong_rank_) + " at " +
                       std::to_string(wrong_job_) + ", kind " +
                       std::to_string(static_cast<int>(kind_)) + ";";
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      text += " rank " + std::to_string(rank) + " has started " + std::to_string(next_[r]) + ":";
      for (std::size_t j = 0; j < next_[r]; ++j) {
        if (is_other(rank, j)) {
          text += " other" + std::to_string(static_cast<int>(other_->at(rank).state));
        } else {
          text += " " + std::to_string(static_cast<int>(jobs_[j].at(rank).state));
        }
      }
    }
    return text;
  }

  void compare(Fates& fates) {
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      bool has_failed = false;
      for (std::size_t j = 0; j < next_[static_cast<std::size_t>(rank)]; ++j) {
        if (is_other(rank, j)) continue;
        if (jobs_[j].is_complete_at(rank)) {
          const auto is_right = jobs_[j].is_right_at(rank);
          // Data of the wrong call may overwrite received messages of the right one. A rank may not
          // see that before its part is over; then its next call reports that the communicator has
          // failed.
          const bool may_be_overwritten = is_other_call_ && j >= wrong_job_;
          if (!is_right && may_be_overwritten) {
            EXPECT_TRUE(world_.at(rank).failures().has_failed())
                << "operation " << j << ", " << who_waits();
            ++fates.overwritten;
          } else {
            EXPECT_TRUE(is_right) << "operation " << j << ", " << who_waits();
          }
          ++fates.completed;
        } else {
          has_failed = true;
          ++fates.failed;
        }
      }
      if (has_failed) expect_names(rank, world_.at(rank).failures().tell());
    }
    fates.differed += is_other_call_ ? 1 : 0;
    fates.refused += is_refused_ ? 1 : 0;
    fates.without_multicast += multicast_end_.has_come() ? 1 : 0;
    fates.narrow += narrow_paths_.have_come() ? 1 : 0;
  }

  void expect_names(int rank, const base::Error& error) const {
    if (is_other_call_) {
      EXPECT_EQ(error.code, Code::mismatch) << error.message;
    } else {
      EXPECT_TRUE(is_refused_) << error.message;
      const bool is_limit = kind_ == Wrong::too_many_requests;
      if (rank != wrong_rank_) {
        EXPECT_EQ(error.code, is_limit ? Code::resources : Code::peer_argument) << error.message;
      }
    }
    const std::string name = "rank " + std::to_string(wrong_rank_);
    EXPECT_NE(error.message.find(name), std::string::npos) << error.message << "; it was " << name;
  }

  void expect_no_memory_left() {
    const std::int64_t bytes =
        comm::plan_segment(world_.ranks(), world_.settings(), world_.links()).bytes;
    const std::int64_t whole = (bytes + memory::kSegmentAlignment - 1) / memory::kSegmentAlignment *
                               memory::kSegmentAlignment;
    for (int rank = 0; rank < world_.ranks(); ++rank) world_.end(rank);
    EXPECT_EQ(world_.given_out(0), given_out_ - whole);
  }

  World world_;
  base::Prng& prng_;
  MulticastEnd multicast_end_;
  NarrowPaths narrow_paths_;
  const WorldOptions& options_;
  const int wrong_rank_;
  const Wrong kind_;
  std::size_t wrong_job_ = 0;  // which it does not start, or before which it is refused
  std::deque<RandomJob> jobs_;
  std::optional<RandomJob> other_;  // what it starts instead
  std::vector<std::size_t> next_;   // by rank: the job it starts next
  std::vector<bool> refused_;       // by rank: no more of them
  std::int64_t given_out_;
  bool is_done_ = false, is_refused_ = false, is_other_call_ = false, is_other_under_way_ = false;
};

void run_scenarios(Place place, const char* test) {
  Fates fates;
  const std::int64_t count = harness::scaled(seeds.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = seeds.first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE(std::string("repeat with: world_scenarios --gtest_filter=WrongCalls.") + test +
                 " --seed " + std::to_string(seed));
    base::Prng prng(seed);
    const WorldOptions options = options_of(seed, place, prng);
    Mistaken(options, prng).run(fates);
    if (testing::Test::HasFailure()) return;
  }
  std::printf(
      "%d other calls, %d refused, %d lose multicast, %d with narrow paths: %d calls complete (%d "
      "wrongly), %d failed\n",
      fates.differed, fates.refused, fates.without_multicast, fates.narrow, fates.completed,
      fates.overwritten, fates.failed);
  if (count < 50) return;
  EXPECT_GT(fates.differed, count / 16);
  EXPECT_GT(fates.refused, count / 2);
  EXPECT_GT(fates.completed, count);
  EXPECT_GT(fates.failed, count);
  EXPECT_EQ(fates.without_multicast > count / 10, place != Place::one_host);
  EXPECT_EQ(fates.narrow > count / 10, place != Place::one_host);
}

TEST(WrongCalls, OnOneHost) { run_scenarios(Place::one_host, "OnOneHost"); }
TEST(WrongCalls, BetweenHosts) { run_scenarios(Place::single_ranks, "BetweenHosts"); }
TEST(WrongCalls, BetweenHostsOfSeveral) {
  run_scenarios(Place::several_ranks, "BetweenHostsOfSeveral");
}

}  // namespace
}  // namespace unisono::test::wrong_calls_test

// SPDX-License-Identifier: BSD-3-Clause
// Random collectives at all ranks of a world, several under way at once: each rank starts its next
// one now and then, whatever the others do, and every result is compared. In one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "comm/operations/operation_queue.hpp"
#include "harness/collective_data.hpp"
#include "harness/seeds.hpp"
#include "harness/world.hpp"
#include "world/multicast_end.hpp"
#include "world/narrow_paths.hpp"

namespace unisono::test {

// The flag words hold 40 bits of the sequence; soon after this one they begin anew.
inline std::string sequence_before_the_wrap(std::uint64_t operations) {
  return std::to_string((std::uint64_t{1} << 40) - operations - 1);
}

// Hosts with one rank or several, not always neighbours, numbered by their first ranks.
inline std::vector<int> place_on_hosts(int ranks, base::Prng& prng) {
  std::vector<int> hosts;
  int count = 0;
  for (int r = 0; r < ranks; ++r) {
    const bool is_first = r == 0 || prng.below(2) == 0;
    hosts.push_back(is_first ? count++
                             : static_cast<int>(prng.below(static_cast<std::uint64_t>(count))));
  }
  return hosts;
}

// With a message to many in each; the rules take others of them.
inline constexpr const char* kMulticasting =
    "barrier: gather-release | allreduce: gather-release | allgather: gather-release | "
    "many_to_many: concurrent-broadcast";

// One collective at all ranks, from its start to the comparison of its results.
class RandomJob {
 public:
  RandomJob(int ranks, base::Prng& prng, std::int64_t most_elements) {
    shape_.collective = static_cast<schedule::Collective>(prng.below(schedule::kCollectiveCount));
    shape_.ranks = ranks;
    const auto n = static_cast<std::size_t>(ranks);
    shape_.root = schedule::is_rooted(shape_.collective) ? static_cast<int>(prng.below(n)) : 0;
    const std::int64_t counts[] = {0, 1, 3, 40, 1000, most_elements};
    shape_.count = shape_.collective == schedule::Collective::barrier ? 0 : counts[prng.below(6)];
    op_ = prng.below(2) == 0 ? arith::Operator::sum : arith::Operator::max;
    pending_ = std::vector<comm::Pending>(n);
    for (int r = 0; r < ranks; ++r) {
      inputs_.push_back(make_input(kType, false, r, schedule::input_count(shape_, r)));
      outputs_.emplace_back(static_cast<std::size_t>(schedule::output_count(shape_, r)) * 8);
    }
  }

  base::Status start(comm::Communicator& communicator) {
    const auto r = static_cast<std::size_t>(communicator.rank());
    plan::Call call;
    call.collective = shape_.collective;
    call.count = shape_.count;
    call.type = static_cast<int>(kType);
    call.op = schedule::is_reduction(call.collective) ? static_cast<int>(op_) : -1;
    call.root = shape_.root;
    call.element_bytes = 8;
    auto plan = communicator.plan(call);
    if (!plan) return plan.error();
    return communicator.start(**plan, inputs_[r].data(), outputs_[r].data(), pending_[r]);
  }

  // The state of a rank that has started it.
  comm::Pending& at(int rank) { return pending_[static_cast<std::size_t>(rank)]; }
  bool is_complete_at(int rank) const {
    return pending_[static_cast<std::size_t>(rank)].state == comm::Pending::State::complete;
  }

  testing::AssertionResult is_right_at(int rank) {
    if (same_bytes(outputs_[static_cast<std::size_t>(rank)], expected(rank))) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "wrong: rank " << rank << " of " << shape_.ranks << ", "
           << schedule::collective_name(shape_.collective) << ", count " << shape_.count;
  }

 private:
  static constexpr arith::Type kType = arith::Type::float64;

  // Worked out once where all ranks that get anything get the same.
  const Bytes& expected(int rank) {
    using schedule::Collective;
    constexpr Collective kDiffering[] = {Collective::alltoall, Collective::scatter,
                                         Collective::scan, Collective::exscan,
                                         Collective::reduce_scatter};
    const bool is_alike = std::ranges::find(kDiffering, shape_.collective) == std::end(kDiffering);
    if (!is_alike || expected_.size() != outputs_[static_cast<std::size_t>(rank)].size()) {
      expected_ = expected_output(shape_, material(kType, op_), rank);
    }
    return expected_;
  }

  schedule::Shape shape_;
  arith::Operator op_ = arith::Operator::sum;
  std::vector<Bytes> inputs_, outputs_;
  std::vector<comm::Pending> pending_;
  Bytes expected_;  // of the rank that was compared last
};

class RandomJobs {
 public:
  RandomJobs(World& world, base::Prng& prng, std::size_t jobs, std::int64_t most_elements)
      : world_(world),
        prng_(prng),
        multicast_end_(prng),
        narrow_paths_(prng),
        next_(static_cast<std::size_t>(world.ranks()), 0) {
    for (std::size_t j = 0; j < jobs; ++j) jobs_.emplace_back(world.ranks(), prng, most_elements);
  }

  void run() {
    constexpr int kMostSteps = 20'000'000;
    for (int steps = 0; steps < kMostSteps && !all_done(); ++steps) {
      const int rank = world_.random_rank();
      if (prng_.below(8) == 0) start_next(rank);
      multicast_end_.step(world_);
      narrow_paths_.step(world_);
      world_.step();
    }
    ASSERT_TRUE(all_done()) << "no progress";
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      for (int r = 0; r < world_.ranks(); ++r) {
        ASSERT_TRUE(jobs_[j].is_right_at(r)) << "operation " << j;
      }
    }
  }
  bool has_multicast_ended() const { return multicast_end_.has_come(); }
  bool have_paths_narrowed() const { return narrow_paths_.have_come(); }

 private:
  void start_next(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (next_[r] == jobs_.size()) return;
    const base::Status status = jobs_[next_[r]].start(world_.at(rank));
    ASSERT_TRUE(status.ok()) << status.error().message;
    ++next_[r];
  }

  // Looks on only from the first one that is not.
  bool all_done() {
    for (; done_ < jobs_.size(); ++done_) {
      for (int r = 0; r < world_.ranks(); ++r) {
        const bool is_started = next_[static_cast<std::size_t>(r)] > done_;
        if (!is_started || !jobs_[done_].is_complete_at(r)) return false;
      }
    }
    return true;
  }

  World& world_;
  base::Prng& prng_;
  MulticastEnd multicast_end_;
  NarrowPaths narrow_paths_;
  std::deque<RandomJob> jobs_;     // that are under way stay where they are
  std::vector<std::size_t> next_;  // by rank: the job it starts next
  std::size_t done_ = 0;           // jobs before it are complete at all ranks
};

}  // namespace unisono::test

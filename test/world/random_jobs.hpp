// SPDX-License-Identifier: BSD-3-Clause
// Random collectives at all ranks of a world, several under way at once: each rank starts its next
// one now and then, whatever the others do, and every result is compared. In one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/collective_data.hpp"
#include "harness/seeds.hpp"
#include "harness/world.hpp"

namespace unisono::test {

// The flag words hold 40 bits of the sequence; soon after this one they begin anew.
inline std::string sequence_before_the_wrap(std::uint64_t operations) {
  return std::to_string((std::uint64_t{1} << 40) - operations - 1);
}

class RandomJobs {
 public:
  RandomJobs(World& world, base::Prng& prng, std::size_t jobs, std::int64_t most_elements)
      : world_(world),
        prng_(prng),
        most_elements_(most_elements),
        jobs_(jobs),
        next_(static_cast<std::size_t>(world.ranks()), 0) {
    for (Job& job : jobs_) prepare(job);
  }

  void run() {
    constexpr int kMostSteps = 20'000'000;
    for (int steps = 0; steps < kMostSteps && !all_done(); ++steps) {
      const int rank = world_.random_rank();
      if (prng_.below(8) == 0) start_next(rank);
      world_.step();
    }
    ASSERT_TRUE(all_done()) << "no progress";
    for (std::size_t j = 0; j < jobs_.size(); ++j) compare(j);
  }

 private:
  // One collective at all ranks, from its start to the comparison of its results.
  struct Job {
    schedule::Shape shape;
    arith::Operator op = arith::Operator::sum;
    std::vector<Bytes> inputs, outputs;
    std::vector<group::Pending> pending;
    int started = 0;
  };
  static constexpr arith::Type kType = arith::Type::float64;

  void prepare(Job& job) {
    schedule::Shape& shape = job.shape;
    shape.collective = static_cast<schedule::Collective>(prng_.below(schedule::kCollectiveCount));
    shape.ranks = world_.ranks();
    shape.root = schedule::is_rooted(shape.collective) ? world_.random_rank() : 0;
    const std::int64_t counts[] = {0, 1, 3, 40, 1000, most_elements_};
    shape.count = shape.collective == schedule::Collective::barrier ? 0 : counts[prng_.below(6)];
    job.op = prng_.below(2) == 0 ? arith::Operator::sum : arith::Operator::max;
    job.pending.resize(static_cast<std::size_t>(shape.ranks));
    for (int r = 0; r < shape.ranks; ++r) {
      job.inputs.push_back(make_input(kType, false, r, schedule::input_count(shape, r)));
      job.outputs.emplace_back(static_cast<std::size_t>(schedule::output_count(shape, r)) * 8);
    }
  }

  void start_next(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (next_[r] == jobs_.size()) return;
    Job& job = jobs_[next_[r]++];
    group::Call call;
    call.collective = job.shape.collective;
    call.count = job.shape.count;
    call.type = static_cast<int>(kType);
    call.op = schedule::is_reduction(call.collective) ? static_cast<int>(job.op) : -1;
    call.root = job.shape.root;
    call.element_bytes = 8;
    auto plan = world_.at(rank).plan(call);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto status =
        world_.at(rank).start(**plan, job.inputs[r].data(), job.outputs[r].data(), job.pending[r]);
    ASSERT_TRUE(status.ok()) << status.error().message;
    ++job.started;
  }

  bool all_done() const {
    return std::ranges::all_of(jobs_, [](const Job& job) {
      return job.started == job.shape.ranks && std::ranges::all_of(job.pending, [](const auto& p) {
               return p.state == group::Pending::State::complete;
             });
    });
  }

  void compare(std::size_t j) const {
    const Job& job = jobs_[j];
    for (int r = 0; r < job.shape.ranks; ++r) {
      ASSERT_EQ(job.outputs[static_cast<std::size_t>(r)],
                expected_output(job.shape, material(kType, job.op), r))
          << "operation " << j << ", rank " << r << " of " << job.shape.ranks << ", "
          << schedule::collective_name(job.shape.collective) << ", count " << job.shape.count;
    }
  }

  World& world_;
  base::Prng& prng_;
  std::int64_t most_elements_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> next_;  // by rank: the job it starts next
};

}  // namespace unisono::test

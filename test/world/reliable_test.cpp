// SPDX-License-Identifier: BSD-3-Clause
// The real communicators and engines over the reliable transport on a bad network: random
// collectives, several under way at once, loss, duplicates and reordering from a seed, few packets
// in the pool. Every result is compared. A failure prints its seed; `--seed N` runs that one alone,
// and `--seeds N` (label slow) runs many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "harness/collective_data.hpp"
#include "harness/scale.hpp"
#include "harness/world.hpp"

namespace unisono::test {
namespace {

using arith::Operator;
using arith::Type;
using schedule::Shape;

std::uint64_t first_seed = 1;
int seed_count = 300;

// One collective at all ranks, from its start to the comparison of its results.
struct Job {
  Shape shape;
  Operator op = Operator::sum;
  std::vector<Bytes> inputs, outputs;
  std::vector<group::Pending> pending;
  int started = 0;
};

class Scenario {
 public:
  Scenario(std::uint64_t seed, bool has_hosts) : prng_(seed) {
    WorldOptions options;
    options.ranks = 2 + static_cast<int>(prng_.below(7));
    options.network.seed = seed;  // of the scheduler
    options.virtual_datagrams = true;
    const double losses[] = {0, 0.001, 0.01, 0.1};
    options.datagrams.seed = seed;
    options.datagrams.loss = losses[seed % 4];
    options.datagrams.duplicates = prng_.below(2) == 0 ? 0.05 : 0;
    options.datagrams.reorder = prng_.below(4) != 0;
    options.datagrams.max_payload = prng_.below(4) == 0 ? 272 : 1472;
    options.datagrams.room = prng_.below(4) == 0 ? 5 : 0;
    options.pool_packets = prng_.below(4) == 0 ? 8 : 512;
    options.settings = {
        {"UNISONO_CHANNELS", std::to_string(2 + prng_.below(4))},
        // The flag words hold 40 bits of the sequence.
        {"UNISONO_FIRST_SEQUENCE", std::to_string((std::uint64_t{1} << 40) - prng_.below(20) - 1)},
    };
    if (has_hosts) {
      place_on_hosts(options);
      // Nobody receives any more when the world ends.
      options.settings["UNISONO_DETECT_TIMEOUT"] = "10ms";
    }
    loses_ = options.datagrams.loss > 0;
    world_ = std::make_unique<World>(options);
    jobs_.resize(static_cast<std::size_t>(8 + prng_.below(12)));
    for (Job& job : jobs_) prepare(job);
    next_.assign(static_cast<std::size_t>(options.ranks), 0);
  }

  void run() {
    constexpr int kMostSteps = 20'000'000;
    for (int steps = 0; steps < kMostSteps && !all_done(); ++steps) {
      const int rank = world_->random_rank();
      // A rank starts its next collective now and then, whatever the others do.
      if (prng_.below(8) == 0) start_next(rank);
      world_->step();
    }
    ASSERT_TRUE(all_done()) << "no progress";
    for (std::size_t j = 0; j < jobs_.size(); ++j) compare(j);
    if (loses_) return;
    for (int rank = 0; rank < world_->ranks(); ++rank) {
      EXPECT_EQ(world_->reliable_at(rank).counts().beyond, 0U);
    }
  }

  std::uint64_t repeated() const {
    std::uint64_t sum = 0;
    for (int rank = 0; rank < world_->ranks(); ++rank) {
      sum += world_->reliable_at(rank).counts().repeated;
    }
    return sum;
  }
  std::int64_t lost() const { return world_->datagrams()->lost(); }

 private:
  // Of one rank or several each, not always in the order of the ranks.
  void place_on_hosts(WorldOptions& options) {
    int hosts = 1;
    for (int r = 0; r < options.ranks; ++r) {
      if (r > 0 && prng_.below(2) == 0) ++hosts;
      options.hosts.push_back(static_cast<int>(prng_.below(static_cast<std::uint64_t>(hosts))));
    }
    // Numbered by their first ranks.
    std::vector<int> order;
    for (int& host : options.hosts) {
      const auto known = std::ranges::find(order, host);
      const auto number = static_cast<int>(known - order.begin());
      if (known == order.end()) order.push_back(host);
      host = number;
    }
  }

  void prepare(Job& job) {
    Shape& shape = job.shape;
    shape.collective = static_cast<schedule::Collective>(prng_.below(schedule::kCollectiveCount));
    shape.ranks = world_->ranks();
    shape.root = schedule::is_rooted(shape.collective) ? world_->random_rank() : 0;
    const std::int64_t counts[] = {0, 1, 3, 40, 1000, 6'000};
    shape.count = shape.collective == schedule::Collective::barrier ? 0 : counts[prng_.below(6)];
    job.op = prng_.below(2) == 0 ? Operator::sum : Operator::max;
    const auto n = static_cast<std::size_t>(shape.ranks);
    job.pending.resize(n);
    for (int r = 0; r < shape.ranks; ++r) {
      job.inputs.push_back(make_input(Type::float64, false, r, schedule::input_count(shape, r)));
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
    call.type = static_cast<int>(Type::float64);
    call.op = schedule::is_reduction(call.collective) ? static_cast<int>(job.op) : -1;
    call.root = job.shape.root;
    call.element_bytes = 8;
    auto plan = world_->at(rank).plan(call);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto status =
        world_->at(rank).start(**plan, job.inputs[r].data(), job.outputs[r].data(), job.pending[r]);
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
                expected_output(job.shape, material(Type::float64, job.op), r))
          << "operation " << j << ", rank " << r << " of " << job.shape.ranks << ", "
          << schedule::collective_name(job.shape.collective) << ", count " << job.shape.count;
    }
  }

  base::Prng prng_;
  bool loses_ = false;
  std::unique_ptr<World> world_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> next_;  // by rank: the job it starts next
};

void run_scenarios(bool has_hosts) {
  std::int64_t lost = 0;
  std::uint64_t repeated = 0;
  // A world of hosts takes a while to end: its ranks wait for each other.
  const std::int64_t seeds = harness::scaled(has_hosts ? (seed_count + 2) / 3 : seed_count);
  for (std::int64_t i = 0; i < seeds; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("repeat with: world_reliable --seed " + std::to_string(seed));
    Scenario scenario(seed, has_hosts);
    scenario.run();
    if (testing::Test::HasFatalFailure()) return;
    lost += scenario.lost();
    repeated += scenario.repeated();
  }
  // Or the network was not as bad as this test means it to be.
  if (seeds > 10) {
    EXPECT_GT(lost, 0);
    EXPECT_GT(repeated, 0U);
  }
}

TEST(ReliableWorld, EveryResultIsRightOnABadNetwork) { run_scenarios(false); }

TEST(ReliableWorld, EveryResultIsRightBetweenHosts) { run_scenarios(true); }

}  // namespace
}  // namespace unisono::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--seed") {
      unisono::test::first_seed = std::strtoull(argv[i + 1], nullptr, 10);
      unisono::test::seed_count = 1;
    }
    if (std::string(argv[i]) == "--seeds") unisono::test::seed_count = std::atoi(argv[i + 1]);
  }
  return RUN_ALL_TESTS();
}

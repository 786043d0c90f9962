// SPDX-License-Identifier: BSD-3-Clause
// Repair end to end: hosts in network namespaces whose NIC programs lose a share of received
// packets. Every result must still have the bits of the host engine's. This kernel has no netem, so
// the programs themselves drop packets, before they read them.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/lower.hpp"

namespace unisono::nic::test::loss_test {
namespace {

class NicLoss : public LossyHosts {
 protected:
  // All ranks run the job and request missing packets. A rank that has finished sleeps: from then
  // on only its program answers. Returns the counters.
  Counters run(const Job& job) {
    const std::vector<Words> expected = host_results(job, kHosts);
    const Counters before = counts();
    std::barrier<> together(kHosts);
    std::atomic<bool> failed = false;
    ++communicator;
    hosts->run([&](int rank) {
      Device& device = device_of(rank);
      auto started = start_rank(device, job, rank, kHosts, communicator);
      if (!started.ok()) {
        ADD_FAILURE() << "rank " << rank << ": " << started.error().message;
        failed = true;
      }
      together.arrive_and_wait();
      if (!failed) operate(job, rank, *started->port, expected);
      together.arrive_and_wait();
      if (started.ok()) {
        EXPECT_TRUE(device.remove_group(started->row).ok());
      }
    });
    Counters counted = counts();
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] -= before[i];
    expect_no_confusion(counted);
    return counted;
  }

 private:
  // Whatever is lost, nothing is misread.
  static void expect_no_confusion(Counters counted) {
    forget_late_packets(counted);
    for (const auto counter : {UNISONO_NIC_SHORT, UNISONO_NIC_NO_GROUP, UNISONO_NIC_BAD_TAG,
                               UNISONO_NIC_BAD_SENDER, UNISONO_NIC_MISMATCH, UNISONO_NIC_NO_ROOM}) {
      EXPECT_EQ(counted[counter], 0U) << counter_name(counter);
    }
  }

  static void operate(const Job& job, int rank, Port& port, const std::vector<Words>& expected) {
    const bool has_result = job.collective == Collective::allreduce || rank == job.root;
    const std::uint32_t combine = job.collective == Collective::barrier
                                      ? std::uint32_t{UNISONO_NIC_NOTHING}
                                      : *lower_operator(job.op, job.type);
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    int wrong = 0;
    int finished = 0;
    const auto finish_one = [&] {
      const auto sequence = static_cast<std::uint64_t>(finished);
      double patience_ns = base::kMillisecond;
      while (!port.is_done(sequence)) {
        const auto delay_ns = static_cast<std::int64_t>(patience_ns * (0.5 + random.unit()));
        const auto asked = port.repair(base::now_ns(), delay_ns);
        ASSERT_TRUE(asked.ok()) << asked.error().message;
        if (*asked > 0) patience_ns = std::min(patience_ns * 2, 8.0 * base::kMillisecond);
        std::this_thread::yield();
      }
      const auto result = port.result(sequence);
      wrong += has_result &&
               Words(result.begin(), result.end()) != expected[static_cast<std::size_t>(finished)];
      ++finished;
    };
    for (int operation = 0; operation < job.operations; ++operation) {
      while (operation - finished >= static_cast<int>(job.depth)) finish_one();
      const Words vector =
          job.collective == Collective::barrier ? Words{} : vector_of(job, rank, operation);
      const base::Status posted = port.post(combine, vector);
      ASSERT_TRUE(posted.ok()) << posted.error().message;
    }
    while (finished < job.operations) finish_one();
    EXPECT_EQ(wrong, 0) << "rank " << rank << " of " << job.algorithm << ", "
                        << arith::type_name(job.type);
  }
};

TEST_F(NicLoss, EveryTypeAndOperatorAtTenPercent) {
  Job job;
  job.loss = 0.1;
  job.operations = static_cast<int>(harness::scaled(60));
  std::uint64_t lost = 0;  // in all cells: where few operations are tried, one may be lucky
  std::uint64_t asked = 0;
  for (const Type type : {Type::int32, Type::uint64, Type::float32, Type::float64}) {
    for (const Operator op : {Operator::sum, Operator::max, Operator::bitwise_xor}) {
      if (!lower_operator(op, type).ok()) continue;
      for (const std::int64_t bytes : {8, 1400}) {
        job.type = type;
        job.op = op;
        job.count = bytes / static_cast<std::int64_t>(arith::type_size(type));
        const Counters counted = run(job);
        lost += counted[UNISONO_NIC_LOST];
        asked += counted[UNISONO_NIC_ASKED];
      }
    }
  }
  EXPECT_GT(lost, 0U);
  EXPECT_GT(asked, 0U);
}

// Chains, trees and stars; results by multicast and by clones.
TEST_F(NicLoss, EveryShapeAtEachLoss) {
  Job job;
  job.type = Type::float64;
  job.count = 20;
  for (const double loss : {0.001, 0.01, 0.1}) {
    job.loss = loss;
    job.operations = static_cast<int>(harness::scaled(loss < 0.01 ? 1000 : 200));
    std::uint64_t lost = 0;  // of all shapes: a single one may be lucky
    std::uint64_t answered = 0;
    for (const char* algorithm : {"gather-release", "reduce-broadcast"}) {
      for (const int parameter : {2, 3, 5}) {
        for (const std::uint32_t depth : {1, 4}) {
          job.algorithm = algorithm;
          job.parameter = parameter;
          job.depth = depth;
          const Counters counted = run(job);
          lost += counted[UNISONO_NIC_LOST];
          answered += counted[UNISONO_NIC_ANSWERED];
        }
      }
    }
    EXPECT_GT(lost, 0U) << loss;
    EXPECT_GT(answered, 0U) << loss;
  }
}

TEST_F(NicLoss, ReduceToEveryRoot) {
  Job job;
  job.collective = Collective::reduce;
  job.algorithm = "fnomial";
  job.type = Type::float64;
  job.count = 20;
  job.loss = 0.1;
  job.operations = static_cast<int>(harness::scaled(100));
  std::uint64_t passed_on = 0;  // with all roots: a single one may be lucky
  for (job.root = 0; job.root < kHosts; ++job.root) passed_on += run(job)[UNISONO_NIC_PASSED_ON];
  EXPECT_GT(passed_on, 0U);
}

TEST_F(NicLoss, Barriers) {
  Job job;
  job.collective = Collective::barrier;
  job.count = 0;
  job.loss = 0.1;
  job.operations = static_cast<int>(harness::scaled(200));
  for (const int parameter : {1, 2}) {
    job.parameter = parameter;
    run(job);
  }
}

}  // namespace
}  // namespace unisono::nic::test::loss_test

// SPDX-License-Identifier: BSD-3-Clause
// Barriers in which the root asks whether all have arrived ("test and set"). Ranks without children
// do nothing until then, and their programs answer. Whatever the order of arrival, there is one
// question, one packet up from each rank and one release, and no rank leaves early.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <numeric>
#include <thread>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/lossy_hosts.hpp"

namespace unisono::nic::test::query_test {
namespace {

class NicQuery : public LossyHosts {
 protected:
  struct Outcome {
    Counters counted = {};
    std::uint64_t doorbells = 0;  // of ranks that are not the root
    int early = 0;                // barriers that a rank left before all had arrived
  };

  // By rank, in a barrier: after how many others the rank arrives.
  using Order = std::array<int, kHosts>;
  // The moment that counts as a rank's arrival: before it contributes, so that ranks contribute at
  // the same time, or afterwards.
  enum class Comes { before_it_gives, when_it_has_given };

  static Job barrier_job(int parameter, double loss) {
    Job job;
    job.collective = Collective::barrier;
    job.count = 0;
    job.parameter = parameter;
    job.loss = loss;
    return job;
  }

  static Outcome run(const Job& job, const std::vector<Order>& orders,
                     Comes comes = Comes::before_it_gives) {
    Outcome outcome;
    const Counters before = counts();
    std::barrier<> together(kHosts);
    std::atomic<bool> failed = false;
    std::vector<std::atomic<int>> entered(orders.size());
    std::vector<std::atomic<int>> given(orders.size());
    auto& come = comes == Comes::when_it_has_given ? given : entered;
    std::atomic<int> early = 0;
    std::atomic<std::uint64_t> doorbells = 0;
    ++communicator;
    hosts->run([&](int rank) {
      auto started = start_rank(device_of(rank), job, rank, kHosts, communicator);
      if (!started.ok()) {
        ADD_FAILURE() << "rank " << rank << ": " << started.error().message;
        failed = true;
      }
      together.arrive_and_wait();
      base::Prng random(static_cast<std::uint64_t>(rank) + 1);
      for (std::size_t i = 0; i < orders.size() && !failed; ++i) {
        Port& port = *started->port;
        // A rank with a late turn arrives when the others wait already.
        while (come[i] < orders[i][static_cast<std::size_t>(rank)]) std::this_thread::yield();
        ++entered[i];
        EXPECT_TRUE(port.post(UNISONO_NIC_NOTHING, {}, Giving::on_query).ok());
        ++given[i];
        while (!port.is_done(i)) {
          const auto delay_ns = static_cast<std::int64_t>(base::kMillisecond * (1 + random.unit()));
          if (job.loss > 0) {
            EXPECT_TRUE(port.repair(base::now_ns(), delay_ns).ok());
          }
          std::this_thread::yield();
        }
        early += entered[i] != kHosts;
      }
      together.arrive_and_wait();
      if (!started.ok()) return;
      if (rank != 0) doorbells += started->port->doorbells();
      EXPECT_TRUE(device_of(rank).remove_group(started->row).ok());
    });
    outcome.counted = counts();
    for (std::size_t i = 0; i < before.size(); ++i) outcome.counted[i] -= before[i];
    outcome.doorbells = doorbells;
    outcome.early = early;
    return outcome;
  }

  static std::vector<Order> random_orders(std::int64_t count) {
    base::Prng random(5);
    std::vector<Order> orders(static_cast<std::size_t>(count));
    for (Order& order : orders) {
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i], order[random.below(i + 1)]);
      }
    }
    return orders;
  }

  static void expect_bounded(const Outcome& outcome, std::size_t barriers) {
    EXPECT_EQ(outcome.early, 0);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_QUERIED], barriers) << text(outcome.counted);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_SENT_UP], barriers * (kHosts - 1));
    EXPECT_EQ(outcome.counted[UNISONO_NIC_SENT_DOWN], barriers);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_ASKED], 0U);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_ANSWERED], 0U);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_PASSED_ON], 0U);
  }
};

TEST_F(NicQuery, TrafficIsTheSameInWhateverOrderRanksCome) {
  for (const int parameter : {1, 2, 5}) {
    const auto orders = random_orders(harness::scaled(200));
    expect_bounded(run(barrier_job(parameter, 0), orders), orders.size());
  }
}

// The others have given when the root comes: no process but the root's makes a system call.
TEST_F(NicQuery, RootThatIsLastIsTheOnlyOneToSend) {
  Order order;
  std::iota(order.rbegin(), order.rend(), 0);  // rank 0 after the five others
  const std::vector<Order> orders(static_cast<std::size_t>(harness::scaled(200)), order);
  for (const int parameter : {1, 2, 5}) {
    const Outcome outcome = run(barrier_job(parameter, 0), orders, Comes::when_it_has_given);
    expect_bounded(outcome, orders.size());
    EXPECT_EQ(outcome.doorbells, 0U) << "of the others";
  }
}

TEST_F(NicQuery, LostQuestionsAndAnswersAreRepaired) {
  std::uint64_t lost = 0;  // in both: where few barriers are tried, the lower loss may spare all
  for (const double loss : {0.01, 0.1}) {
    const Outcome outcome = run(barrier_job(2, loss), random_orders(harness::scaled(200)));
    EXPECT_EQ(outcome.early, 0);
    EXPECT_EQ(outcome.counted[UNISONO_NIC_NO_ROOM], 0U);
    lost += outcome.counted[UNISONO_NIC_LOST];
  }
  EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace unisono::nic::test::query_test

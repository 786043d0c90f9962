// SPDX-License-Identifier: BSD-3-Clause
// Vectors of many packets, in one collective: how they are cut, and, between hosts with and without
// losses, that the result has the bits that a sum in the schedule's order has.
#include "nic/port/segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "nic/harness/jobs.hpp"
#include "nic/harness/lossy_hosts.hpp"
#include "nic/lowering/lower.hpp"

namespace unisono::nic::test::segments_test {
namespace {

TEST(NicSegmentCount, IsTheFewest) {
  EXPECT_EQ(Segments::pieces(0, 175), 1U) << "a barrier";
  EXPECT_EQ(Segments::pieces(1, 175), 1U);
  EXPECT_EQ(Segments::pieces(175, 175), 1U);
  EXPECT_EQ(Segments::pieces(176, 175), 2U);
  EXPECT_EQ(Segments::pieces(1000, 10), 100U);
}

class NicSegments : public LossyHosts {
 protected:
  // One vector of `job.count` float64 or int64, in pieces, three times over in place.
  void run(const Job& job, std::uint32_t piece_words) {
    const std::vector<Words> expected = host_results(job, kHosts);
    std::barrier<> together(kHosts);
    std::atomic<bool> failed = false;
    ++communicator;
    const Counters before = counts();
    hosts->run([&](int rank) {
      Job one_packet = job;
      one_packet.count = 1;
      auto started = start_rank(device_of(rank), one_packet, rank, kHosts, communicator);
      if (!started.ok()) {
        ADD_FAILURE() << "rank " << rank << ": " << started.error().message;
        failed = true;
      }
      together.arrive_and_wait();
      if (!failed) operate(job, rank, *started->port, piece_words, expected);
      together.arrive_and_wait();
      if (started.ok()) {
        EXPECT_TRUE(device_of(rank).remove_group(started->row).ok());
      }
    });
    if (job.loss > 0) return;
    const Counters after = counts();
    const std::uint64_t pieces = Segments::pieces(static_cast<std::size_t>(job.count), piece_words);
    EXPECT_EQ(after[UNISONO_NIC_SENT_UP] - before[UNISONO_NIC_SENT_UP],
              pieces * static_cast<std::uint64_t>(job.operations * (kHosts - 1)))
        << "one packet a piece from everybody but the root";
    EXPECT_EQ(after[UNISONO_NIC_ASKED], before[UNISONO_NIC_ASKED]);
  }

 private:
  // Where the first word is that differs: the vectors are long.
  static std::string difference(const Words& actual, const Words& expected) {
    const auto [at, other] = std::mismatch(actual.begin(), actual.end(), expected.begin());
    return at == actual.end() ? "" : "from word " + std::to_string(at - actual.begin()) + " on";
  }

  static void operate(const Job& job, int rank, Port& port, std::uint32_t piece_words,
                      const std::vector<Words>& expected) {
    Segments segments(port, piece_words);
    base::Prng random(static_cast<std::uint64_t>(rank) + 1);
    for (int operation = 0; operation < job.operations; ++operation) {
      Words words = vector_of(job, rank, operation);
      segments.begin(*lower_operator(job.op, job.type), words, words);
      for (;;) {
        const auto done = segments.step();
        ASSERT_TRUE(done.ok()) << done.error().message;
        if (*done) break;
        const auto delay_ns = static_cast<std::int64_t>(base::kMillisecond * (1.0 + random.unit()));
        if (job.loss > 0) {
          EXPECT_TRUE(port.repair(base::now_ns(), delay_ns).ok());
        }
        std::this_thread::yield();
      }
      EXPECT_EQ(difference(words, expected[static_cast<std::size_t>(operation)]), "")
          << "rank " << rank;
    }
  }
};

// A vector that was cut has every bit of one that was not: f-nomial trees combine whole vectors.
TEST_F(NicSegments, HaveTheBitsOfTheHostEngine) {
  Job job;
  job.operations = 3;
  for (const Type type : {Type::float64, Type::int64}) {
    job.type = type;
    for (const std::uint32_t depth : {1, 2, UNISONO_NIC_DEPTH_MAX / 2}) {
      job.depth = depth;
      for (const std::int64_t count : {1, 175, 176, 5000}) {
        job.count = count;
        run(job, UNISONO_NIC_WORDS_MAX);
        if (count > 1) run(job, 50);
      }
    }
  }
}

TEST_F(NicSegments, SurviveLosses) {
  Job job;
  job.operations = 3;
  job.type = Type::float64;
  job.count = 20'000;
  job.depth = 8;
  for (const double loss : {0.01, 0.1}) {
    for (const char* algorithm : {"gather-release", "reduce-broadcast"}) {
      job.loss = loss;
      job.algorithm = algorithm;
      run(job, UNISONO_NIC_WORDS_MAX);
    }
  }
}

}  // namespace
}  // namespace unisono::nic::test::segments_test

// SPDX-License-Identifier: BSD-3-Clause
// The real memory of a communicator on one host: it follows the calls, an operation touches nothing
// that was not made real before, and a rank that gets no memory ends the call for all.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/segment.hpp"
#include "harness/calls.hpp"
#include "harness/rank_threads.hpp"

namespace unisono::comm::segment_memory_test {
namespace {

using base::Status;
using plan::SizeClass;
using test::allreduce;
using test::RankThread;
using test::RankThreads;
using Communicators = std::vector<std::unique_ptr<Communicator>>;

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kLong = 10'000;  // float64, in buffers for long messages

// Duplicates of a world whose own calls need no more memory, and what they cost.
class Job {
 public:
  explicit Job(int ranks) : threads_(std::vector<int>(static_cast<std::size_t>(ranks), 0)) {
    for (int r = 0; r < ranks; ++r) {
      threads_.at(r).memory->refuse_where([this](const char* purpose) {
        if (std::string_view(purpose) == "a communicator's buffers") ++commits_;
        return false;
      });
    }
    on_all([this](RankThread& self) {
      ASSERT_TRUE(threads_.enter(self).ok());
      for (int i = 0; i < engine::kMostSlotIndexes; ++i) call(*self.world, 1);
    });
    world_bytes_ = real_bytes();
  }

  int size() const { return threads_.size(); }
  RankThread& at(int rank) { return threads_.at(rank); }
  void on_all(const std::function<void(RankThread&)>& body) { threads_.run(body); }
  static void call(Communicator& comm, std::int64_t count) {
    std::vector<double> all(static_cast<std::size_t>(count), 1.0);
    const Status status = comm.run(allreduce(count), all.data(), all.data());
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(all.back(), comm.size());
  }

  void duplicate() {
    made_.resize(static_cast<std::size_t>(size()));
    on_all([this](RankThread& self) {
      auto made = self.world->duplicate();
      ASSERT_TRUE(made.ok()) << made.error().message;
      of(self) = std::move(*made);
    });
  }
  void end() {
    on_all([this](RankThread& self) { of(self).reset(); });
  }
  Communicator& comm(RankThread& self) { return *of(self); }
  void calls(int number, std::int64_t count) {
    on_all([&](RankThread& self) {
      for (int i = 0; i < number; ++i) call(comm(self), count);
    });
  }

  // All communicators hold this but the world.
  std::int64_t bytes() { return real_bytes() - world_bytes_; }
  int commits() const { return commits_; }

 private:
  std::unique_ptr<Communicator>& of(const RankThread& self) {
    return made_[static_cast<std::size_t>(self.rank)];
  }
  std::int64_t real_bytes() { return threads_.real_bytes(0); }

  std::atomic<int> commits_{0};
  RankThreads threads_;
  Communicators made_;
  std::int64_t world_bytes_ = 0;
};

// Control data, and these buffers of all ranks: each rank's may begin and end within a page, and
// lie in two places.
std::int64_t most_bytes(int ranks, int small, int bulk) {
  const SegmentLayout layout = plan_segment(ranks, base::Settings());
  constexpr std::int64_t kPlaces = 2;
  std::int64_t bytes = layout.queue_buffers[SizeClass::small];
  const auto add = [&](SizeClass size, std::int64_t slots) {
    const plan::ReceiveGeometry& geometry = layout.receive_buffers[size];
    if (slots != 0)
      bytes += ranks * (slots * geometry.receive_buffer_bytes() + kPlaces * 2 * kPage);
  };
  add(SizeClass::small, small);
  add(SizeClass::bulk, bulk);
  return bytes;
}

TEST(SegmentMemory, FollowsTheCalls) {
  for (const int ranks : {2, 4, 8}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    Job job(ranks);
    job.duplicate();
    job.calls(1, 1);
    EXPECT_LE(job.bytes(), most_bytes(ranks, 4, 0));
    job.calls(1, kLong);
    EXPECT_LE(job.bytes(), most_bytes(ranks, 4, 4));
    for (int calls = 2; calls <= engine::kMostSlotIndexes; ++calls) {
      job.calls(1, 1);
      const int slots = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(calls, 4))));
      EXPECT_LE(job.bytes(), most_bytes(ranks, slots, 4)) << calls << " calls";
    }
    job.end();
  }
}

// Short calls have one plan, which is prepared once.
TEST(SegmentMemory, OperationsTouchOnlyWhatWasMadeReal) {
  for (const int ranks : {2, 3, 5}) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    Job job(ranks);
    job.duplicate();
    std::vector<const plan::Plan*> plans(static_cast<std::size_t>(ranks));
    job.on_all([&](RankThread& self) {
      plans[static_cast<std::size_t>(self.rank)] = *job.comm(self).plan(allreduce(1));
    });
    const auto call_again = [&](RankThread& self) {
      const double own = 1;
      double sum = 0;
      const plan::Plan& plan = *plans[static_cast<std::size_t>(self.rank)];
      EXPECT_TRUE(job.comm(self).run(plan, &own, &sum).ok());
      EXPECT_EQ(sum, ranks);
    };
    base::Prng prng(testing::UnitTest::GetInstance()->random_seed());
    for (int i = 0; i < 2 * engine::kMostSlotIndexes; ++i) {
      const int commits = job.commits();
      const std::int64_t before = job.bytes();
      if (prng.below(8) == 0) {
        job.calls(1, static_cast<std::int64_t>(prng.below(4 * kLong)) + 1);
      } else {
        job.on_all(call_again);
      }
      if (job.commits() == commits) {
        ASSERT_EQ(job.bytes(), before) << "call " << i;
      }
    }
    const int commits = job.commits();
    job.calls(2 * engine::kMostSlotIndexes, 1);
    EXPECT_EQ(job.commits(), commits);
    job.end();
  }
}

// Communicators of as many ranks come and go in one place: they hold no more than the first.
TEST(SegmentMemory, LaterCommunicatorsUseTheSameBuffers) {
  Job job(3);
  const auto use = [&job] {
    job.duplicate();
    job.calls(3, 1);
    job.end();
  };
  use();
  const std::int64_t bytes = job.bytes();
  const int commits = job.commits();
  for (int i = 0; i < 3 * engine::kMostSlotIndexes; ++i) use();
  EXPECT_EQ(job.bytes(), bytes);
  EXPECT_EQ(job.commits(), commits);
}

// Started operations, all in progress at once: one rank, which calls before the others, gets no
// memory at one of its requests. Earlier ones end well on all ranks, and all later ones fail.
void refuse_one(int victim, int refused, int expected) {
  constexpr int kCalls = 40;
  Job job(3);
  job.duplicate();
  std::atomic<int> requests{0};
  std::atomic<bool> victim_has_called{false};
  job.at(victim).memory->refuse_where([&](const char*) { return requests++ == refused; });
  std::vector<int> done(3);
  job.on_all([&](RankThread& self) {
    while (self.rank != victim && !victim_has_called) std::this_thread::yield();
    Communicator& comm = job.comm(self);
    const auto found = comm.plan(allreduce(1));
    std::optional<base::Error> error;
    if (!found) error = comm.failures().refuse(found.error().code, found.error().message);
    std::vector<Pending> pending(kCalls);
    std::vector<double> out(kCalls), in(kCalls, 1);
    for (std::size_t i = 0; i < kCalls && !error; ++i) {
      const Status status = comm.start(**found, &in[i], &out[i], pending[i]);
      if (!status) error = status.error();
    }
    if (self.rank == victim) victim_has_called = true;
    Communicator* const all[] = {&comm};
    for (Pending& each : pending) {
      Pending* const awaited[] = {&each};
      if (each.queue != nullptr) Communicator::wait_any(all, awaited);
      if (each.state == Pending::State::complete) ++done[static_cast<std::size_t>(self.rank)];
    }
    if (!error) error = comm.failures().tell();
    EXPECT_EQ(error->code, base::Code::resources) << error->message;
  });
  EXPECT_EQ(requests, refused + 1);
  EXPECT_EQ(done, std::vector<int>(3, expected));
  job.end();
}

TEST(SegmentMemory, ACallWithoutMemoryEndsItForAll) {
  for (int victim = 0; victim < 3; ++victim) {
    // Each time it asks for the buffers of three ranks, at last in two places.
    for (const auto& [refused, calls] :
         {std::pair{0, 0}, {2, 0}, {3, 4}, {5, 4}, {6, 8}, {9, 16}, {12, 32}, {17, 32}}) {
      SCOPED_TRACE(fmt::format("request {} of rank {}", refused, victim));
      refuse_one(victim, refused, calls);
    }
  }
}

}  // namespace
}  // namespace unisono::comm::segment_memory_test

// SPDX-License-Identifier: BSD-3-Clause
// The reason of a loss reaches every rank (job/loss/losses): of a device that vanishes, in the
// words of its rank, and of a rank that another one cannot write to, in the words of that one. The
// packets come in any order. Remote memory is a fake that carries nothing; one thread, virtual
// time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/world.hpp"
#include "job/loss/losses.hpp"
#include "transport/remote_memory.hpp"
#include "world/survivors.hpp"

namespace unisono::comm::loss_reason_test {
namespace {

using base::Code;
using test::World;
using test::WorldOptions;

constexpr int kRanks = 5;
constexpr int kVictim = 2;
constexpr std::uint64_t kSeeds = 40;
const std::vector<int> kHosts = {0, 1, 2, 1, 0};

class BrokenMemory final : public transport::RemoteMemory {
 public:
  std::string_view name() const override { return "broken"; }
  const transport::RegionCard& card() const override { return card_; }
  base::Status meet(int, const transport::RegionCard&) override { return base::success(); }
  bool raises_flags() const override { return true; }
  bool accepts_message(int) override { return false; }
  bool write(const transport::Transfer&) override { return false; }
  bool read(const transport::Transfer&) override { return false; }
  std::size_t poll(std::span<transport::Completion>) override { return 0; }
  std::size_t under_way() const override { return 0; }
  std::uint64_t moved(int) const override { return 0; }
  int descriptor() const override { return -1; }
  bool may_sleep() override { return true; }
  const std::string& error_of(int rank) const override {
    return errors[static_cast<std::size_t>(rank)];
  }
  std::uint64_t failures() const override { return failed; }
  std::string device_loss() const override { return lost_device; }

  std::array<std::string, kRanks> errors;
  std::uint64_t failed = 0;
  std::string lost_device;

 private:
  transport::RegionCard card_;
};

class Job {
 public:
  explicit Job(std::uint64_t seed) : world(options(seed)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      auto memory = std::make_unique<BrokenMemory>();
      memories[static_cast<std::size_t>(rank)] = memory.get();
      reliable::BulkOptions bulk;
      bulk.rank = rank;
      bulk.ranks = kRanks;
      bulk.region = world.memory_at(rank).at(0);
      bulk.now_ns = [this] { return world.datagrams()->now_ns(); };
      EXPECT_TRUE(job(rank).network()->use_bulk(std::move(memory), bulk).ok());
    }
  }
  ~Job() { world.part(); }

  job::Job& job(int rank) { return world.at(rank).members().job(); }

  // All wait in a barrier but rank 4, so that it does not end.
  void wait_in_barrier() {
    for (int rank = 0; rank < kRanks - 1; ++rank) {
      auto plan = world.at(rank).plan({});
      ASSERT_TRUE(plan.ok());
      ASSERT_TRUE(world.at(rank)
                      .start(**plan, nullptr, nullptr, pending_[static_cast<std::size_t>(rank)])
                      .ok());
    }
  }
  // Each of them gets an error with these words.
  void expect_all_are_told(const std::vector<std::string>& parts) {
    const auto all_ended = [this] {
      for (int rank = 0; rank < kRanks; ++rank) {
        // The communicator's failure may overtake the state of the lost rank.
        if (!world.at(rank).failures().has_failed() || !job(rank).ranks().is_lost(kVictim)) {
          return false;
        }
      }
      return std::ranges::all_of(pending_.begin(), pending_.end() - 1, [](const Pending& each) {
        return each.state == Pending::State::failed;
      });
    };
    for (int i = 0; i < 100'000 && !all_ended(); ++i) {
      if (!world.datagrams()->advance()) {
        world.datagrams()->advance_to(world.datagrams()->now_ns() + 20'000);
      }
      const int rank = world.random_rank();
      world.at(rank).progress();
      test::watch_at(job(rank), world.datagrams()->now_ns());
      world.at(rank).watchdog().examine(true);
    }
    ASSERT_TRUE(all_ended());
    for (int rank = 0; rank < kRanks; ++rank) {
      const base::Error error = world.at(rank).failures().tell();
      EXPECT_EQ(error.code, Code::rank_lost) << error.message;
      for (const std::string& part : parts) {
        EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
      }
    }
  }

  World world;
  std::array<BrokenMemory*, kRanks> memories{};

 private:
  static WorldOptions options(std::uint64_t seed) {
    WorldOptions options;
    options.ranks = kRanks;
    options.hosts = kHosts;
    options.virtual_datagrams = true;
    // Datagrams overtake one another, get lost, and arrive twice.
    options.network.seed = seed;
    options.datagrams.seed = seed;
    options.datagrams.loss = 0.02;
    options.datagrams.duplicates = 0.02;
    options.settings = {{"UNISONO_DETECT_TIMEOUT", "10ms"},
                        {"UNISONO_DETECT_TIMEOUT_HOSTS", "50ms"}};
    return options;
  }

  std::array<Pending, kRanks> pending_;
};

TEST(LossReason, OfADeviceThatVanishesReachesAllRanks) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Job job(seed);
    job.wait_in_barrier();
    BrokenMemory& memory = *job.memories[kVictim];
    std::ranges::fill(memory.errors, "verbs: a connection failed");
    memory.failed = kRanks - 1;
    memory.lost_device = "verbs: rank 2 at rxe2 port 1: the device was removed; check it";
    ASSERT_NO_FATAL_FAILURE(job.expect_all_are_told({"rank 2 is lost", memory.lost_device}));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int other = 0; other < kRanks; ++other) {
        const bool is_lost = job.job(rank).ranks().is_lost(other);
        EXPECT_EQ(is_lost, other == kVictim) << other << ", as rank " << rank << " sees it";
        EXPECT_EQ(job.job(rank).losses().reason(other), is_lost ? memory.lost_device : "");
      }
    }
  }
}

TEST(LossReason, OfARankThatOneCannotWriteToReachesAllOthers) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Job job(seed);
    job.wait_in_barrier();
    BrokenMemory& memory = *job.memories[1];
    memory.errors[kVictim] =
        "verbs: rank 1 at rxe1 port 1: a write to rank 2 failed; check the link";
    memory.failed = 1;
    ASSERT_NO_FATAL_FAILURE(job.expect_all_are_told({"rank 2 is lost", memory.errors[kVictim]}));
  }
}

}  // namespace
}  // namespace unisono::comm::loss_reason_test

// SPDX-License-Identifier: BSD-3-Clause
// Long puts by remote memory beside packets, with a remote memory that does what the test says:
// flags wait for their bytes, and what fails is told. In one thread, with virtual time.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <deque>
#include <utility>

#include "ranks.hpp"
#include "reliable/bulk/bulk.hpp"

namespace unisono::reliable::bulk_test {
namespace {

using transport::Completion;
using transport::RegionCard;
using transport::Transfer;

// Keeps what it is told to write until the test lets it arrive, in any order, or fail.
class HeldMemory final : public transport::RemoteMemory {
 public:
  explicit HeldMemory(Ranks& ranks) : ranks_(ranks) {}
  struct Held {
    Transfer transfer;
    std::vector<std::byte> bytes;
  };

  std::string_view name() const override { return "held"; }
  const RegionCard& card() const override { return card_; }
  base::Status meet(int, const RegionCard&) override { return base::success(); }
  bool write(const Transfer& transfer) override {
    if (full) return false;
    held.push_back({transfer, {transfer.from, transfer.from + transfer.bytes}});
    return true;
  }
  bool read(const Transfer& transfer) override {
    if (full) return false;
    held.push_back({transfer, {}});
    return true;
  }
  std::size_t poll(std::span<Completion> completions) override {
    std::size_t count = 0;
    for (; count < completions.size() && !complete_.empty(); ++count) {
      completions[count] = complete_.front();
      complete_.pop_front();
    }
    return count;
  }
  std::size_t under_way() const override { return held.size(); }
  std::uint64_t moved(int rank) const override {
    return moved_parts[static_cast<std::size_t>(rank)];
  }
  int descriptor() const override { return wakes ? sleeper_.get() : -1; }
  bool may_sleep() override { return complete_.empty(); }
  const std::string& error_of(int) const override { return error_; }

  void end(std::size_t index, bool arrives) {
    const Held one = std::move(held[index]);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
    std::byte* const there = ranks_.region(one.transfer.rank) + one.transfer.offset;
    if (arrives && one.transfer.to != nullptr) {
      std::memcpy(one.transfer.to, there, one.transfer.bytes);
    } else if (arrives) {
      std::memcpy(there, one.bytes.data(), one.bytes.size());
    }
    complete_.push_back({one.transfer.rank, one.transfer.token, arrives});
  }

  bool full = false;
  bool wakes = false;  // by a descriptor, which is readable all the time
  std::vector<Held> held;
  std::array<std::uint64_t, 3> moved_parts{};

 private:
  Ranks& ranks_;
  RegionCard card_;
  std::deque<Completion> complete_;
  std::string error_ = "the wire is cut";
  base::Descriptor sleeper_{eventfd(1, EFD_CLOEXEC)};
};

constexpr std::size_t kLong = 1000;
constexpr std::int64_t kSilenceNs = 800 * kMillisecond;

class BulkTest : public testing::Test {
 protected:
  void SetUp() override { make(false); }

  void make(bool wakes) {
    auto memory = std::make_unique<HeldMemory>(ranks_);
    memory_ = memory.get();
    memory_->wakes = wakes;
    BulkOptions options;
    options.ranks = 3;
    options.region = ranks_.region(0);
    options.from_bytes = kLong;
    options.silence_ns = kSilenceNs;
    options.now_ns = [this] { return ranks_.network().now_ns(); };
    options.failed = [this](int rank, const std::string& why) { failed_.emplace_back(rank, why); };
    auto made = Bulk::over(ranks_.at(0), std::move(memory), options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    bulk_ = std::move(*made);
  }

  void put(int to, const std::vector<std::byte>& bytes, std::size_t place, std::uint64_t value) {
    auto* const flag = reinterpret_cast<std::uint64_t*>(ranks_.region(0) + kFlag);
    bulk_->put({.target = to,
                .source = bytes.data(),
                .place = ranks_.region(0) + place,
                .bytes = bytes.size(),
                .flag = value == 0 ? nullptr : flag,
                .flag_value = value});
  }
  void get(int from) {
    bulk_->get({.source = from,
                .offset = 128,
                .place = ranks_.region(0) + 256,
                .bytes = kLong,
                .flag = reinterpret_cast<std::uint64_t*>(ranks_.region(0) + kFlag),
                .flag_value = 8});
  }
  bool is_there(int rank, const std::vector<std::byte>& bytes, std::size_t place) {
    return std::memcmp(ranks_.region(rank) + place, bytes.data(), bytes.size()) == 0;
  }
  // Long enough for packets, their repetition included.
  void run() {
    bulk_->progress();
    ranks_.run_for(50 * kMillisecond);
  }
  // The same again and again; of the transfers with rank `moving` a part ends each time.
  void run_for(std::int64_t time_ns, int moving = 0) {
    const std::int64_t end_ns = ranks_.network().now_ns() + time_ns;
    while (ranks_.network().now_ns() < end_ns) {
      ++memory_->moved_parts[static_cast<std::size_t>(moving)];
      run();
    }
  }

  Ranks ranks_{3};
  std::unique_ptr<Bulk> bulk_;
  HeldMemory* memory_ = nullptr;
  std::vector<std::pair<int, std::string>> failed_;
};

TEST_F(BulkTest, ShortPutsGoAsPackets) {
  put(1, pattern(kLong - 1), 64, 5);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(kLong - 1), 64));
  EXPECT_EQ(bulk_->counts(), BulkCounts{});
}

TEST_F(BulkTest, TheFlagWaitsForTheWrite) {
  put(1, pattern(kLong), 64, 5);
  ASSERT_EQ(memory_->held.size(), 1U);
  EXPECT_EQ(memory_->held[0].transfer.offset, 64U);
  run();
  EXPECT_EQ(ranks_.word(1), 0U);
  EXPECT_FALSE(bulk_->settle());
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(kLong), 64));
  EXPECT_EQ(bulk_->counts().written, 1U);
}

// A length header, then the bytes with the flag, as the engines send them. The header must be there
// when the flag is, even if another message overtakes.
TEST_F(BulkTest, ShortPiecesOfALongMessageComeBeforeItsFlag) {
  put(1, pattern(8, 9), 0, 0);
  put(1, pattern(kLong), 64, 5);
  put(1, pattern(16, 3), 4096, 6);  // overtakes it
  run();
  EXPECT_EQ(ranks_.word(1), 6U);
  EXPECT_FALSE(is_there(1, pattern(8, 9), 0));
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(8, 9), 0));
  EXPECT_TRUE(is_there(1, pattern(kLong), 64));
}

TEST_F(BulkTest, SeveralLongPiecesArriveInAnyOrder) {
  put(1, pattern(kLong, 1), 0, 0);
  put(1, pattern(2 * kLong, 2), 8192, 0);
  put(1, {}, 0, 7);
  ASSERT_EQ(memory_->held.size(), 2U);
  memory_->end(1, true);
  run();
  EXPECT_EQ(ranks_.word(1), 0U);
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(1), 7U);
  EXPECT_TRUE(is_there(1, pattern(2 * kLong, 2), 8192));
}

TEST_F(BulkTest, APieceThatHasArrivedBeforeTheFlagIsPutKeepsTheRest) {
  put(1, pattern(8, 9), 0, 0);
  put(1, pattern(kLong, 1), 64, 0);
  memory_->end(0, true);
  run();
  put(1, pattern(24, 4), 4096, 7);
  run();
  EXPECT_EQ(ranks_.word(1), 7U);
  EXPECT_TRUE(is_there(1, pattern(8, 9), 0));
  EXPECT_TRUE(is_there(1, pattern(kLong, 1), 64));
  EXPECT_TRUE(is_there(1, pattern(24, 4), 4096));
}

TEST_F(BulkTest, WithoutRoomALongPutGoesAsPackets) {
  memory_->full = true;
  put(1, pattern(kLong), 64, 5);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(kLong), 64));
  EXPECT_EQ(bulk_->counts().refused, 1U);
}

TEST_F(BulkTest, WithoutRoomForARestTheFlagStillWaits) {
  put(1, pattern(kLong, 1), 0, 0);
  memory_->full = true;
  put(1, pattern(kLong, 2), 8192, 5);
  run();
  EXPECT_EQ(ranks_.word(1), 0U);
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(1), 5U);
  EXPECT_TRUE(is_there(1, pattern(kLong, 1), 0));
  EXPECT_TRUE(is_there(1, pattern(kLong, 2), 8192));
}

TEST_F(BulkTest, ALongGetIsARead) {
  const auto bytes = pattern(kLong, 6);
  std::memcpy(ranks_.region(2) + 128, bytes.data(), kLong);
  get(2);
  run();
  EXPECT_EQ(ranks_.word(0), 0U);
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(0), 8U);
  EXPECT_TRUE(is_there(0, bytes, 256));
  EXPECT_EQ(bulk_->counts().read, 1U);
}

// A failed write may still arrive, so neither its flag nor another copy of its bytes is sent.
TEST_F(BulkTest, APeerToWhichAWriteFailedIsLost) {
  put(1, pattern(kLong), 64, 5);
  put(2, pattern(kLong), 64, 6);
  EXPECT_FALSE(bulk_->has_lost(1));
  memory_->end(0, false);
  memory_->end(0, true);
  run();
  EXPECT_TRUE(bulk_->has_lost(1));
  EXPECT_FALSE(bulk_->has_lost(2));
  EXPECT_EQ(ranks_.word(1), 0U);
  EXPECT_EQ(ranks_.word(2), 6U);
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0], (std::pair<int, std::string>{1, "the wire is cut"}));
  // It can still be told that it is lost.
  put(1, pattern(8), 64, 9);
  run();
  EXPECT_EQ(ranks_.word(1), 9U);
}

TEST_F(BulkTest, WithoutRoomALongGetGoesAsPackets) {
  const auto bytes = pattern(kLong, 6);
  std::memcpy(ranks_.region(2) + 128, bytes.data(), kLong);
  memory_->full = true;
  get(2);
  run();
  EXPECT_EQ(ranks_.word(0), 8U);
  EXPECT_TRUE(is_there(0, bytes, 256));
  EXPECT_EQ(bulk_->counts().refused, 1U);
  EXPECT_TRUE(bulk_->settle());
}

// Also one that answers: no packet of this test is lost.
TEST_F(BulkTest, APeerWithWhichNothingMovesIsLost) {
  put(1, pattern(kLong), 64, 5);
  put(2, pattern(kLong), 64, 6);
  run_for(kSilenceNs - 50 * kMillisecond, 2);
  EXPECT_FALSE(bulk_->has_lost(1));
  run_for(kSilenceNs, 2);
  EXPECT_TRUE(bulk_->has_lost(1));
  EXPECT_FALSE(bulk_->has_lost(2));
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].first, 1);
  EXPECT_EQ(failed_[0].second, bulk_->why_lost(1));
  for (const char* part : {"held", "rank 1", "800ms", "UNISONO_DETECT_TIMEOUT_HOSTS", "MTU"}) {
    EXPECT_NE(failed_[0].second.find(part), std::string::npos) << part << ": " << failed_[0].second;
  }
  EXPECT_EQ(bulk_->why_lost(2), "");
  // The flag does not come, even if the bytes do so later.
  memory_->end(0, true);
  memory_->end(0, true);
  run();
  EXPECT_EQ(ranks_.word(1), 0U);
  EXPECT_EQ(ranks_.word(2), 6U);
}

TEST_F(BulkTest, APeerOfWhichNothingCanBeReadIsLost) {
  get(2);
  run_for(2 * kSilenceNs);
  EXPECT_TRUE(bulk_->has_lost(2));
  EXPECT_EQ(ranks_.word(0), 0U);
}

TEST_F(BulkTest, ASlowPeerIsNotLostWhileItsPartsMove) {
  put(1, pattern(kLong), 64, 5);
  for (int part = 0; part < 10; ++part) {
    run_for(kSilenceNs - 200 * kMillisecond);
    ++memory_->moved_parts[1];
  }
  EXPECT_FALSE(bulk_->has_lost(1));
}

TEST_F(BulkTest, WithoutTransfersNothingHasToMove) {
  run_for(3 * kSilenceNs);
  put(1, pattern(kLong), 64, 5);
  run_for(kSilenceNs - 200 * kMillisecond);
  memory_->end(0, true);
  run_for(3 * kSilenceNs);
  put(1, pattern(kLong), 64, 6);
  run_for(kSilenceNs - 200 * kMillisecond);
  EXPECT_FALSE(bulk_->has_lost(1));
}

// A process that was stopped itself, with all of its threads.
TEST_F(BulkTest, TimeInWhichNobodyLookedBlamesNoPeer) {
  put(1, pattern(kLong), 64, 5);
  run_for(200 * kMillisecond);
  ranks_.run_for(10 * kSilenceNs);
  run_for(200 * kMillisecond);
  EXPECT_FALSE(bulk_->has_lost(1));
  run_for(kSilenceNs);
  EXPECT_TRUE(bulk_->has_lost(1));
}

TEST_F(BulkTest, ALostPeerKeepsNobodyAwake) {
  make(true);
  EXPECT_GT(bulk_->longest_sleep_ns(), kSilenceNs);
  put(1, pattern(kLong), 64, 5);
  EXPECT_LT(bulk_->longest_sleep_ns(), 10 * kMillisecond);
  run_for(2 * kSilenceNs);
  EXPECT_TRUE(bulk_->has_lost(1));
  EXPECT_GT(bulk_->longest_sleep_ns(), kSilenceNs);
  EXPECT_TRUE(bulk_->settle());
  // A completion that comes after all changes nothing.
  memory_->end(0, false);
  run();
  EXPECT_GT(bulk_->longest_sleep_ns(), kSilenceNs);
}

TEST_F(BulkTest, ADescriptorThatIsGivenUpWakesNobody) {
  make(true);
  pollfd sleeper{bulk_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&sleeper, 1, 0), 1);
  memory_->wakes = false;  // as where the provider's queue has failed
  run();
  EXPECT_EQ(poll(&sleeper, 1, 0), 0);
}

TEST_F(BulkTest, WhoWasForgottenIsNotWaitedFor) {
  put(1, pattern(kLong), 64, 5);
  bulk_->forget(1);
  EXPECT_TRUE(bulk_->settle());
  memory_->end(0, false);
  run();
  EXPECT_TRUE(failed_.empty());
}

TEST_F(BulkTest, ItSleepsShortlyWhereNothingWakesIt) {
  EXPECT_LE(bulk_->longest_sleep_ns(), kMillisecond);
  EXPECT_TRUE(bulk_->may_sleep());
  put(1, pattern(kLong), 64, 5);
  memory_->end(0, true);
  EXPECT_FALSE(bulk_->may_sleep());
}

}  // namespace
}  // namespace unisono::reliable::bulk_test

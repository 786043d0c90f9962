// SPDX-License-Identifier: BSD-3-Clause
// Long messages are stored past the caches where cached stores are much slower, and arrive whole
// either way.
#include "transport/shm/long_store.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/prng.hpp"
#include "transport/transport.hpp"

namespace unisono::transport::long_store_test {
namespace {

using Way = StorePace::Way;
constexpr std::size_t kBytes = std::size_t{128} << 10;
constexpr double kRatio = 6;

// So many messages; those of each way take so long. How many went past the caches.
int run(StorePace& pace, int messages, std::int64_t cached_ns, std::int64_t past_ns) {
  int past = 0;
  for (int i = 0; i < messages; ++i) {
    const Way way = pace.next();
    past += way == Way::past_caches ? 1 : 0;
    pace.note(way, kBytes, way == Way::cached ? cached_ns : past_ns);
  }
  return past;
}

TEST(StorePace, KeepsToTheCachesBetweenNearCores) {
  StorePace pace(kRatio);
  EXPECT_LT(run(pace, 10'000, 4000, 7000), 30) << "samples";
  EXPECT_EQ(pace.usual(), Way::cached);
  // Also where the sender alone would be faster past the caches.
  EXPECT_LT(run(pace, 10'000, 7000, 2500), 30);
  EXPECT_EQ(pace.usual(), Way::cached);
}

TEST(StorePace, GoesPastTheCachesBetweenFarCores) {
  StorePace pace(kRatio);
  EXPECT_GT(run(pace, 10'000, 56'000, 6600), 9700);
  EXPECT_EQ(pace.usual(), Way::past_caches);
}

// Those messages are the first to touch their memory.
TEST(StorePace, IsNotChangedByTheFirstMessages) {
  StorePace pace(kRatio);
  run(pace, 90, 56'000, 6600);
  EXPECT_EQ(pace.usual(), Way::cached);
}

// Where cached stores wait less, a lower ratio decides.
TEST(StorePace, GoesPastTheCachesAtTheRatioThatItWasGiven) {
  StorePace usual(kRatio), lower(2.5);
  run(usual, 10'000, 24'000, 7000);
  run(lower, 10'000, 24'000, 7000);
  EXPECT_EQ(usual.usual(), Way::cached);
  EXPECT_EQ(lower.usual(), Way::past_caches);
}

TEST(StorePace, ChangesWithTheDistance) {
  StorePace pace(kRatio);
  run(pace, 2000, 4000, 7000);
  run(pace, 2000, 56'000, 7000);
  EXPECT_EQ(pace.usual(), Way::past_caches);
  run(pace, 100, 4000, 7000);
  EXPECT_EQ(pace.usual(), Way::cached);
}

TEST(StorePace, IsNotMisledByMessagesThatLostTheirCore) {
  StorePace pace(kRatio);
  run(pace, 2000, 4000, 7000);
  for (int i = 0; i < 1000; ++i) {
    const Way way = pace.next();
    pace.note(way, kBytes, i % 3 != 0 ? 4'000'000 : 4000);  // two of three, never four in a row
    ASSERT_EQ(pace.usual(), Way::cached) << i;
  }
}

TEST(StorePace, ForgetsASampleThatLostItsCore) {
  StorePace pace(kRatio);
  run(pace, 100, 4000, 7000);
  Way way = pace.next();
  while (way != Way::past_caches) {
    pace.note(way, kBytes, 4000);
    way = pace.next();
  }
  pace.note(way, kBytes, 70'000'000);
  run(pace, 100, 56'000, 7000);
  EXPECT_EQ(pace.usual(), Way::past_caches) << "the sample counts by a quarter only";
}

TEST(LongStore, CopiesWholeMessagesWhereverTheyLie) {
  constexpr std::size_t kMargin = 256;
  constexpr std::byte kUntouched{0xa5};
  base::Prng prng(11);
  std::vector<std::byte> source(kLongStoreBytes + 2 * kMargin);
  constexpr std::size_t kLeast[] = {kPacedBytes, kLongStoreBytes, 0};
  for (std::byte& each : source) each = static_cast<std::byte>(prng.below(256));
  for (int i = 0; i < 4096; ++i) {
    const std::size_t from = prng.below(65), to = prng.below(65);
    const std::size_t least = kLeast[i % 3];
    const std::size_t bytes = least + prng.below(200);
    std::vector<std::byte> place(bytes + to + kMargin, kUntouched);
    if (least > 0) {
      store_paced({3, i % 2 == 0}, place.data() + to, source.data() + from, bytes);
    } else {
      copy_past_caches(place.data() + to, source.data() + from, bytes);
    }
    ASSERT_EQ(std::memcmp(place.data() + to, source.data() + from, bytes), 0)
        << from << " " << to << " " << bytes;
    for (std::size_t k = 0; k < to; ++k) ASSERT_EQ(place[k], kUntouched);
    for (std::size_t k = to + bytes; k < place.size(); ++k) ASSERT_EQ(place[k], kUntouched);
  }
}

TEST(LongStore, ArrivesWholeWithItsFlagAtTheLimitsAndBelowThem) {
  for (const std::size_t bytes :
       {kPacedBytes - 1, kPacedBytes, kLongStoreBytes - 1, kLongStoreBytes}) {
    const std::vector<std::byte> source(bytes, std::byte{7});
    std::vector<std::byte> place(bytes + 1, std::byte{0});
    std::uint64_t flag = 0;
    store({.target = 5,
           .source = source.data(),
           .place = place.data(),
           .bytes = bytes,
           .flag = &flag,
           .flag_value = 9});
    EXPECT_EQ(flag, 9U);
    EXPECT_EQ(std::memcmp(place.data(), source.data(), bytes), 0) << bytes;
    EXPECT_EQ(place.back(), std::byte{0}) << bytes;
  }
}

}  // namespace
}  // namespace unisono::transport::long_store_test

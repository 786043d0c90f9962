// SPDX-License-Identifier: BSD-3-Clause
// What every transport has to do with a put: its bytes are there when its flag is. A test file
// instantiates it for its own World:
//
//   struct World {
//     static base::Result<std::unique_ptr<World>> make(int ranks);  // an error: skipped, with it
//     Transport& at(int rank);
//     std::byte* region(int rank);  // of kConformanceRegion bytes, zero; perhaps all have the same
//     void step();                  // carries all ranks on
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Name, TransportConformance, World);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "transport/transport.hpp"

namespace unisono::transport {

inline constexpr std::size_t kConformanceRegion = std::size_t{24} << 20;
// Flags begin here, a line each.
inline constexpr std::size_t kConformanceFlags = kConformanceRegion - 4096;

template <class World>
class TransportConformance : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;

  void make(int ranks) {
    auto made = World::make(ranks);
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    world = std::move(*made);
  }
  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(prng.next());
    return bytes;
  }
  std::uint64_t* flag(int rank, int number) {
    return reinterpret_cast<std::uint64_t*>(world->region(rank) + kConformanceFlags + 64 * number);
  }
  std::uint64_t value(int rank, int number) {
    return std::atomic_ref(*flag(rank, number)).load(std::memory_order_acquire);
  }
  // `value` 0: without a flag. Places are in terms of the sender's region.
  void put(int from, int to, std::size_t place, const Bytes& bytes, int number,
           std::uint64_t value) {
    world->at(from).put({.target = to,
                         .source = bytes.data(),
                         .place = world->region(from) + place,
                         .bytes = bytes.size(),
                         .flag = value == 0 ? nullptr : flag(from, number),
                         .flag_value = value});
  }
  void wait(int from, int rank, int number, std::uint64_t wanted) {
    while (value(rank, number) != wanted) {
      world->at(rank).awaits(from);
      world->step();
    }
  }
  bool is_there(int rank, std::size_t place, const Bytes& bytes) {
    return std::equal(bytes.begin(), bytes.end(), world->region(rank) + place);
  }

  std::unique_ptr<World> world;
  base::Prng prng{31};
};
TYPED_TEST_SUITE_P(TransportConformance);

#define UNISONO_MAKE_WORLD(ranks) \
  this->make(ranks);              \
  if (this->world == nullptr) return

TYPED_TEST_P(TransportConformance, TheBytesAreThereWhenTheFlagIs) {
  UNISONO_MAKE_WORLD(2);
  std::uint64_t turn = 0;
  for (const std::size_t count :
       {1UL, 8UL, 1399UL, 40'000UL, 65'535UL, 65'536UL, 262'145UL, 2'000'003UL, 9'000'000UL}) {
    auto bytes = this->random_bytes(count);
    const auto before = bytes;
    this->put(0, 1, 128, bytes, 0, ++turn);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});  // it may be reused at once
    this->wait(0, 1, 0, turn);
    ASSERT_TRUE(this->is_there(1, 128, before)) << count;
  }
}

TYPED_TEST_P(TransportConformance, AFlagNeedsNoBytes) {
  UNISONO_MAKE_WORLD(2);
  for (std::uint64_t turn = 1; turn < 50; ++turn) {
    this->put(0, 1, 0, {}, 1, turn);
    this->wait(0, 1, 1, turn);
  }
}

// Also across the end of the numbers, and together with bytes.
TYPED_TEST_P(TransportConformance, AWordThatMovesForwardIsNotSetBack) {
  UNISONO_MAKE_WORLD(3);
  const auto tell = [this](int from, int to, std::uint64_t value,
                           const std::vector<std::byte>& bytes = {}) {
    this->world->at(from).put({.target = to,
                               .source = bytes.data(),
                               .place = this->world->region(from) + 128,
                               .bytes = bytes.size(),
                               .flag = this->flag(from, 2),
                               .flag_value = value,
                               .forward = true});
  };
  for (const int target : {1, 0}) {  // another, and itself
    std::atomic_ref(*this->flag(target, 2)).store(UINT64_MAX - 2);
    std::uint64_t turn = 0;
    for (const std::uint64_t value : {UINT64_MAX, std::uint64_t{3}, std::uint64_t{40}}) {
      tell(0, target, value);
      this->wait(0, target, 2, value);
      const auto late = this->random_bytes(300'000);
      tell(2, target, value - 1);
      tell(0, target, value - 2, late);
      tell(0, target, value);
      ++turn;
      this->put(0, target, 0, {}, 3, turn);
      this->put(2, target, 0, {}, 4, turn);
      this->wait(0, target, 3, turn);
      this->wait(2, target, 4, turn);
      while (!this->is_there(target, 128, late)) this->world->step();
      for (int i = 0; i < 100; ++i) this->world->step();
      ASSERT_EQ(this->value(target, 2), value);
    }
  }
}

// Short and long ones, in any order, then the flag: with bytes or without.
TYPED_TEST_P(TransportConformance, AFlagComesAfterAllBytesOfItsMessage) {
  UNISONO_MAKE_WORLD(2);
  constexpr std::size_t kMost = 300'000;
  for (std::uint64_t turn = 1; turn < 40; ++turn) {
    std::vector<std::pair<std::size_t, std::vector<std::byte>>> pieces;
    const std::size_t count = 1 + this->prng.below(5);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t most = this->prng.below(2) == 0 ? 100 : kMost;
      const std::size_t bytes = i + 1 == count && turn % 4 == 0 ? 0 : 1 + this->prng.below(most);
      pieces.emplace_back(i * kMost, this->random_bytes(bytes));
      this->put(0, 1, pieces[i].first, pieces[i].second, 2, i + 1 == count ? turn : 0);
    }
    this->wait(0, 1, 2, turn);
    for (const auto& [place, bytes] : pieces) {
      ASSERT_TRUE(this->is_there(1, place, bytes)) << "turn " << turn << ", place " << place;
    }
  }
}

TYPED_TEST_P(TransportConformance, ManyMessagesAtOnceBetweenAll) {
  constexpr int kRanks = 4;
  constexpr int kEach = 6;
  constexpr std::size_t kMost = 200'000;
  UNISONO_MAKE_WORLD(kRanks);
  const auto place = [](int from, int to, int i) {
    return static_cast<std::size_t>((from * kRanks + to) * kEach + i) * kMost;
  };
  const auto number = [](int from, int to) { return 3 + from * kRanks + to; };
  std::vector<std::vector<std::byte>> sent(kRanks * kRanks * kEach);
  for (int i = 0; i < kEach; ++i) {
    for (int from = 0; from < kRanks; ++from) {
      for (int to = 0; to < kRanks; ++to) {
        if (from == to) continue;
        auto& bytes = sent[place(from, to, i) / kMost];
        bytes = this->random_bytes(1 + this->prng.below(i % 2 == 0 ? kMost : 500));
        this->put(from, to, place(from, to, i), bytes, number(from, to), 0);
      }
    }
  }
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from != to) this->put(from, to, 0, {}, number(from, to), 5);
    }
  }
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      this->wait(from, to, number(from, to), 5);
      for (int i = 0; i < kEach; ++i) {
        ASSERT_TRUE(this->is_there(to, place(from, to, i), sent[place(from, to, i) / kMost]));
      }
    }
  }
}

TYPED_TEST_P(TransportConformance, AGetBringsWhatIsThere) {
  UNISONO_MAKE_WORLD(2);
  if (!this->world->at(0).capabilities().get) GTEST_SKIP() << "it has no gets";
  std::uint64_t turn = 0;
  for (const std::size_t count : {8UL, 5'000UL, 65'536UL, 3'000'000UL}) {
    const auto bytes = this->random_bytes(count);
    std::memcpy(this->world->region(1) + 4096, bytes.data(), count);
    this->world->at(0).get({.source = 1,
                            .offset = 4096,
                            .place = this->world->region(0) + 8192,
                            .bytes = count,
                            .flag = this->flag(0, 0),
                            .flag_value = ++turn});
    this->wait(1, 0, 0, turn);
    ASSERT_TRUE(this->is_there(0, 8192, bytes)) << count;
  }
}

#undef UNISONO_MAKE_WORLD

REGISTER_TYPED_TEST_SUITE_P(TransportConformance, TheBytesAreThereWhenTheFlagIs, AFlagNeedsNoBytes,
                            AWordThatMovesForwardIsNotSetBack, AFlagComesAfterAllBytesOfItsMessage,
                            ManyMessagesAtOnceBetweenAll, AGetBringsWhatIsThere);

}  // namespace unisono::transport

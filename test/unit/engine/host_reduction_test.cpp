// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a host combine in shared memory: one of them is the last, and whoever that is, the
// sum has the same bits, those of the tree.
#include "engine/nic/host_reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/prng.hpp"

namespace unisono::engine::test::host_reduction_test {
namespace {

constexpr std::uint32_t kCombine = 0xABCDE0 + UNISONO_NIC_SUM_FLOAT64;

class Host {
 public:
  Host(int ranks, int fan_in) {
    const auto bytes = static_cast<std::size_t>(HostReduction::memory_bytes(ranks));
    memory_.resize(bytes + 64);
    void* start = memory_.data();
    std::size_t room = memory_.size();
    auto* const aligned = static_cast<std::byte*>(std::align(64, bytes, start, room));
    for (int place = 0; place < ranks; ++place) {
      ranks_.push_back(std::make_unique<HostReduction>(aligned, place, ranks, fan_in));
    }
  }
  HostReduction& at(int place) { return *ranks_[static_cast<std::size_t>(place)]; }

 private:
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<HostReduction>> ranks_;
};

// Numbers of very different sizes: each order of summation has another result.
std::vector<double> numbers_of(int place, std::size_t count) {
  base::Prng random(static_cast<std::uint64_t>(place) + 17);
  std::vector<double> numbers(count);
  for (double& x : numbers) x = (random.unit() - 0.5) * static_cast<double>(1 << random.below(30));
  return numbers;
}

std::vector<double> add(std::vector<double> left, const std::vector<double>& right) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

arith::Kernel sum_kernel() {
  return arith::find_kernel(arith::Operator::sum, arith::Type::float64);
}

// The sum that the last to come finds, of ranks that come in this order.
std::vector<double> sum_of(Host& host, const std::vector<int>& order, std::size_t count) {
  std::vector<double> sum(count);
  for (const int place : order) {
    const std::vector<double> own = numbers_of(place, count);
    const bool is_last = host.at(place).give(
        {kCombine, count * sizeof(double), {own.data(), 0, count * sizeof(double)}});
    EXPECT_EQ(is_last, place == order.back());
    EXPECT_EQ(host.at(place).is_complete(), is_last);
    if (!is_last) continue;
    EXPECT_FALSE(host.at(place).mismatching_place().has_value());
    const auto words = host.at(place).combine(sum_kernel(), static_cast<std::int64_t>(count));
    EXPECT_EQ(words.size(), count);
    std::memcpy(sum.data(), words.data(), words.size_bytes());
  }
  return sum;
}

TEST(HostReduction, WhoeverComesLastTheBitsAreThoseOfTheTree) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{175}, nic::kWordsMax}) {
    std::vector<std::vector<double>> x;
    for (int place = 0; place < 5; ++place) x.push_back(numbers_of(place, count));
    const auto flat = add(add(add(add(x[0], x[1]), x[2]), x[3]), x[4]);
    const auto binomial = add(add(add(x[0], x[1]), add(x[2], x[3])), x[4]);
    Host one(5, 7);
    Host other(5, 1);
    std::vector<int> order = {0, 1, 2, 3, 4};
    do {
      EXPECT_EQ(sum_of(one, order, count), flat);
      EXPECT_EQ(sum_of(other, order, count), binomial);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(HostReduction, WhereNothingIsCombinedOneGives) {
  for (int giver = -1; giver < 3; ++giver) {
    Host host(3, 7);
    const std::vector<std::uint8_t> block = {1, 2, 3};
    for (int place = 0; place < 3; ++place) {
      host.at(place).give(
          {UNISONO_NIC_OR, block.size(), {block.data(), 0, place == giver ? block.size() : 0}});
    }
    const auto words = host.at(2).combine(nullptr, 0);
    ASSERT_EQ(words.size(), 1U);
    EXPECT_EQ(words[0], giver < 0 ? 0U : 0x030201U) << "in whole words, filled with zeros";
  }
}

TEST(HostReduction, ACallThatDiffersIsNamedByItsPlace) {
  const std::vector<std::uint64_t> vector(2);
  const auto odd = [&](const HostReduction::Contribution& of_one) {
    Host host(3, 7);
    host.at(2).give({kCombine, 8, {vector.data(), 0, 8}});
    host.at(1).give(of_one);
    EXPECT_TRUE(host.at(0).give({kCombine, 8, {vector.data(), 0, 8}}));
    return host.at(0).mismatching_place();
  };
  EXPECT_EQ(odd({kCombine, 8}), std::nullopt) << "one that gives nothing, as told";
  EXPECT_EQ(odd({kCombine, 7, {vector.data()}}), 1);
  EXPECT_EQ(odd({kCombine + 0x100, 8, {vector.data()}}), 1) << "the digest of the calls";
}

// As in a communicator: a rank gives to the next operation when it has seen the result of this one.
TEST(HostReduction, OneOfAllIsTheLastInEachOperation) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kOperations = 20'000;
  Host host(kRanks, 7);
  std::atomic<std::int64_t> results = 0;  // the last one, with all before it
  std::atomic<std::int64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (int place = 0; place < kRanks; ++place) {
    threads.emplace_back([&, place] {
      for (std::int64_t operation = 1; operation <= kOperations; ++operation) {
        const std::int64_t own = operation * 10 + place;
        if (host.at(place).give({UNISONO_NIC_SUM_INT64, sizeof own, {&own, 0, sizeof own}})) {
          const auto sum = host.at(place).combine(
              arith::find_kernel(arith::Operator::sum, arith::Type::int64), 1);
          wrong += static_cast<std::int64_t>(sum[0]) != operation * 40 + 6;
          results.store(operation, std::memory_order_release);
        }
        while (results.load(std::memory_order_acquire) < operation) std::this_thread::yield();
        wrong += !host.at(place).is_complete();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace unisono::engine::test::host_reduction_test

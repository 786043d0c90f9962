// SPDX-License-Identifier: BSD-3-Clause
#include "plan/choice_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace unisono::plan::choice_table_test {
namespace {

using schedule::Collective;
using select::Priced;
using select::PricedCall;

using Entries = std::vector<ChoiceEntry>;

constexpr std::int64_t kShortNs = 1, kForEverNs = 3'600'000'000'000;

Entries no_choices() { return Entries(ChoiceTable::kEntries); }

PricedCall call_of(std::int64_t count) {
  return {.collective = Collective::allreduce,
          .count = count,
          .element_bytes = 8,
          .op = arith::Operator::sum,
          .type = arith::Type::float64};
}

Priced priced(int degree, double ns, Collective collective = Collective::allreduce) {
  Priced one{.row = algorithm::find(collective,
                                    collective == Collective::reduce ? "fnomial" : "circulant"),
             .parameters = {},
             .price = {},
             .is_estimate = true};
  one.parameters.values[0] = degree;
  one.price.ns = ns;
  return one;
}

std::optional<Priced> never() {
  ADD_FAILURE() << "the choice was made before";
  return std::nullopt;
}

TEST(ChoiceTable, AChoiceOfOneRankIsThatOfTheOthers) {
  Entries entries = no_choices();
  ChoiceTable first(entries.data()), second(entries.data());
  EXPECT_EQ(first.find_or_make(call_of(5), [] { return priced(7, 12.5); })->price.ns, 12.5);
  for (ChoiceTable* table : {&first, &second}) {
    const auto found = table->find_or_make(call_of(5), never);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->row, priced(7, 0).row);
    EXPECT_EQ(found->parameters, priced(7, 0).parameters);
    EXPECT_EQ(found->price.ns, 12.5);
    EXPECT_TRUE(found->is_estimate);
  }
}

TEST(ChoiceTable, ThatThereIsNoneIsAlsoAChoice) {
  Entries entries = no_choices();
  ChoiceTable first(entries.data()), second(entries.data());
  EXPECT_FALSE(first.find_or_make(call_of(5), [] { return std::optional<Priced>(); }).has_value());
  EXPECT_FALSE(second.find_or_make(call_of(5), never).has_value());
}

TEST(ChoiceTable, CallsThatDifferInOneThingHaveChoicesOfTheirOwn) {
  Entries entries = no_choices();
  ChoiceTable table(entries.data());
  std::vector<PricedCall> calls(7, call_of(5));
  calls[1].collective = Collective::reduce;
  calls[2].count = 6;
  calls[3].element_bytes = 4;
  calls[4].ordered = true;
  calls[5].op = arith::Operator::max;
  calls[6].type.reset();
  double ns = 1;
  for (const PricedCall& call : calls) {
    const auto make = [&] { return priced(2, ns, call.collective); };
    EXPECT_EQ(table.find_or_make(call, make)->price.ns, ns);
    ++ns;
  }
  ns = 1;
  for (const PricedCall& call : calls) {
    EXPECT_EQ(table.find_or_make(call, never)->price.ns, ns);
    ++ns;
  }
}

TEST(ChoiceTable, OneOfManyRanksMakesTheChoiceAndTheOthersWait) {
  for (int turn = 0; turn < 50; ++turn) {
    Entries entries = no_choices();
    std::atomic<int> made = 0;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      ranks.emplace_back([&] {
        ChoiceTable table(entries.data(), kForEverNs);
        const auto found = table.find_or_make(call_of(5), [&] {
          std::this_thread::yield();
          return priced(++made, 3);
        });
        EXPECT_EQ(found->parameters, priced(1, 0).parameters);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    EXPECT_EQ(made, 1);
  }
}

TEST(ChoiceTable, ARankThatFindsNoRoomChoosesByItself) {
  Entries entries = no_choices();
  ChoiceTable table(entries.data());
  for (int count = 1; count <= ChoiceTable::kEntries; ++count) {
    table.find_or_make(call_of(count), [] { return priced(2, 1); });
  }
  for (const double ns : {3.0, 4.0}) {
    EXPECT_EQ(table.find_or_make(call_of(1000), [ns] { return priced(2, ns); })->price.ns, ns);
  }
  EXPECT_EQ(table.find_or_make(call_of(ChoiceTable::kEntries), never)->price.ns, 1);
}

// One may run out of memory, for instance.
TEST(ChoiceTable, IfTheRankThatChoosesFailsTheOthersChooseThemselves) {
  Entries entries = no_choices();
  ChoiceTable table(entries.data());
  const auto fail = []() -> std::optional<Priced> { throw std::runtime_error("fails"); };
  EXPECT_THROW(table.find_or_make(call_of(5), fail), std::runtime_error);
  EXPECT_EQ(table.find_or_make(call_of(5), [] { return priced(2, 8); })->price.ns, 8);
}

// It is stopped, or has died.
TEST(ChoiceTable, ARankDoesNotWaitForEverForAnotherOne) {
  Entries entries = no_choices();
  std::mutex mutex;
  std::condition_variable changed;
  bool is_choosing = false, may_end = false;
  std::thread stopped([&] {
    ChoiceTable table(entries.data());
    table.find_or_make(call_of(5), [&] {
      std::unique_lock lock(mutex);
      is_choosing = true;
      changed.notify_all();
      changed.wait(lock, [&] { return may_end; });
      return priced(2, 1);
    });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_choosing; });
  }
  ChoiceTable table(entries.data(), kShortNs);
  EXPECT_EQ(table.find_or_make(call_of(5), [] { return priced(2, 9); })->price.ns, 9);
  {
    const std::lock_guard lock(mutex);
    may_end = true;
  }
  changed.notify_all();
  stopped.join();
  EXPECT_EQ(table.find_or_make(call_of(5), never)->price.ns, 1);
}

}  // namespace
}  // namespace unisono::plan::choice_table_test

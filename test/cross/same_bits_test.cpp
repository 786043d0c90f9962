// SPDX-License-Identifier: BSD-3-Clause
// Every rank gets the same bits. Of floating point sums, where each order of combination has bits
// of its own: all ranks of one algorithm agree, on every engine over every transport. Where every
// order gives the same (whole numbers, minima, bitwise operators, blocks that are moved): all
// algorithms agree, on any bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "algorithm/algorithm.hpp"
#include "base/prng.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"

namespace unisono::test::same_bits_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

// The same for every count: element i follows from the rank and i.
std::uint64_t random_bits(int rank, std::int64_t i) {
  return base::Prng(static_cast<std::uint64_t>(rank) * 1'000'003 + static_cast<std::uint64_t>(i))();
}

template <class Number, class Make>
Material random_material(Type type, Operator op, const Make& make) {
  Material of = material(type, op);
  of.input = [make](int rank, std::int64_t count) {
    Bytes bytes(static_cast<std::size_t>(count) * sizeof(Number));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto number = static_cast<Number>(make(random_bits(rank, i)));
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof number, &number,
                  sizeof number);
    }
    return bytes;
  };
  return of;
}

// Numbers of many magnitudes and both signs, so that sums depend on their order.
double uneven(std::uint64_t bits) {
  const auto fraction = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
  return std::ldexp(fraction, static_cast<int>(bits % 25));
}

// Around 1, so that products neither vanish nor become infinite.
double around_one(std::uint64_t bits) { return 1 + static_cast<double>(bits >> 1) * 0x1p-65; }

std::vector<Material> inexact() {
  return {random_material<double>(Type::float64, Operator::sum, uneven),
          random_material<float>(Type::float32, Operator::sum, uneven),
          random_material<float>(Type::float32, Operator::prod, around_one)};
}

std::vector<Material> exact() {
  const auto all = [](std::uint64_t bits) { return bits; };
  return {random_material<std::uint64_t>(Type::int64, Operator::sum, all),
          random_material<std::uint32_t>(Type::uint32, Operator::prod, all),
          random_material<std::uint16_t>(Type::int16, Operator::min, all),
          random_material<double>(Type::float64, Operator::max, uneven),
          random_material<std::uint8_t>(Type::byte, Operator::bitwise_xor, all)};
}

std::vector<algorithm::Parameters> parameter_choices(const Algorithm& row, const Shape& shape) {
  std::vector<algorithm::Parameters> choices = {algorithm::default_parameters(row, shape)};
  if (!row.parameters.empty()) {
    choices.push_back(choices[0]);
    choices.back().values[0] = std::max(row.parameters[0].low, shape.ranks);
  }
  std::erase_if(choices, [&](const auto& parameters) {
    return !algorithm::why_illegal(row, shape, parameters).empty();
  });
  return choices;
}

// For everything that a combination of the sweep runs.
template <class Visit>
void for_each_run(World& world, const Visit& visit) {
  for (const Algorithm& row : algorithm::table()) {
    const Shape shape{.collective = row.collective, .ranks = world.ranks()};
    for (const auto& parameters : parameter_choices(row, shape)) {
      world.override_with(row, parameters);
      visit(row, shape, algorithm::describe(row, parameters));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(SameBits, OfSumsThatDependOnTheirOrder) {
  std::map<std::string, std::vector<Bytes>> first;  // all ranks' outputs
  std::set<Bytes> sums;                             // of all algorithms
  std::int64_t compared = 0;
  const auto visit = [&](World& world, const Algorithm& row, Shape shape, const std::string& name) {
    if (!schedule::is_reduction(row.collective)) return;
    for (const Material& of : inexact()) {
      for (const std::int64_t count : {1, 300}) {
        shape.count = count;
        Trial trial(shape, of, {});
        std::vector<Bytes> outputs;
        ASSERT_NO_FATAL_FAILURE(outputs = trial.outputs(world)) << name;
        const auto [known, is_new] = first.try_emplace(name + ": " + trial.describe(), outputs);
        EXPECT_EQ(outputs, known->second) << name << ": " << trial.describe();
        ++compared;
        if (row.collective != Collective::allreduce) continue;
        for (const Bytes& output : outputs) EXPECT_EQ(output, outputs[0]) << trial.describe();
        if (is_new && shape.ranks == swept_ranks().back() && count == 300) sums.insert(outputs[0]);
      }
    }
  };
  for (const int ranks : swept_ranks()) {
    for (const Combination& combination : kCombinations) {
      SCOPED_TRACE(std::string(combination.engine) + " over " + combination.network);
      const auto world = make_world(combination, ranks);
      for_each_run(*world, [&](const Algorithm& row, const Shape& shape, const std::string& name) {
        visit(*world, row, shape, name);
      });
      if (HasFailure()) return;
    }
  }
  std::printf("%lld runs compared, %zu different results of them\n",
              static_cast<long long>(compared), first.size());
  EXPECT_GT(compared, static_cast<std::int64_t>(3 * first.size()));
  // Else the numbers would show nothing: three materials, in more than one order each.
  EXPECT_GT(sums.size(), 3U);
}

TEST(SameBits, OfEveryAlgorithmWhereOrdersDoNotMatter) {
  std::int64_t compared = 0;
  for (const int ranks : swept_ranks()) {
    for (const Combination& combination : kCombinations) {
      SCOPED_TRACE(std::string(combination.engine) + " over " + combination.network);
      const auto world = make_world(combination, ranks);
      for_each_run(*world, [&](const Algorithm& row, Shape shape, const std::string& name) {
        SCOPED_TRACE(name);
        for (const Material& of : exact()) {
          shape.count = row.collective == Collective::barrier ? 0 : 77;
          ASSERT_NO_FATAL_FAILURE(Trial(shape, of, {}).run(*world));
          ++compared;
          if (!schedule::is_reduction(row.collective)) break;
        }
      });
      if (HasFailure()) return;
    }
  }
  std::printf("%lld runs compared\n", static_cast<long long>(compared));
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace unisono::test::same_bits_test

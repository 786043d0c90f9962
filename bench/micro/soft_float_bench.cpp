// SPDX-License-Identifier: BSD-3-Clause
// Nanoseconds of one software floating-point operation: soft/OPERATION/OPERANDS. "data" are numbers
// of similar size, as applications have them; "edges" are the pairs of the tests, in random order,
// on which hardly any branch can be predicted.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "arith/soft_float.h"
#include "base/prng.hpp"
#include "unit/arith/soft_float_operands.hpp"

namespace unisono::arith {
namespace {

constexpr std::size_t kPairs = 4096;

std::vector<test::PatternPair> data_pairs(bool wide) {
  base::Prng random(1);
  std::vector<test::PatternPair> pairs(kPairs);
  for (test::PatternPair& pair : pairs) {
    for (std::uint64_t* bits : {&pair.left, &pair.right}) {
      const double value = random.unit() * 100;
      *bits = wide ? std::bit_cast<std::uint64_t>(value)
                   : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
  }
  return pairs;
}

std::vector<test::PatternPair> shuffled_edges(test::SoftFormat format) {
  std::vector<test::PatternPair> pairs = test::edge_pattern_pairs(format);
  base::Prng random(2);
  std::shuffle(pairs.begin(), pairs.end(), random);
  pairs.resize(kPairs);
  return pairs;
}

template <class Operation>
void run(benchmark::State& state, const std::vector<test::PatternPair>& pairs,
         const Operation& operation) {
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(operation(pairs[next].left, pairs[next].right));
    next = (next + 1) % kPairs;
  }
}

template <class Operation>
void add(const char* data_name, const char* edges_name, test::SoftFormat format,
         const Operation& operation) {
  const bool wide = format.width == test::kSoftFloat64.width;
  benchmark::RegisterBenchmark(data_name, [=, pairs = data_pairs(wide)](benchmark::State& state) {
    run(state, pairs, operation);
  });
  benchmark::RegisterBenchmark(edges_name,
                               [=, pairs = shuffled_edges(format)](benchmark::State& state) {
                                 run(state, pairs, operation);
                               });
}

std::uint32_t low(std::uint64_t bits) { return static_cast<std::uint32_t>(bits); }

bool register_all() {
  using Bits = std::uint64_t;
  add("soft/float64_add/data", "soft/float64_add/edges", test::kSoftFloat64,
      [](Bits a, Bits b) { return unisono_float64_add(a, b); });
  add("soft/float32_add/data", "soft/float32_add/edges", test::kSoftFloat32,
      [](Bits a, Bits b) { return unisono_float32_add(low(a), low(b)); });
  add("soft/float64_min/data", "soft/float64_min/edges", test::kSoftFloat64,
      [](Bits a, Bits b) { return unisono_float64_min(a, b); });
  add("soft/float32_max/data", "soft/float32_max/edges", test::kSoftFloat32,
      [](Bits a, Bits b) { return unisono_float32_max(low(a), low(b)); });
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace unisono::arith

// SPDX-License-Identifier: BSD-3-Clause
// Reproducible sums: with UNISONO_REPRODUCIBLE=1 every algorithm that is allowed, on every engine
// over every transport, gives the bits of the exact sum of the contributions, rounded once. Sums
// that cancel, overflow on the way, are subnormal, infinite or NaN. With UNISONO_REPRODUCIBLE=ranks
// it gives those of the sum in the order of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "arith/sums/exact_sum.hpp"
#include "base/prng.hpp"
#include "cross/combination.hpp"
#include "cross/trial.hpp"

namespace unisono::test::reproducible_sums_test {
namespace {

using algorithm::Algorithm;
using arith::Operator;
using arith::Type;
using schedule::Collective;
using schedule::Shape;

struct RealFormat {
  Type type;
  std::size_t raw_bytes;
  int fraction_bits;
  int exponent_bits;
  int reals = 1;  // of an element
};
constexpr RealFormat kRealFormats[] = {
    {Type::float16, 2, 10, 5},  {Type::bfloat16, 2, 7, 8},      {Type::float32, 4, 23, 8},
    {Type::float64, 8, 52, 11}, {Type::complex64, 4, 23, 8, 2}, {Type::complex128, 8, 52, 11, 2}};

using Numbers = Bytes (*)(const RealFormat& format, int rank, std::int64_t count);

// The bits of number i of a rank: eight kinds of sums follow one another.
std::uint64_t hard_bits(const RealFormat& format, int rank, std::int64_t i) {
  const std::uint64_t sign = std::uint64_t{1} << (format.fraction_bits + format.exponent_bits);
  const std::uint64_t step = std::uint64_t{1} << format.fraction_bits;
  const std::uint64_t infinity = sign - step;
  const std::uint64_t one = infinity / 2 / step * step;
  const std::uint64_t own = base::Prng(static_cast<std::uint64_t>(rank) * 7919 + 13 +
                                       static_cast<std::uint64_t>(i) * 104'729)();
  const std::uint64_t common = base::Prng(static_cast<std::uint64_t>(i) + 5)();
  const std::uint64_t minus = (own & 1) != 0 ? sign : 0;
  switch (i % 8) {
    case 0:
      return (own >> 8) % infinity | minus;  // any magnitudes
    case 1:                                  // cancels, but for the last bits of some
      return ((one + common % infinity / 4) ^ (rank % 2 == 0 ? 0 : sign)) + (own >> 8) % 2;
    case 2:
      return (own >> 8) % step | minus;  // subnormal
    case 3:
      return (infinity - 1 - (own >> 8) % step) | minus;  // overflows on the way
    case 4:
      return (one + (own >> 8) % (4 * step)) | minus;
    case 5:
      return rank == static_cast<int>(common % 5) ? infinity | ((common & 32) != 0 ? sign : 0)
                                                  : one;
    case 6:
      return sign;  // -0
    default:
      return (own >> 8) % 16 == 0 ? infinity + 1 + (own >> 16) % (step - 1) : one | minus;  // NaN
  }
}

// Numbers first, first + every and so on of a rank. They are kept, because each output takes
// those of all ranks.
Bytes numbers_of(const RealFormat& format, int rank, std::int64_t count, std::int64_t first,
                 std::int64_t every) {
  static std::map<std::tuple<Type, int, std::int64_t>, Bytes> kept;
  Bytes& all = kept[{format.type, rank, every}];
  const std::size_t size = static_cast<std::size_t>(count * format.reals) * format.raw_bytes;
  for (std::size_t begin = all.size(); begin < size; begin += format.raw_bytes) {
    const auto i = static_cast<std::int64_t>(begin / format.raw_bytes);
    const std::uint64_t bits = hard_bits(format, rank, first + every * i);
    all.resize(begin + format.raw_bytes);
    std::memcpy(all.data() + begin, &bits, format.raw_bytes);  // little endian, as the kernels are
  }
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size)};
}

Bytes hard_numbers(const RealFormat& format, int rank, std::int64_t count) {
  return numbers_of(format, rank, count, 0, 1);
}

// Numbers whose sums are finite, but depend on their order.
Bytes plain_numbers(const RealFormat& format, int rank, std::int64_t count) {
  return numbers_of(format, rank, count, 4, 8);
}

Material material_of(const RealFormat& format, Numbers numbers) {
  Material of = material(format.type, Operator::sum);
  of.input = [format, numbers](int rank, std::int64_t count) {
    return numbers(format, rank, count);
  };
  return of;
}

// The contributions that belong to the output of `rank`, in the order of ranks.
std::vector<Bytes> contributions(const RealFormat& format, const Shape& shape, int rank,
                                 const Numbers& numbers) {
  const int last = shape.collective == Collective::exscan ? rank - 1
                   : shape.collective == Collective::scan ? rank
                                                          : shape.ranks - 1;
  const auto element = static_cast<std::int64_t>(format.raw_bytes) * format.reals;
  const std::int64_t offset =
      shape.collective == Collective::reduce_scatter ? schedule::block(shape, rank).offset : 0;
  std::vector<Bytes> inputs;
  for (int r = 0; r <= last; ++r) {
    inputs.push_back(numbers(format, r, schedule::input_count(shape, r)));
    inputs.back().erase(inputs.back().begin(), inputs.back().begin() + offset * element);
  }
  return inputs;
}

// Their exact sum, the last one first.
Bytes exact_output(const RealFormat& format, const Shape& shape, int rank) {
  const std::int64_t outputs = schedule::output_count(shape, rank);
  if (outputs == 0) return {};
  std::vector<Bytes> inputs = contributions(format, shape, rank, hard_numbers);
  std::ranges::reverse(inputs);
  const arith::Operands operands{[](const void* all, std::int32_t number) -> const void* {
                                   const auto& list = *static_cast<const std::vector<Bytes>*>(all);
                                   return list[static_cast<std::size_t>(number)].data();
                                 },
                                 &inputs, static_cast<std::int32_t>(inputs.size())};
  Bytes sum(inputs.front().size());
  arith::find_exact_sum(format.type)(sum.data(), operands, outputs);
  sum.resize(static_cast<std::size_t>(outputs * format.reals) * format.raw_bytes);
  return sum;
}

std::int64_t expect_exact(World& world, Shape shape, std::int64_t count,
                          std::span<const RealFormat> formats = kRealFormats) {
  std::int64_t compared = 0;
  shape.count = count;
  for (const RealFormat& format : formats) {
    for (const bool in_place : {false, true}) {
      Trial trial(shape, material_of(format, hard_numbers), {.in_place = in_place});
      const std::vector<Bytes> outputs = trial.outputs(world);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        EXPECT_EQ(outputs[static_cast<std::size_t>(rank)], exact_output(format, shape, rank))
            << trial.describe() << ", rank " << rank;
        ++compared;
      }
    }
  }
  return compared;
}

std::unique_ptr<World> reproducible_world(const Combination& combination, int ranks) {
  return make_world(combination, ranks, {{"UNISONO_REPRODUCIBLE", "1"}});
}

bool is_reduction(const Shape& shape) { return schedule::is_reduction(shape.collective); }

Shape any_shape(int collective, int ranks) {
  Shape shape{.collective = static_cast<Collective>(collective), .ranks = ranks};
  if (schedule::is_rooted(shape.collective)) shape.root = ranks / 2;
  return shape;
}

TEST(ReproducibleSums, AreExactOnEveryEngineOverEveryTransport) {
  std::int64_t compared = 0;
  for (const int ranks : swept_ranks()) {
    for (const Combination& combination : kCombinations) {
      SCOPED_TRACE(std::string(combination.engine) + " over " + combination.network);
      const auto world = reproducible_world(combination, ranks);
      for (int c = 0; c < schedule::kCollectiveCount; ++c) {
        const Shape shape = any_shape(c, ranks);
        if (!is_reduction(shape)) continue;
        compared += expect_exact(*world, shape, 1) + expect_exact(*world, shape, 1501);
      }
      // An algorithm that rounds partial sums is passed over, whoever asks for it.
      for (const Algorithm& row : algorithm::table()) {
        if (!schedule::is_reduction(row.collective)) continue;
        SCOPED_TRACE(row.name);
        const Shape shape = any_shape(static_cast<int>(row.collective), ranks);
        const auto parameters = algorithm::default_parameters(row, shape);
        if (!algorithm::why_illegal(row, shape, parameters).empty()) continue;
        world->override_with(row, parameters);
        const std::span formats(kRealFormats);
        compared += row.sums_exactly ? expect_exact(*world, shape, 77, formats.subspan(2, 3))
                                     : expect_exact(*world, shape, 3, formats.subspan(3, 1));
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  std::printf("%lld results compared\n", static_cast<long long>(compared));
  EXPECT_GT(compared, 1000);
}

TEST(ReproducibleSums, AreExactWithManyRanks) {
  for (const int ranks : {9, 16, 33}) {
    if (harness::kSanitized && ranks > 9) continue;
    for (const char* engine : {"inline", "helping"}) {
      const auto world = reproducible_world({engine, "shm"}, ranks);
      for (int c = 0; c < schedule::kCollectiveCount; ++c) {
        const Shape shape = any_shape(c, ranks);
        if (!is_reduction(shape)) continue;
        expect_exact(*world, shape, 1);
        expect_exact(*world, shape, 50);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

// One addition after another, by the scalar twin of each kernel.
Bytes ordered_output(const RealFormat& format, const Shape& shape, int rank) {
  const std::int64_t outputs = schedule::output_count(shape, rank);
  if (outputs == 0) return {};
  const std::vector<Bytes> inputs = contributions(format, shape, rank, plain_numbers);
  Bytes sum = inputs.front();
  const arith::Kernel add = arith::find_reference_kernel(Operator::sum, format.type);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    add(sum.data(), sum.data(), inputs[i].data(), outputs, nullptr);
  }
  sum.resize(static_cast<std::size_t>(outputs * format.reals) * format.raw_bytes);
  return sum;
}

TEST(SumsInTheOrderOfRanks, AreTheSameOnEveryEngineOverEveryTransport) {
  for (const int ranks : swept_ranks()) {
    for (const Combination& combination : kCombinations) {
      SCOPED_TRACE(std::string(combination.engine) + " over " + combination.network);
      const auto world = make_world(combination, ranks, {{"UNISONO_REPRODUCIBLE", "ranks"}});
      for (const Algorithm& row : algorithm::table()) {
        if (!row.sums_exactly) continue;
        Shape shape = any_shape(static_cast<int>(row.collective), ranks);
        world->override_with(row, {});
        for (const RealFormat& format : kRealFormats) {
          for (const std::int64_t count : {1, 601}) {
            shape.count = count;
            Trial trial(shape, material_of(format, plain_numbers), {.in_place = count > 1});
            const std::vector<Bytes> outputs = trial.outputs(*world);
            for (int rank = 0; rank < ranks; ++rank) {
              ASSERT_EQ(outputs[static_cast<std::size_t>(rank)],
                        ordered_output(format, shape, rank))
                  << row.name << ": " << trial.describe() << ", rank " << rank;
            }
          }
        }
      }
    }
  }
}

// A vector that goes in segments: where they are cut does not matter.
TEST(ReproducibleSums, AreExactInSegments) {
  for (const char* engine : {"inline", "helping"}) {
    const auto world = make_world({engine, "shm"}, 3,
                                  {{"UNISONO_REPRODUCIBLE", "1"}, {"UNISONO_BUFFERS", "256K"}});
    for (int c = 0; c < schedule::kCollectiveCount; ++c) {
      const Shape shape = any_shape(c, 3);
      if (is_reduction(shape)) {
        expect_exact(*world, shape, 30'011, std::span(kRealFormats).subspan(2, 2));
      }
    }
  }
}

}  // namespace
}  // namespace unisono::test::reproducible_sums_test

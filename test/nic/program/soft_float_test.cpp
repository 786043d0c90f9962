// SPDX-License-Identifier: BSD-3-Clause
// Sums, minima and maxima of floating-point numbers inside the kernel, against the processor's
// floating-point unit: all pairs of edge classes and random pairs, a packet of 175 (float64) or 350
// (float32) at a time. Prints the cost of the program.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

#include "arith/kernel.hpp"
#include "base/prng.hpp"
#include "harness/scale.hpp"
#include "nic/harness/trial_device.hpp"
#include "nic/lowering/lower.hpp"
#include "unit/arith/element_data.hpp"
#include "unit/arith/soft_float_operands.hpp"

namespace unisono::nic::test::soft_float_test {
namespace {

using arith::Operator;
using arith::Type;
using arith::test::PatternPair;

constexpr std::int64_t kRandomSums = 10'000'000;  // of each type
// Minima and maxima of each type: as many in all.
constexpr std::int64_t kRandomComparisons = kRandomSums / 4;
constexpr std::int64_t kBatch = 35'000;
constexpr std::uint64_t kSeed = 5;

class SoftFloatInTheKernel : public TrialDevice {
 protected:
  void SetUp() override {
    TrialDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    unisono_nic_row one_child = inner_row();
    one_child.children = 1;
    row_ = add(one_child);
  }

  // "" if the program combines the pairs as the kernels do. At most a packet's fill of pairs.
  std::string difference(Operator op, Type type, const std::vector<PatternPair>& pairs) {
    const std::size_t size = arith::type_size(type);
    Words left((pairs.size() * size + 7) / 8);
    Words right(left.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::memcpy(reinterpret_cast<char*>(left.data()) + i * size, &pairs[i].left, size);
      std::memcpy(reinterpret_cast<char*>(right.data()) + i * size, &pairs[i].right, size);
    }
    const std::uint32_t combine = *lower_operator(op, type);
    post(row_, sequence_, combine, left);
    const TrialRun run =
        TrialDevice::run(Entry::receive, frame_of(row_, give(row_, 0, sequence_, combine), right));
    ++sequence_;
    if (run.verdict != kSend) return "the program sends nothing";
    run_ns_ += run.run_ns;
    elements_ += static_cast<std::int64_t>(pairs.size());
    Words expected(left.size());
    arith::find_kernel(op, type)(expected.data(), left.data(), right.data(),
                                 static_cast<std::int64_t>(pairs.size()), nullptr);
    const Words actual = payload_in(run.frame);
    return arith::test::difference(
        {op, type}, reinterpret_cast<const unsigned char*>(actual.data()),
        reinterpret_cast<const unsigned char*>(expected.data()), pairs.size());
  }

  void expect_all(Operator op, Type type, std::span<const PatternPair> pairs) {
    const std::size_t fill = UNISONO_NIC_WORDS_MAX * 8 / arith::type_size(type);
    for (std::size_t first = 0; first < pairs.size(); first += fill) {
      const auto part = pairs.subspan(first, std::min(fill, pairs.size() - first));
      ASSERT_EQ(difference(op, type, {part.begin(), part.end()}), "") << "from pair " << first;
    }
  }

  // So many pairs of each type.
  void expect_random(Operator op, std::int64_t count, base::Prng& random) {
    std::vector<PatternPair> pairs(kBatch);
    for (std::int64_t done = 0; done < harness::scaled(count); done += kBatch) {
      for (PatternPair& pair : pairs) {
        pair = arith::test::random_pattern_pair(arith::test::kSoftFloat64, random);
      }
      ASSERT_NO_FATAL_FAILURE(expect_all(op, Type::float64, pairs));
      for (PatternPair& pair : pairs) {
        pair = arith::test::random_pattern_pair(arith::test::kSoftFloat32, random);
      }
      ASSERT_NO_FATAL_FAILURE(expect_all(op, Type::float32, pairs));
    }
  }

  void print_cost(const char* what) const {
    std::printf("[   COST   ] %s: %.1f ns an element, headers, copies and both tags included\n",
                what, static_cast<double>(run_ns_) / static_cast<double>(elements_));
  }

 private:
  unisono_nic_row row_ = {};
  std::uint64_t sequence_ = 0;
  std::int64_t run_ns_ = 0;
  std::int64_t elements_ = 0;
};

TEST_F(SoftFloatInTheKernel, AgreesOnAllPairsOfEdgeClasses) {
  for (const Operator op : {Operator::sum, Operator::min, Operator::max}) {
    expect_all(op, Type::float64, arith::test::edge_pattern_pairs(arith::test::kSoftFloat64));
    expect_all(op, Type::float32, arith::test::edge_pattern_pairs(arith::test::kSoftFloat32));
  }
  print_cost("edge pairs");
}

TEST_F(SoftFloatInTheKernel, AgreesOnRandomPairs) {
  base::Prng random(kSeed);
  SCOPED_TRACE(kSeed);
  expect_random(Operator::sum, kRandomSums, random);
  if (HasFatalFailure()) return;
  print_cost("random sums");
}

TEST_F(SoftFloatInTheKernel, AgreesOnTheLesserAndTheGreaterOfRandomPairs) {
  base::Prng random(kSeed + 1);
  SCOPED_TRACE(kSeed + 1);
  for (const Operator op : {Operator::min, Operator::max}) {
    expect_random(op, kRandomComparisons, random);
    if (HasFatalFailure()) return;
  }
  print_cost("random minima and maxima");
}

// The verifier gives up at 10^6 steps.
TEST_F(SoftFloatInTheKernel, TheProgramIsFarFromTheLimitsOfTheVerifier) {
  for (const Entry entry : {Entry::receive, Entry::leave, Entry::spread}) {
    const ProgramFacts facts = *device->facts(entry);
    std::printf("[   COST   ] program %d: %u steps of the verifier, %u instructions, %u bytes\n",
                static_cast<int>(entry), facts.verified_instructions, facts.instructions,
                facts.machine_bytes);
    EXPECT_LT(facts.verified_instructions, 100'000U);
    EXPECT_GT(facts.machine_bytes, 0U) << "the kernel interprets the program";
  }
  std::printf("[   COST   ] all loaded in %.1f ms\n",
              static_cast<double>(device->facts(Entry::leave)->load_ns) / 1e6);
}

}  // namespace
}  // namespace unisono::nic::test::soft_float_test

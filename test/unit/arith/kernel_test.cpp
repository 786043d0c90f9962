// SPDX-License-Identifier: BSD-3-Clause
// Every SIMD kernel of every compiled Highway target that this processor has, against the scalar
// reference bit by bit (NaN as a class): all short lengths, longer ones that reach the
// unrolled loop, misaligned operands, in place, and no byte touched outside the operands.
#include "arith/kernel.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>

#include "arith/half.hpp"
#include "arith/kernel_table.hpp"
#include "base/simd/instruction_set.hpp"
#include "base/simd/target.hpp"
#include "element_data.hpp"

#include "hwy/highway.h"

namespace unisono::arith::test::kernel_test {
namespace {

constexpr std::size_t kLongest = 1091;

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t length = 0; length <= 129; ++length) all.push_back(length);
  const std::vector<std::size_t> longer = {255, 256, 257, 511, 512, 513, 577, 640, 767, 1024};
  all.insert(all.end(), longer.begin(), longer.end());
  all.push_back(kLongest);
  return all;
}

const std::vector<KernelTable>& supported_kernels() {
  static const std::vector<KernelTable> tables = [] {
    std::vector<KernelTable> all;
    for (const base::InstructionSet set : base::supported_instruction_sets()) {
      const base::NarrowedInstructionSet narrowed(set);
      const KernelTable table = best_kernels();
      // Not every set has a version of its own, for example where -march names a better one.
      if (all.empty() || std::string_view(all.back().target) != table.target) all.push_back(table);
    }
    return all;
  }();
  return tables;
}

// A copy of the operand at some offset from a cache line, and space for a target there, with
// guard bytes on both sides.
class Placed {
 public:
  static constexpr std::size_t kGuard = 128;

  Placed(std::size_t offset, std::size_t size) : memory_(size + 3 * kGuard, kFill), size_(size) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = kGuard + (kLine - address % kLine) % kLine + offset;
  }

  unsigned char* data() { return memory_.data() + start_; }
  void assign(const Bytes& bytes) { std::memcpy(data(), bytes.data(), size_); }
  void clear(std::size_t bytes) { std::memset(data(), kFill, bytes); }
  bool untouched_around(std::size_t bytes) {
    for (std::size_t i = start_ - kGuard; i < start_; ++i) {
      if (memory_[i] != kFill) return false;
    }
    for (std::size_t i = start_ + bytes; i < start_ + bytes + kGuard / 2; ++i) {
      if (memory_[i] != kFill) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kFill = 0xA5;
  static constexpr std::size_t kLine = 64;

  Bytes memory_;
  std::size_t size_;
  std::size_t start_ = 0;
};

// One operator on one type, with everything that does not depend on the target prepared.
class Comparison {
 public:
  explicit Comparison(const Case& c) : case_(c), size_(type_size(c.type)) {
    left_ = random_elements(c.type, kLongest, 11);
    right_ = random_elements(c.type, kLongest, 12);
    expected_ = reference(left_, right_);
    expected_twice_left_ = reference(left_, left_);
    for (const std::size_t offset :
         {std::size_t{0}, size_, 2 * size_, 3 * size_, std::size_t{1}, size_ + 3, std::size_t{5}}) {
      lefts_.emplace_back(offset, left_.size()).assign(left_);
      rights_.emplace_back(offset, right_.size()).assign(right_);
      targets_.emplace_back(offset, left_.size());
    }
  }

  void out_of_place(Kernel kernel, std::size_t count) {
    const std::size_t bytes = count * size_;
    for (std::size_t l = 0; l < lefts_.size(); ++l) {
      for (std::size_t r = 0; r < rights_.size(); ++r) {
        Placed& target = targets_[(l + r + count) % targets_.size()];
        kernel(target.data(), lefts_[l].data(), rights_[r].data(), static_cast<std::int64_t>(count),
               nullptr);
        ASSERT_EQ(difference(case_, target.data(), expected_.data(), count), "");
        ASSERT_TRUE(target.untouched_around(bytes)) << case_name(case_) << " " << count;
        target.clear(bytes);
      }
    }
  }

  void in_place(Kernel kernel, std::size_t count) {
    for (std::size_t offset = 0; offset < targets_.size(); ++offset) {
      unsigned char* other = rights_[(offset + count) % rights_.size()].data();
      expect_in_place(count, offset, left_, expected_, [&](unsigned char* target) {
        kernel(target, target, other, static_cast<std::int64_t>(count), nullptr);
      });
      other = lefts_[(offset + count) % lefts_.size()].data();
      expect_in_place(count, offset, right_, expected_, [&](unsigned char* target) {
        kernel(target, other, target, static_cast<std::int64_t>(count), nullptr);
      });
      expect_in_place(count, offset, left_, expected_twice_left_, [&](unsigned char* target) {
        kernel(target, target, target, static_cast<std::int64_t>(count), nullptr);
      });
    }
  }

 private:
  Bytes reference(const Bytes& left, const Bytes& right) const {
    Bytes result(left.size());
    find_reference_kernel(case_.op, case_.type)(result.data(), left.data(), right.data(),
                                                static_cast<std::int64_t>(kLongest), nullptr);
    return result;
  }

  template <class Call>
  void expect_in_place(std::size_t count, std::size_t offset, const Bytes& operand,
                       const Bytes& expected, Call call) {
    Placed& target = targets_[offset];
    const std::size_t bytes = count * size_;
    if (bytes > 0) std::memcpy(target.data(), operand.data(), bytes);
    call(target.data());
    ASSERT_EQ(difference(case_, target.data(), expected.data(), count), "");
    ASSERT_TRUE(target.untouched_around(bytes)) << case_name(case_) << " " << count;
    target.clear(bytes);
  }

  Case case_;
  std::size_t size_;
  Bytes left_, right_, expected_, expected_twice_left_;
  std::vector<Placed> lefts_, rights_, targets_;
};

TEST(Kernel, TargetsUnderTest) {
  std::string tested;
  for (const KernelTable& table : supported_kernels()) tested += std::string(" ") + table.target;
  std::string untested;
  for (std::int64_t rest = HWY_TARGETS & ~hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    untested += std::string(" ") + hwy::TargetName(rest & -rest);
  }
  std::printf("tested:%s; compiled, but not supported by this processor and not tested:%s\n",
              tested.c_str(), untested.empty() ? " none" : untested.c_str());
  // Highway's library asks the processor by itself.
  const auto both = static_cast<std::uint64_t>(HWY_TARGETS & hwy::SupportedTargets());
  ASSERT_EQ(supported_kernels().size(), static_cast<std::size_t>(std::popcount(both)));
  EXPECT_STREQ(supported_kernels().back().target, kernel_target());
}

TEST(Kernel, AVectorTargetHasItsOwnKernelForEverything) {
  for (const KernelTable& table : supported_kernels()) {
    if (std::string_view(table.target) == "SCALAR") continue;
    for (const Case& c : all_cases()) {
      EXPECT_NE(table.at(c.op, c.type), find_reference_kernel(c.op, c.type))
          << table.target << ": " << case_name(c);
    }
  }
}

TEST(Kernel, TheKernelFoundIsTheBestTargetsAndDispatchesNoMore) {
  for (const Case& c : all_cases()) {
    EXPECT_EQ(find_kernel(c.op, c.type), supported_kernels().back().at(c.op, c.type))
        << case_name(c);
  }
}

TEST(Kernel, EveryLengthAndAlignment) {
  for (const Case& c : all_cases()) {
    Comparison comparison(c);
    for (const KernelTable& table : supported_kernels()) {
      SCOPED_TRACE(table.target);
      for (const std::size_t count : lengths()) {
        ASSERT_NO_FATAL_FAILURE(comparison.out_of_place(table.at(c.op, c.type), count));
        ASSERT_NO_FATAL_FAILURE(comparison.in_place(table.at(c.op, c.type), count));
      }
    }
  }
}

// One page between two that may not be touched: a kernel that reads or writes outside its operands
// dies here.
class Fenced {
 public:
  Fenced() {
    void* pages = mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    pages_ = static_cast<unsigned char*>(pages);
    usable_ = mprotect(first(), page_, PROT_READ | PROT_WRITE) == 0;
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced() {
    if (pages_ != nullptr) munmap(pages_, 3 * page_);
  }
  bool usable() const { return usable_; }
  std::size_t size() const { return page_; }
  unsigned char* first() { return pages_ + page_; }
  unsigned char* last(std::size_t bytes) { return pages_ + 2 * page_ - bytes; }

 private:
  std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  unsigned char* pages_ = nullptr;
  bool usable_ = false;
};

TEST(Kernel, NothingOutsideTheOperandsIsTouched) {
  Fenced target;
  Fenced left;
  Fenced right;
  ASSERT_TRUE(target.usable() && left.usable() && right.usable());
  for (const Case& c : all_cases()) {
    const std::size_t size = type_size(c.type);
    for (const KernelTable& table : supported_kernels()) {
      SCOPED_TRACE(table.target);
      for (std::size_t count = 0; count <= target.size() / size; count += count < 129 ? 1 : 61) {
        const std::size_t bytes = count * size;
        const Bytes a = random_elements(c.type, count, 21);
        const Bytes b = random_elements(c.type, count, 22);
        Bytes expected(bytes);
        find_reference_kernel(c.op, c.type)(expected.data(), a.data(), b.data(),
                                            static_cast<std::int64_t>(count), nullptr);
        for (const bool at_end : {false, true}) {
          unsigned char* t = at_end ? target.last(bytes) : target.first();
          unsigned char* l = at_end ? left.last(bytes) : left.first();
          unsigned char* r = at_end ? right.last(bytes) : right.first();
          std::copy(a.begin(), a.end(), l);
          std::copy(b.begin(), b.end(), r);
          table.at(c.op, c.type)(t, l, r, static_cast<std::int64_t>(count), nullptr);
          ASSERT_EQ(difference(c, t, expected.data(), count), "");
        }
      }
    }
  }
}

void expect_as_reference(const Case& c, const Operands& operands) {
  Bytes expected(operands.left.size());
  Bytes actual(operands.left.size());
  const auto count = static_cast<std::int64_t>(operands.count);
  find_reference_kernel(c.op, c.type)(expected.data(), operands.left.data(), operands.right.data(),
                                      count, nullptr);
  for (const KernelTable& table : supported_kernels()) {
    SCOPED_TRACE(table.target);
    const Kernel kernel = table.at(c.op, c.type);
    kernel(actual.data(), operands.left.data(), operands.right.data(), count, nullptr);
    ASSERT_EQ(difference(c, actual.data(), expected.data(), operands.count), "");
  }
}

TEST(Kernel, EveryPairOfSpecialValues) {
  for (const Case& c : all_cases()) {
    ASSERT_NO_FATAL_FAILURE(expect_as_reference(c, edge_pairs(c.type)));
  }
}

// The same values one at a time take the path for tiny counts.
TEST(Kernel, EveryPairOfSpecialValuesAlone) {
  for (const Case& c : all_cases()) {
    const Operands operands = edge_pairs(c.type);
    const std::size_t size = type_size(c.type);
    Bytes expected(operands.left.size());
    find_reference_kernel(c.op, c.type)(expected.data(), operands.left.data(),
                                        operands.right.data(),
                                        static_cast<std::int64_t>(operands.count), nullptr);
    for (const KernelTable& table : supported_kernels()) {
      SCOPED_TRACE(table.target);
      Bytes actual(operands.left.size());
      for (std::size_t at = 0; at < actual.size(); at += size) {
        table.at(c.op, c.type)(actual.data() + at, operands.left.data() + at,
                               operands.right.data() + at, 1, nullptr);
      }
      ASSERT_EQ(difference(c, actual.data(), expected.data(), operands.count), "");
    }
  }
}

// Every 16-bit pattern with one, zero and each of a sample that covers all exponents.
TEST(Kernel, EveryHalfAgainstASample) {
  constexpr std::size_t kPatterns = 65536;
  std::vector<std::uint16_t> every(kPatterns);
  for (std::size_t i = 0; i < kPatterns; ++i) every[i] = static_cast<std::uint16_t>(i);
  for (const Type type : {Type::float16, Type::bfloat16}) {
    std::vector<std::uint16_t> sample = {0x0000, 0x8000, 0x0001, 0x3C00, 0x3F80, 0x7C00, 0x7F80};
    for (std::size_t i = 0; i < 24; ++i)
      sample.push_back(static_cast<std::uint16_t>(i * 2731 + 77));
    for (const std::uint16_t other : sample) {
      const Operands operands{to_bytes(every),
                              to_bytes(std::vector<std::uint16_t>(kPatterns, other)), kPatterns};
      for (const Operator op : {Operator::sum, Operator::prod, Operator::min, Operator::max}) {
        ASSERT_NO_FATAL_FAILURE(expect_as_reference({op, type}, operands)) << other;
      }
    }
  }
}

}  // namespace
}  // namespace unisono::arith::test::kernel_test

// SPDX-License-Identifier: BSD-3-Clause
// Memory for the elements of a collective, with guard bytes before and after, aligned exactly as
// the type asks and no better. For tests only; one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "harness/elements.hpp"

namespace unisono::harness {

class Buffer {
 public:
  // `alignment` 0: the natural one of a built-in type.
  Buffer(unisono_type_t type, std::int64_t count, std::size_t alignment = 0)
      : type_(type), count_(static_cast<std::size_t>(count)), size_(size_of(type)) {
    if (alignment == 0) alignment = std::min<std::size_t>(size_of(component(type)), 8);
    if (type == UNISONO_INT16_INT32) alignment = 4;
    bytes_.assign(count_ * size_ + 4 * kGuard, kPattern);
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = (kGuard - address % kGuard) + kGuard + alignment % kGuard;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() { return at(0); }
  void* at(std::int64_t index) {
    return bytes_.data() + begin_ + static_cast<std::size_t>(index) * size_;
  }
  const void* at(std::int64_t index) const {
    return bytes_.data() + begin_ + static_cast<std::size_t>(index) * size_;
  }
  Element get(std::int64_t index) const { return load(type_, at(index)); }
  void set(std::int64_t index, Element element) { store(type_, at(index), element); }

  // Elements first .. first + count - 1 become the samples 0 .. count - 1 of `rank`.
  void fill(TypedOp pair, int rank, std::int64_t first, std::int64_t count) {
    EXPECT_EQ(size_of(pair.type), size_);
    store_samples(pair, rank, count, at(first));
  }

  // Elements first .. first + count - 1 are the first `count` of `expected`.
  testing::AssertionResult holds(std::span<const Element> expected, std::int64_t first,
                                 std::int64_t count) const {
    const std::int64_t i =
        first_unlike(type_, at(first), expected.first(static_cast<std::size_t>(count)));
    if (i == count) return testing::AssertionSuccess();
    const Element found = get(first + i);
    const Element wanted = expected[static_cast<std::size_t>(i)];
    return testing::AssertionFailure()
           << "element " << first + i << " is (" << found.a << ", " << found.b << "), expected ("
           << wanted.a << ", " << wanted.b << ")";
  }
  testing::AssertionResult holds_samples(TypedOp pair, int rank, std::int64_t first,
                                         std::int64_t count) const {
    EXPECT_EQ(pair.type, type_);
    const std::int64_t i = first_unlike_sample(pair, rank, at(first), count);
    if (i == count) return testing::AssertionSuccess();
    const Element found = get(first + i);
    const Element wanted = sample(pair, rank, i);
    return testing::AssertionFailure()
           << "element " << first + i << " is (" << found.a << ", " << found.b
           << "), expected rank " << rank << "'s (" << wanted.a << ", " << wanted.b << ")";
  }
  testing::AssertionResult untouched() const { return all_pattern(0, bytes_.size()); }
  testing::AssertionResult guards_intact() const {
    const auto before = all_pattern(0, begin_);
    return before ? all_pattern(begin_ + count_ * size_, bytes_.size()) : before;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kPattern = 0xa5;

  testing::AssertionResult all_pattern(std::size_t first, std::size_t last) const {
    const unsigned char* const all = bytes_.data() + first;
    if (first == last) return testing::AssertionSuccess();
    if (all[0] == kPattern && std::memcmp(all, all + 1, last - first - 1) == 0) {
      return testing::AssertionSuccess();  // each is as the one before it
    }
    for (std::size_t i = first; i < last; ++i) {
      if (bytes_[i] == kPattern) continue;
      return testing::AssertionFailure()
             << "byte " << static_cast<std::int64_t>(i) - static_cast<std::int64_t>(begin_)
             << " of the buffer was written";
    }
    return testing::AssertionSuccess();
  }

  unisono_type_t type_;
  std::size_t count_;
  std::size_t size_;
  std::vector<unsigned char> bytes_;
  std::size_t begin_ = 0;
};

}  // namespace unisono::harness

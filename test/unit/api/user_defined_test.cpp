// SPDX-License-Identifier: BSD-3-Clause
// Opaque types and operators of the caller's: moved whole, combined in the order of ranks where the
// operator does not commute, each contribution exactly once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ostream>
#include <string>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/elements.hpp"
#include "harness/outcome.hpp"
#include "harness/threads.hpp"
#include "unisono/unisono.h"

namespace unisono::harness::user_defined_test {
namespace {

// ---- words: concatenation shows the contributing ranks, how often, and in which order ----

struct Word {
  std::array<char, 40> letters{};

  std::string text() const { return std::string(letters.data()); }
  bool operator==(const Word&) const = default;
};

Word word_of(std::string_view text) {
  Word word;
  std::copy(text.begin(), text.begin() + std::min<std::ptrdiff_t>(std::ssize(text), 39),
            word.letters.begin());
  return word;
}

void concatenate(void* target, const void* left, const void* right, std::int64_t count,
                 unisono_type_t, void*) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Word& first = static_cast<const Word*>(left)[i];
    const Word& second = static_cast<const Word*>(right)[i];
    static_cast<Word*>(target)[i] = word_of(first.text() + second.text());
  }
}

std::string letter_of(int rank) {
  return std::string(1, static_cast<char>(rank < 26 ? 'a' + rank : 'A' + rank - 26));
}

// ---- matrices and affine maps modulo 2^32: associative, not commutative ----

using Matrix = std::array<std::uint32_t, 4>;

Matrix product(const Matrix& x, const Matrix& y) {
  return {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2],
          x[2] * y[1] + x[3] * y[3]};
}

Matrix matrix_of(int rank, std::int64_t index) {
  const std::uint64_t bits =
      mixed(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index));
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
          static_cast<std::uint32_t>(bits >> 13) | 1U, static_cast<std::uint32_t>(rank)};
}

struct Affine {  // x -> factor * x + offset
  std::uint64_t factor = 1;
  std::uint64_t offset = 0;
  bool operator==(const Affine&) const = default;
};

Affine then(const Affine& first, const Affine& second) {
  return {first.factor * second.factor, first.offset * second.factor + second.offset};
}

Affine affine_of(int rank, std::int64_t index) {
  const std::uint64_t bits =
      mixed(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index));
  return {bits | 1, bits >> 7};
}

template <class T, T (*combine_two)(const T&, const T&)>
void combine_all(void* target, const void* left, const void* right, std::int64_t count,
                 unisono_type_t, void*) {
  for (std::int64_t i = 0; i < count; ++i) {
    static_cast<T*>(target)[i] =
        combine_two(static_cast<const T*>(left)[i], static_cast<const T*>(right)[i]);
  }
}

// Types and operators live until the end of the process and have one order: made once, here.
struct Definitions {
  unisono_type_t word = -1, matrix = -1, affine = -1;
  unisono_op_t concatenation = -1, matrix_product = -1, composition = -1;

  Definitions() {
    EXPECT_TRUE(succeeded(unisono_type_create(sizeof(Word), alignof(Word), &word)));
    EXPECT_TRUE(succeeded(unisono_type_create(sizeof(Matrix), alignof(Matrix), &matrix)));
    EXPECT_TRUE(succeeded(unisono_type_create(sizeof(Affine), alignof(Affine), &affine)));
    EXPECT_TRUE(succeeded(unisono_op_create(concatenate, 0, nullptr, &concatenation)));
    EXPECT_TRUE(
        succeeded(unisono_op_create(combine_all<Matrix, product>, 0, nullptr, &matrix_product)));
    EXPECT_TRUE(succeeded(unisono_op_create(combine_all<Affine, then>, 0, nullptr, &composition)));
  }
};

const Definitions& definitions() {
  static const Definitions made;
  return made;
}

template <class T, class Make, class Combine>
std::vector<T> ordered_result(int ranks, std::int64_t count, Make make, Combine combine_two) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < count; ++i) {
    T value = make(0, i);
    for (int rank = 1; rank < ranks; ++rank) value = combine_two(value, make(rank, i));
    result.push_back(value);
  }
  return result;
}

// Allreduce, then a reduce to every root in turn, of counts up to expected.size().
template <class T, class Make>
void check_ordered(const ThreadRank& self, unisono_type_t type, unisono_op_t op,
                   const std::vector<T>& expected, Make make) {
  const auto most = std::ssize(expected);
  std::vector<T> input;
  for (std::int64_t i = 0; i < most; ++i) input.push_back(make(self.rank, i));
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, most}) {
    SCOPED_TRACE(count);
    std::vector<T> output(input.size());
    ASSERT_TRUE(
        succeeded(unisono_allreduce(input.data(), output.data(), count, type, op, self.world)));
    ASSERT_TRUE(std::equal(output.begin(), output.begin() + count, expected.begin()));
    std::vector<T> in_place = input;
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, in_place.data(), count, type, op, self.world)));
    ASSERT_TRUE(std::equal(in_place.begin(), in_place.begin() + count, expected.begin()));
    for (int root = 0; root < self.ranks; ++root) {
      std::vector<T> at_root(input.size());
      ASSERT_TRUE(succeeded(
          unisono_reduce(input.data(), at_root.data(), count, type, op, root, self.world)));
      if (self.rank == root) {
        ASSERT_TRUE(std::equal(at_root.begin(), at_root.begin() + count, expected.begin()));
      }
    }
  }
}

// The scans and reduce_scatters; expected[r][i]: the ranks 0 .. r in order.
template <class T, class Make, class Combine>
void check_ordered_parts(const ThreadRank& self, unisono_type_t type, unisono_op_t op,
                         std::int64_t count, Make make, Combine combine_two) {
  const auto ranks = static_cast<std::size_t>(self.ranks);
  const auto width = static_cast<std::size_t>(count);
  std::vector<T> input;
  for (std::int64_t i = 0; i < count * self.ranks; ++i) input.push_back(make(self.rank, i));
  const auto all = ordered_result<T>(self.ranks, count * self.ranks, make, combine_two);
  std::vector<T> output(width);
  ASSERT_TRUE(succeeded(unisono_scan(input.data(), output.data(), count, type, op, self.world)));
  ASSERT_EQ(output, ordered_result<T>(self.rank + 1, count, make, combine_two));
  ASSERT_TRUE(succeeded(unisono_exscan(input.data(), output.data(), count, type, op, self.world)));
  if (self.rank > 0) {
    ASSERT_EQ(output, ordered_result<T>(self.rank, count, make, combine_two));
  }
  ASSERT_TRUE(succeeded(
      unisono_reduce_scatter_block(input.data(), output.data(), count, type, op, self.world)));
  const auto own = all.begin() + count * self.rank;
  ASSERT_TRUE(std::equal(output.begin(), output.end(), own));
  // The first rank's block is twice as long, the last one's is empty.
  std::vector<std::int64_t> counts(ranks, count);
  if (self.ranks > 1) {
    counts.front() *= 2;
    counts.back() = 0;
  }
  output.resize(2 * width);
  ASSERT_TRUE(succeeded(
      unisono_reduce_scatter(input.data(), output.data(), counts.data(), type, op, self.world)));
  const std::int64_t first = self.rank == 0 ? 0 : count * (self.rank + 1);
  const std::int64_t length = counts[static_cast<std::size_t>(self.rank)];
  ASSERT_TRUE(length == 0 ||
              std::equal(output.begin(), output.begin() + length, all.begin() + first));
}

class UserDefined : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(UserDefined, ConcatenationHasEveryRankOnceAndInOrder) {
  std::string everyone;
  for (int rank = 0; rank < ranks(); ++rank) everyone += letter_of(rank);
  const std::vector<Word> expected(300, word_of(everyone));
  const Definitions& made = definitions();
  run_threads(ranks(), [&](ThreadRank& self) {
    check_ordered(self, made.word, made.concatenation, expected,
                  [](int rank, std::int64_t) { return word_of(letter_of(rank)); });
  });
}

TEST_P(UserDefined, MatrixProductsKeepTheOrderOfRanks) {
  const auto expected = ordered_result<Matrix>(ranks(), scaled(20011), matrix_of, product);
  const Definitions& made = definitions();
  run_threads(ranks(), [&](ThreadRank& self) {
    check_ordered(self, made.matrix, made.matrix_product, expected, matrix_of);
  });
}

TEST_P(UserDefined, AffineMapsKeepTheOrderOfRanks) {
  const auto expected = ordered_result<Affine>(ranks(), 1000, affine_of, then);
  const Definitions& made = definitions();
  run_threads(ranks(), [&](ThreadRank& self) {
    check_ordered(self, made.affine, made.composition, expected, affine_of);
  });
}

TEST_P(UserDefined, ScansAndReduceScattersKeepTheOrderOfRanks) {
  const Definitions& made = definitions();
  run_threads(ranks(), [&](ThreadRank& self) {
    for (const std::int64_t count :
         {std::int64_t{1}, std::int64_t{7}, std::int64_t{64}, scaled(20011) / self.ranks}) {
      SCOPED_TRACE(count);
      ASSERT_NO_FATAL_FAILURE(check_ordered_parts<Matrix>(self, made.matrix, made.matrix_product,
                                                          count, matrix_of, product));
    }
    ASSERT_NO_FATAL_FAILURE(
        check_ordered_parts<Affine>(self, made.affine, made.composition, 100, affine_of, then));
  });
}

// The order is that of the communicator's ranks, whatever they were in the world.
TEST_P(UserDefined, OrderIsThatOfTheCommunicator) {
  const Definitions& made = definitions();
  std::string backwards;
  for (int rank = ranks() - 1; rank >= 0; --rank) backwards += letter_of(rank);
  run_threads(ranks(), [&](ThreadRank& self) {
    unisono_comm_t reversed = nullptr;
    ASSERT_TRUE(succeeded(unisono_comm_split(self.world, 0, -self.rank, &reversed)));
    const Word mine = word_of(letter_of(self.rank));
    Word all;
    ASSERT_TRUE(
        succeeded(unisono_allreduce(&mine, &all, 1, made.word, made.concatenation, reversed)));
    EXPECT_EQ(all.text(), word_of(backwards).text());
    EXPECT_TRUE(succeeded(unisono_comm_free(reversed)));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, UserDefined, testing::ValuesIn(rank_counts()),
                         [](const auto& suite) { return "P" + std::to_string(suite.param); });

// ---- commutative operators, the user pointer, opaque types that are only moved ----

struct Modulus {
  std::int64_t value = 0;
  std::atomic<std::int64_t> elements{0};
  std::atomic<std::int32_t> wrong_type{0};
};

void add_modulo(void* target, const void* left, const void* right, std::int64_t count,
                unisono_type_t type, void* user) {
  auto& modulus = *static_cast<Modulus*>(user);
  if (type != UNISONO_INT64) ++modulus.wrong_type;
  modulus.elements += count;
  for (std::int64_t i = 0; i < count; ++i) {
    static_cast<std::int64_t*>(target)[i] =
        (static_cast<const std::int64_t*>(left)[i] + static_cast<const std::int64_t*>(right)[i]) %
        modulus.value;
  }
}

TEST(UserOperator, CommutativeOnABuiltInTypeWithTheUsersPointer) {
  static Modulus modulus;
  modulus.value = 1009;
  unisono_op_t op = -1;
  ASSERT_TRUE(succeeded(unisono_op_create(add_modulo, 1, &modulus, &op)));
  constexpr int kRanks = 6;
  constexpr std::int64_t kCount = 333;
  run_threads(kRanks, [&](ThreadRank& self) {
    std::vector<std::int64_t> values(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      values[static_cast<std::size_t>(i)] = (self.rank * 700 + i) % 1009;
    }
    ASSERT_TRUE(succeeded(
        unisono_allreduce(UNISONO_IN_PLACE, values.data(), kCount, UNISONO_INT64, op, self.world)));
    for (std::int64_t i = 0; i < kCount; ++i) {
      std::int64_t sum = 0;
      for (int rank = 0; rank < kRanks; ++rank) sum += (rank * 700 + i) % 1009;
      ASSERT_EQ(values[static_cast<std::size_t>(i)], sum % 1009);
    }
  });
  EXPECT_EQ(modulus.wrong_type.load(), 0);
  EXPECT_GE(modulus.elements.load(), kCount * (kRanks - 1));
}

struct OpaqueCase {
  std::size_t size;
  std::size_t alignment;
};

void PrintTo(OpaqueCase c, std::ostream* out) { *out << c.size << " bytes"; }

class OpaqueTypes : public testing::TestWithParam<OpaqueCase> {};

unsigned char byte_of(int rank, std::size_t index) {
  return static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(rank), index));
}

testing::AssertionResult holds_bytes(const unsigned char* bytes, int rank, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    if (bytes[i] != byte_of(rank, i)) {
      return testing::AssertionFailure() << "byte " << i << " is not rank " << rank << "'s";
    }
  }
  return testing::AssertionSuccess();
}

void check_moves(const ThreadRank& self, unisono_type_t type, OpaqueCase c, std::int64_t count) {
  const std::size_t length = c.size * static_cast<std::size_t>(count);
  Buffer mine(type, count, c.alignment);
  Buffer all(type, count * self.ranks, c.alignment);
  auto* bytes = static_cast<unsigned char*>(mine.data());
  for (std::size_t i = 0; i < length; ++i) bytes[i] = byte_of(self.rank, i);
  ASSERT_TRUE(succeeded(unisono_allgather(mine.data(), all.data(), count, type, self.world)));
  for (int rank = 0; rank < self.ranks; ++rank) {
    ASSERT_TRUE(holds_bytes(static_cast<unsigned char*>(all.at(rank * count)), rank, length));
  }
  ASSERT_TRUE(all.guards_intact());
  const int root = self.ranks - 1;
  ASSERT_TRUE(succeeded(unisono_broadcast(mine.data(), count, type, root, self.world)));
  ASSERT_TRUE(holds_bytes(bytes, root, length));
  ASSERT_TRUE(mine.guards_intact());
}

TEST_P(OpaqueTypes, AreMovedWhole) {
  const OpaqueCase c = GetParam();
  unisono_type_t type = -1;
  ASSERT_TRUE(succeeded(unisono_type_create(c.size, c.alignment, &type)));
  EXPECT_GE(type, kTypes);
  EXPECT_EQ(unisono_type_size(type), c.size);
  run_threads(5, [&](ThreadRank& self) {
    for (const std::int64_t count : {0, 1, 3, 64, 257}) {
      SCOPED_TRACE(count);
      ASSERT_NO_FATAL_FAILURE(check_moves(self, type, c, count));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, OpaqueTypes,
                         testing::Values(OpaqueCase{1, 1}, OpaqueCase{3, 1}, OpaqueCase{24, 8},
                                         OpaqueCase{64, 64}, OpaqueCase{100, 4},
                                         OpaqueCase{4096, 16}),
                         [](const auto& suite) {
                           return "Size" + std::to_string(suite.param.size);
                         });

}  // namespace
}  // namespace unisono::harness::user_defined_test

// SPDX-License-Identifier: BSD-3-Clause
// Symbolic values: the contents of an element of memory, as the sequence of (rank, input element)
// contributions that the operator joined. Neighbouring elements hold neighbouring contributions, so
// memory is kept in pieces, and the cost of a proof does not depend on the count. Equal values have
// equal ids within one Values. Only check/ uses these; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace unisono::check {

using ValueId = std::int32_t;
inline constexpr ValueId kUndefined = -1;  // never written
inline constexpr ValueId kRefused = -2;    // made from a value whose error is reported already

// One contribution each of the ranks first..last: the piece's base plus `element`.
struct Run {
  std::int32_t first = 0, last = 0;
  std::int64_t element = 0;

  auto operator<=>(const Run&) const = default;
};

// Elements [begin, end) of a memory. At element i, a run stands for input element
// base + run.element + (i - begin).
struct SymbolRange {
  std::int64_t begin = 0, end = 0;
  ValueId value = kUndefined;
  std::int64_t base = 0;
  std::int32_t writer = -1;  // the op that wrote it
};

class Values {
 public:
  // `ordered`: the order of the sequence counts; otherwise it is kept sorted by rank.
  Values(int ranks, bool ordered);

  // The input of one rank. Its run has element 0, as the first run of every value.
  static ValueId input_of(int rank) { return rank; }

  // left op right, for the elements of two pieces of the same length. A value with more
  // contributions than ranks holds one twice. It is not extended, which bounds the memory.
  SymbolRange join(const SymbolRange& left, const SymbolRange& right);

  std::span<const Run> runs(ValueId value) const { return *runs_[static_cast<std::size_t>(value)]; }

 private:
  struct Joined {
    ValueId value = kUndefined;
    std::int64_t shift = 0;  // of the base, relative to that of the left operand
  };
  struct Key {
    ValueId left, right;
    std::int64_t distance;  // between the bases
    auto operator<=>(const Key&) const = default;
  };

  ValueId intern(std::vector<Run> runs);

  int ranks_;
  bool ordered_;
  std::vector<const std::vector<Run>*> runs_;  // the keys of ids_
  std::vector<std::int64_t> sizes_;            // contributions in each value
  std::map<std::vector<Run>, ValueId> ids_;
  std::map<Key, Joined> joined_;
};

// One memory of one rank: adjacent pieces that cover it.
class Region {
 public:
  explicit Region(std::int64_t count) : count_(count) {}

  // Replaces the contents of `pieces` by those of `count` elements from `offset`, with begin
  // counted from there.
  void read(std::int64_t offset, std::int64_t count, std::vector<SymbolRange>& pieces) const;
  // Writes adjacent pieces, which begin at 0, to `offset`.
  void write(std::int64_t offset, std::span<const SymbolRange> pieces);

 private:
  std::size_t find(std::int64_t element) const;

  std::int64_t count_;
  std::vector<SymbolRange>
      pieces_;  // empty before the first write; most memories have at most one piece
};

// The part of a piece from `begin` to `end`.
SymbolRange cut(const SymbolRange& piece, std::int64_t begin, std::int64_t end);

}  // namespace unisono::check

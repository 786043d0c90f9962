// SPDX-License-Identifier: BSD-3-Clause
// The results of the collectives with local counts (gatherv, scatterv, alltoallv, alltoallw), in
// every form of a call. Every element outside the blocks must stay as it was. `Self` is a rank of
// any kind of job: rank, ranks, world. For tests only; any thread.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "harness/block_results.hpp"

namespace unisono::harness {

// The words that each rank sends to each other one.
struct PairCounts {
  int ranks = 0;
  Words counts;

  std::int64_t at(int from, int to) const {
    return counts[static_cast<std::size_t>(from * ranks + to)];
  }
  Words sent_by(int from) const {
    Words some;
    for (int to = 0; to < ranks; ++to) some.push_back(at(from, to));
    return some;
  }
  Words received_by(int to) const {
    Words some;
    for (int from = 0; from < ranks; ++from) some.push_back(at(from, to));
    return some;
  }
};

template <class Count>
PairCounts pair_counts(int ranks, Count count) {
  PairCounts pairs{ranks, {}};
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) pairs.counts.push_back(count(from, to));
  }
  return pairs;
}

// Some are empty, and some much longer than others; `symmetric`: both ways alike.
inline PairCounts unequal_pairs(int ranks, std::int64_t unit, bool symmetric) {
  return pair_counts(ranks, [=](int from, int to) -> std::int64_t {
    if (symmetric && to < from) std::swap(from, to);
    return (3 * from + to) % 4 == 1 ? 0 : unit * ((from + 2 * to) % 3) + (from + to) % 5;
  });
}

// A buffer of blocks, packed or scattered, and where they lie.
struct BlockBuffer {
  Words counts, places;
  Words words;
  bool is_packed;

  BlockBuffer(const Words& lengths, Places kind, int rank)
      : counts(lengths),
        places(kind == Places::packed ? packed_places(lengths) : scattered_places(lengths, rank)),
        words(untouched_words(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{4}) +
                              2 * static_cast<std::int64_t>(lengths.size()))),
        is_packed(kind == Places::packed) {}

  const std::int64_t* displacements() const { return is_packed ? nullptr : places.data(); }
  void put(int block, int from, int to) {
    const auto i = static_cast<std::size_t>(block);
    put_words(words, places[i], counts[i], from, to);
  }
};

template <class Self>
void check_gatherv(const Self& self, const Words& counts, Places kind, int root, bool in_place,
                   Way way) {
  const bool is_root = self.rank == root;
  BlockBuffer output(counts, kind, self.rank);
  BlockBuffer expected = output;
  std::int64_t count = counts[static_cast<std::size_t>(self.rank)];
  const Words input = words_of(self.rank, root, count);
  const void* from = input.data();
  if (is_root && in_place) {
    output.put(root, root, root);
    from = UNISONO_IN_PLACE;
    count = -3;  // ignored
  }
  for (int r = 0; is_root && r < self.ranks; ++r) expected.put(r, r, root);
  ASSERT_TRUE(
      succeeded(call(way, unisono_gatherv, unisono_gatherv_start, unisono_gatherv_plan, from, count,
                     is_root ? output.words.data() : nullptr, is_root ? counts.data() : nullptr,
                     is_root ? output.displacements() : nullptr, UNISONO_INT64, root, self.world)));
  ASSERT_EQ(output.words, expected.words);
}

template <class Self>
void check_scatterv(const Self& self, const Words& counts, Places kind, int root, bool in_place,
                    Way way) {
  const bool is_root = self.rank == root;
  BlockBuffer input(counts, kind, self.rank);
  for (int r = 0; r < self.ranks; ++r) input.put(r, root, r);
  const Words before = input.words;
  const std::int64_t own = counts[static_cast<std::size_t>(self.rank)];
  const bool stays = is_root && in_place;
  Words output = untouched_words(own + 1);
  Words expected = output;
  if (!stays) put_words(expected, 0, own, root, self.rank);
  ASSERT_TRUE(succeeded(
      call(way, unisono_scatterv, unisono_scatterv_start, unisono_scatterv_plan,
           is_root ? input.words.data() : nullptr, is_root ? counts.data() : nullptr,
           is_root ? input.displacements() : nullptr, stays ? UNISONO_IN_PLACE : output.data(),
           stays ? -3 : own, UNISONO_INT64, root, self.world)));
  ASSERT_EQ(output, expected);
  ASSERT_EQ(input.words, before);
}

// The two buffers of an alltoall, and the expected output.
struct Exchanged {
  BlockBuffer input, output, expected;

  template <class Self>
  Exchanged(const Self& self, const PairCounts& pairs, Places kind, bool in_place)
      : input(pairs.sent_by(self.rank), kind, self.rank),
        output(pairs.received_by(self.rank), kind, self.rank + 1),
        expected(output) {
    BlockBuffer& given = in_place ? output : input;
    for (int r = 0; r < self.ranks; ++r) {
      given.put(r, self.rank, r);
      expected.put(r, r, self.rank);
    }
  }
};

template <class Self>
void check_alltoallv(const Self& self, const PairCounts& pairs, Places kind, bool in_place,
                     Way way) {
  Exchanged buffers(self, pairs, kind, in_place);
  auto& [input, output, expected] = buffers;
  const Words before = input.words;
  ASSERT_TRUE(succeeded(call(
      way, unisono_alltoallv, unisono_alltoallv_start, unisono_alltoallv_plan,
      in_place ? UNISONO_IN_PLACE : input.words.data(), in_place ? nullptr : input.counts.data(),
      in_place ? nullptr : input.displacements(), output.words.data(), output.counts.data(),
      output.displacements(), UNISONO_INT64, self.world)));
  ASSERT_EQ(output.words, expected.words);
  ASSERT_EQ(input.words, before);
}

// A block's words as elements of other types, which need not be the same at both ends.
struct TypedCounts {
  Words counts, places;  // elements; bytes
  std::vector<unisono_type_t> types;

  TypedCounts(const BlockBuffer& buffer, int kind) {
    for (std::size_t r = 0; r < buffer.counts.size(); ++r) {
      const bool as_bytes = (static_cast<int>(r) + kind) % 3 == 0;
      types.push_back(as_bytes ? UNISONO_BYTE : UNISONO_FLOAT64);
      counts.push_back(buffer.counts[r] * (as_bytes ? 8 : 1));
      places.push_back(buffer.places[r] * 8);
    }
  }
};

template <class Self>
void check_alltoallw(const Self& self, const PairCounts& pairs, Places kind, bool in_place,
                     Way way) {
  Exchanged buffers(self, pairs, kind, in_place);
  auto& [input, output, expected] = buffers;
  const TypedCounts sent(input, self.rank);
  const TypedCounts received(output, in_place ? 0 : 2 * self.rank);
  const bool packed = kind == Places::packed;
  ASSERT_TRUE(succeeded(call(
      way, unisono_alltoallw, unisono_alltoallw_start, unisono_alltoallw_plan,
      in_place ? UNISONO_IN_PLACE : input.words.data(), in_place ? nullptr : sent.counts.data(),
      packed || in_place ? nullptr : sent.places.data(), in_place ? nullptr : sent.types.data(),
      output.words.data(), received.counts.data(), packed ? nullptr : received.places.data(),
      received.types.data(), self.world)));
  ASSERT_EQ(output.words, expected.words);
}

// All four; the pairs are symmetric if in place.
template <class Self>
void check_own_blocks(const Self& self, std::int64_t unit, int root, bool in_place, Way way) {
  const Words counts = unequal_counts(self.ranks, unit);
  const PairCounts pairs = unequal_pairs(self.ranks, unit, in_place);
  for (const Places kind : {Places::packed, Places::scattered}) {
    ASSERT_NO_FATAL_FAILURE(check_gatherv(self, counts, kind, root, in_place, way));
    ASSERT_NO_FATAL_FAILURE(check_scatterv(self, counts, kind, root, in_place, way));
    ASSERT_NO_FATAL_FAILURE(check_alltoallv(self, pairs, kind, in_place, way));
    ASSERT_NO_FATAL_FAILURE(check_alltoallw(self, pairs, kind, in_place, way));
  }
}

}  // namespace unisono::harness

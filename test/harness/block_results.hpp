// SPDX-License-Identifier: BSD-3-Clause
// The results of the collectives that move or reduce blocks, in every way a call can be made, with
// words that tell where they come from, where they go, and which they are. `Self` is a rank of any
// kind of job: rank, ranks, world. For tests only; any thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "harness/outcome.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

using Words = std::vector<std::int64_t>;

inline constexpr std::int64_t kUntouched = -77;

inline Words untouched_words(std::int64_t count) {
  return Words(static_cast<std::size_t>(count), kUntouched);
}

// Word i of the block from `from` to `to`; sums of them stay exact and distinct.
inline std::int64_t word(int from, int to, std::int64_t i) {
  return (std::int64_t{from} + 1) * 1'000'000'007 + std::int64_t{to} * 10'000'019 + i;
}

inline void put_words(Words& words, std::int64_t first, std::int64_t count, int from, int to) {
  for (std::int64_t i = 0; i < count; ++i) {
    words[static_cast<std::size_t>(first + i)] = word(from, to, i);
  }
}

inline Words words_of(int from, int to, std::int64_t count) {
  Words words(static_cast<std::size_t>(count));
  put_words(words, 0, count, from, to);
  return words;
}

// The sum of the blocks of ranks 0 .. ranks-1 for `to`.
inline std::int64_t summed_word(int ranks, int to, std::int64_t i) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += word(rank, to, i);
  return sum;
}

inline testing::AssertionResult sums_are(const Words& words, std::int64_t first, std::int64_t count,
                                         int ranks, int to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t found = words[static_cast<std::size_t>(first + i)];
    if (found == summed_word(ranks, to, i)) continue;
    return testing::AssertionFailure()
           << "element " << i << " is " << found << ", not " << summed_word(ranks, to, i);
  }
  return testing::AssertionSuccess();
}

enum class Way { blocking, started, planned };
inline constexpr Way kWays[] = {Way::blocking, Way::started, Way::planned};

// One call of a collective by its three functions.
template <class Blocking, class Start, class Plan, class... Arguments>
int call(Way way, Blocking blocking, Start start, Plan make_plan, Arguments... arguments) {
  if (way == Way::blocking) return blocking(arguments...);
  if (way == Way::started) {
    unisono_request_t request = nullptr;
    const int error = start(arguments..., &request);
    return error == UNISONO_OK ? unisono_wait(&request) : error;
  }
  unisono_plan_t plan = nullptr;
  if (const int error = make_plan(arguments..., &plan); error != UNISONO_OK) return error;
  if (const int error = unisono_plan_start(plan); error != UNISONO_OK) return error;
  if (const int error = unisono_plan_wait(plan); error != UNISONO_OK) return error;
  return unisono_plan_free(plan);
}

template <class Self>
void check_gather(const Self& self, std::int64_t count, int root, bool in_place, Way way) {
  const bool is_root = self.rank == root;
  const Words input = words_of(self.rank, root, count);
  Words output = untouched_words(count * self.ranks);
  Words expected = output;
  const void* from = input.data();
  if (is_root && in_place) {
    put_words(output, count * self.rank, count, self.rank, root);
    from = UNISONO_IN_PLACE;
  }
  for (int r = 0; is_root && r < self.ranks; ++r) put_words(expected, count * r, count, r, root);
  ASSERT_TRUE(
      succeeded(call(way, unisono_gather, unisono_gather_start, unisono_gather_plan, from,
                     is_root ? output.data() : nullptr, count, UNISONO_INT64, root, self.world)));
  ASSERT_EQ(output, expected);
}

template <class Self>
void check_scatter(const Self& self, std::int64_t count, int root, bool in_place, Way way) {
  const bool is_root = self.rank == root;
  Words input = untouched_words(count * self.ranks);
  for (int r = 0; r < self.ranks; ++r) put_words(input, count * r, count, root, r);
  const Words before = input;
  Words output = untouched_words(count);
  const bool stays = is_root && in_place;
  void* to = stays ? UNISONO_IN_PLACE : output.data();
  ASSERT_TRUE(succeeded(call(way, unisono_scatter, unisono_scatter_start, unisono_scatter_plan,
                             is_root ? input.data() : nullptr, to, count, UNISONO_INT64, root,
                             self.world)));
  ASSERT_EQ(input, before);
  ASSERT_EQ(output, stays ? untouched_words(count) : words_of(root, self.rank, count));
}

template <class Self>
void check_alltoall(const Self& self, std::int64_t count, bool in_place, Way way) {
  Words input = untouched_words(count * self.ranks);
  Words expected = input;
  for (int r = 0; r < self.ranks; ++r) {
    put_words(input, count * r, count, self.rank, r);
    put_words(expected, count * r, count, r, self.rank);
  }
  Words output = in_place ? input : untouched_words(count * self.ranks);
  const void* from = in_place ? UNISONO_IN_PLACE : input.data();
  ASSERT_TRUE(succeeded(call(way, unisono_alltoall, unisono_alltoall_start, unisono_alltoall_plan,
                             from, output.data(), count, UNISONO_INT64, self.world)));
  ASSERT_EQ(output, expected);
}

template <class Self>
void check_reduce_scatter_block(const Self& self, std::int64_t count, bool in_place, Way way) {
  Words input = untouched_words(count * self.ranks);
  for (int r = 0; r < self.ranks; ++r) put_words(input, count * r, count, self.rank, r);
  const Words before = input;
  Words output = in_place ? input : untouched_words(count + 1);
  const void* from = in_place ? UNISONO_IN_PLACE : input.data();
  ASSERT_TRUE(succeeded(call(way, unisono_reduce_scatter_block, unisono_reduce_scatter_block_start,
                             unisono_reduce_scatter_block_plan, from, output.data(), count,
                             UNISONO_INT64, UNISONO_SUM, self.world)));
  ASSERT_TRUE(sums_are(output, 0, count, self.ranks, self.rank));
  ASSERT_EQ(input, before);
  if (!in_place) {
    ASSERT_EQ(output.back(), kUntouched);
  }
}

template <class Self>
void check_scans(const Self& self, std::int64_t count, bool in_place, Way way) {
  const Words input = words_of(self.rank, 0, count);
  Words upto = in_place ? input : untouched_words(count);
  Words below = upto;
  const void* from = in_place ? UNISONO_IN_PLACE : input.data();
  ASSERT_TRUE(succeeded(call(way, unisono_scan, unisono_scan_start, unisono_scan_plan, from,
                             upto.data(), count, UNISONO_INT64, UNISONO_SUM, self.world)));
  ASSERT_TRUE(sums_are(upto, 0, count, self.rank + 1, 0));
  ASSERT_TRUE(succeeded(call(way, unisono_exscan, unisono_exscan_start, unisono_exscan_plan, from,
                             below.data(), count, UNISONO_INT64, UNISONO_SUM, self.world)));
  if (self.rank == 0) {
    ASSERT_EQ(below, in_place ? input : untouched_words(count));
  } else {
    ASSERT_TRUE(sums_are(below, 0, count, self.rank, 0));
  }
}

template <class Self>
void check_equal_blocks(const Self& self, std::int64_t count, int root, bool in_place, Way way) {
  ASSERT_NO_FATAL_FAILURE(check_gather(self, count, root, in_place, way));
  ASSERT_NO_FATAL_FAILURE(check_scatter(self, count, root, in_place, way));
  ASSERT_NO_FATAL_FAILURE(check_alltoall(self, count, in_place, way));
  ASSERT_NO_FATAL_FAILURE(check_reduce_scatter_block(self, count, in_place, way));
  ASSERT_NO_FATAL_FAILURE(check_scans(self, count, in_place, way));
}

// ---- blocks of different lengths ----

// Some are empty, and some ranks' are much longer than others'.
inline Words unequal_counts(int ranks, std::int64_t unit) {
  Words counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(r % 4 == 1 ? 0 : unit * (r % 3) + r);
  return counts;
}

// Backwards, with a gap between, and elsewhere at each rank.
inline Words scattered_places(const Words& counts, int rank) {
  Words places(counts.size());
  std::int64_t end = rank % 3;
  for (std::size_t r = counts.size(); r-- > 0;) {
    places[r] = end + 1;
    end = places[r] + counts[r];
  }
  return places;
}

inline Words packed_places(const Words& counts) {
  Words places(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), std::int64_t{0});
  return places;
}

enum class Places { packed, scattered };

// receives null: all ranks do, by an allgatherv.
template <class Self>
void check_many_to_many(const Self& self, const Words& counts, Places kind, const int* receives,
                        bool in_place, Way way) {
  const std::size_t own = static_cast<std::size_t>(self.rank);
  const bool is_packed = kind == Places::packed;
  const Words places = is_packed ? packed_places(counts) : scattered_places(counts, self.rank);
  const std::int64_t room =
      std::accumulate(counts.begin(), counts.end(), std::int64_t{4}) + std::int64_t{2} * self.ranks;
  const bool gets = receives == nullptr || receives[own] == 1;
  const Words input = words_of(self.rank, 0, counts[own]);
  Words output = untouched_words(room);
  Words expected = output;
  std::int64_t count = counts[own];
  const void* from = input.data();
  if (gets && in_place) {
    put_words(output, places[own], counts[own], self.rank, 0);
    from = UNISONO_IN_PLACE;
    count = 0;  // ignored
  }
  for (int r = 0; gets && r < self.ranks; ++r) {
    const auto block = static_cast<std::size_t>(r);
    put_words(expected, places[block], counts[block], r, 0);
  }
  void* const to = gets ? output.data() : nullptr;
  const std::int64_t* const given = is_packed ? nullptr : places.data();
  const int error =
      receives == nullptr
          ? call(way, unisono_allgatherv, unisono_allgatherv_start, unisono_allgatherv_plan, from,
                 count, to, counts.data(), given, UNISONO_INT64, self.world)
          : call(way, unisono_many_to_many, unisono_many_to_many_start, unisono_many_to_many_plan,
                 from, count, to, counts.data(), given, receives, UNISONO_INT64, self.world);
  ASSERT_TRUE(succeeded(error));
  ASSERT_EQ(output, expected);
}

template <class Self>
void check_reduce_scatter(const Self& self, const Words& counts, bool in_place, Way way) {
  const Words places = packed_places(counts);
  const std::int64_t own = counts[static_cast<std::size_t>(self.rank)];
  Words input = untouched_words(places.back() + counts.back());
  for (int r = 0; r < self.ranks; ++r) {
    put_words(input, places[static_cast<std::size_t>(r)], counts[static_cast<std::size_t>(r)],
              self.rank, r);
  }
  Words output = in_place ? input : untouched_words(own + 1);
  const void* from = in_place ? UNISONO_IN_PLACE : input.data();
  ASSERT_TRUE(succeeded(call(way, unisono_reduce_scatter, unisono_reduce_scatter_start,
                             unisono_reduce_scatter_plan, from, output.data(), counts.data(),
                             UNISONO_INT64, UNISONO_SUM, self.world)));
  ASSERT_TRUE(sums_are(output, 0, own, self.ranks, self.rank));
  if (!in_place) {
    ASSERT_EQ(output.back(), kUntouched);
  }
}

template <class Self>
void check_unequal_blocks(const Self& self, const Words& counts, bool in_place, Way way) {
  std::vector<int> receives;
  for (int r = 0; r < self.ranks; ++r) receives.push_back(r % 3 != 1 ? 1 : 0);
  for (const Places kind : {Places::packed, Places::scattered}) {
    ASSERT_NO_FATAL_FAILURE(check_many_to_many(self, counts, kind, nullptr, in_place, way));
    ASSERT_NO_FATAL_FAILURE(check_many_to_many(self, counts, kind, receives.data(), in_place, way));
  }
  ASSERT_NO_FATAL_FAILURE(check_reduce_scatter(self, counts, in_place, way));
}

}  // namespace unisono::harness

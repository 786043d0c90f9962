// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of different lengths: numbers that lie anywhere are sorted over all ranks. Each number
// goes to the rank whose part of the range it is in; how many that are only the two ranks know
// between which they go. docs/tutorial/03-exchange.md goes through it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <unisono/unisono.hpp>
#include <vector>

namespace {

using Counts = std::vector<std::int64_t>;

constexpr int kNumbers = 1000;  // of each rank
constexpr int kRange = 10000;

std::vector<int> numbers_of(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::vector<int> numbers(kNumbers);
  for (int& number : numbers) number = static_cast<int>(random() % kRange);
  return numbers;
}

// The rank whose part of the range holds the number.
int home_of(int number, int ranks) {
  return static_cast<int>(std::int64_t{number} * ranks / kRange);
}

// The numbers of this rank's part of the range, sorted.
std::vector<int> exchange(unisono::communicator& world, std::vector<int> mine) {
  const int ranks = world.size();
  std::sort(mine.begin(), mine.end());  // those for rank 0 come first, then those for rank 1 ...
  Counts to_each(static_cast<std::size_t>(ranks)), from_each(to_each.size());
  for (const int number : mine) ++to_each[static_cast<std::size_t>(home_of(number, ranks))];

  // One number to each rank: how many there will be of mine.
  world.alltoall(to_each, from_each);
  std::vector<int> here(static_cast<std::size_t>(
      std::accumulate(from_each.begin(), from_each.end(), std::int64_t{0})));
  world.alltoallv(mine, here, to_each, from_each);

  std::sort(here.begin(), here.end());
  return here;
}

}  // namespace

int main() try {
  unisono::job job;
  unisono::communicator& world = job.world();
  const std::vector<int> here = exchange(world, numbers_of(world.rank()));

  // Rank 0 collects them all, the parts of the ranks one behind the other.
  const Counts counts = world.allgather(static_cast<std::int64_t>(here.size()));
  std::vector<int> all(world.rank() == 0 ? static_cast<std::size_t>(kNumbers * world.size()) : 0);
  world.gatherv(here, all, counts);
  if (world.rank() != 0) return 0;

  const bool sorted = std::is_sorted(all.begin(), all.end());
  std::printf("%d ranks sorted %zu numbers%s\n", world.size(), all.size(),
              sorted ? "" : " wrongly");
  return sorted ? 0 : 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}

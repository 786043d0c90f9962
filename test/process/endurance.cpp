// SPDX-License-Identifier: BSD-3-Clause
// Endurance: barriers and allreduces back to back between processes, with ranks that dawdle at
// random, every result checked. --operations=N --ranks=P; a quick and a long run are tests.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "harness/outcome.hpp"
#include "harness/scale.hpp"
#include "process/ranks.hpp"

namespace unisono::harness {
namespace {

std::int64_t wanted_operations = 100'000;
int wanted_ranks = 4;

// Rarely, and for up to a tenth of a millisecond: long enough that others fall asleep.
void dawdle(base::Prng& prng) {
  if (prng.below(5000) == 0) usleep(static_cast<useconds_t>(prng.below(100)));
}

void barriers_and_sums(ProcessRank& self, std::int64_t operations) {
  base::Prng prng(static_cast<std::uint64_t>(self.rank) + 1);
  const std::int64_t ranks = self.ranks;
  for (std::int64_t i = 0; i < operations; ++i) {
    dawdle(prng);
    if (i % 2 == 0) {
      ASSERT_TRUE(succeeded(unisono_barrier(self.world))) << "operation " << i;
      continue;
    }
    const std::int64_t mine = i + self.rank;
    std::int64_t sum = 0;
    ASSERT_TRUE(
        succeeded(unisono_allreduce(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, self.world)))
        << "operation " << i;
    ASSERT_EQ(sum, ranks * i + ranks * (ranks - 1) / 2) << "operation " << i;
  }
}

// Broadcasts and reduces, in which ranks run ahead of each other as far as the library lets them.
void run_ahead(ProcessRank& self, std::int64_t operations) {
  base::Prng prng(static_cast<std::uint64_t>(self.rank) + 100);
  for (std::int64_t i = 0; i < operations; ++i) {
    dawdle(prng);
    const int root = static_cast<int>(i / 100 % self.ranks);
    std::int64_t value = self.rank == root ? i : -1;
    std::int64_t sum = 0;
    ASSERT_TRUE(succeeded(unisono_broadcast(&value, 1, UNISONO_INT64, root, self.world)));
    ASSERT_EQ(value, i);
    ASSERT_TRUE(
        succeeded(unisono_reduce(&value, &sum, 1, UNISONO_INT64, UNISONO_SUM, root, self.world)));
    ASSERT_EQ(sum, self.rank == root ? i * self.ranks : 0);
  }
}

void run(const char* what, void (*body)(ProcessRank&, std::int64_t), std::int64_t operations) {
  const std::int64_t start_ns = base::now_ns();
  ProcessJob job(wanted_ranks, [&](ProcessRank& self) { body(self, operations); });
  job.expect_all_clean();
  std::printf("             %lld %s between %d ranks: %.2f s\n", static_cast<long long>(operations),
              what, wanted_ranks, static_cast<double>(base::now_ns() - start_ns) / 1e9);
}

TEST(Endurance, BarriersAndAllreducesBackToBack) {
  run("barriers and allreduces", barriers_and_sums, scaled(wanted_operations));
}

TEST(Endurance, BroadcastsAndReducesThatRunAhead) {
  run("broadcasts with reduces", run_ahead, scaled(wanted_operations / 2));
}

}  // namespace

bool take_argument(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const long long value = std::atoll(std::string(argument.substr(equals + 1)).c_str());
  if (value <= 0) return false;
  const std::string_view name = argument.substr(0, equals);
  if (name == "--operations") wanted_operations = value;
  if (name == "--ranks") wanted_ranks = static_cast<int>(value);
  return name == "--operations" || name == "--ranks";
}

}  // namespace unisono::harness

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (unisono::harness::take_argument(argv[i])) continue;
    std::fprintf(stderr, "endurance: what is %s? Use --operations=N --ranks=P\n", argv[i]);
    return 2;
  }
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: BSD-3-Clause
// How all ranks of a job get the first rank's UNISONO_REPRODUCIBLE: in a word of every host's
// memory. All plan alike by it, so that a rank with another setting of its own cannot take part.
#include <fmt/format.h>

#include "job/start/exchanges.hpp"

namespace unisono::job {
namespace {

constexpr int kSumsLikeRank = 0;

void share_sums(const StartUp& start, std::uint64_t value) {
  std::atomic<std::uint64_t>& word = start.header().reproducible;
  word.store(value, std::memory_order_release);
  for (const int first : start.ranks().hosts().firsts_elsewhere()) {
    start.network()->put(
        {.target = first, .flag = reinterpret_cast<std::uint64_t*>(&word), .flag_value = value});
  }
}

std::string_view name_of(base::Reproducible how) {
  constexpr std::string_view kNames[] = {"0", "1", "ranks"};
  return kNames[static_cast<std::size_t>(how)];
}

}  // namespace

base::Result<base::Reproducible> agree_on_sums(StartUp& start, const bootstrap::JobInfo& info) {
  const Ranks& ranks = start.ranks();
  const base::Reproducible own = start.settings().reproducible();
  if (!info.shares_machine) return own;  // nor anything else
  if (ranks.own() == kSumsLikeRank) {
    share_sums(start, static_cast<std::uint64_t>(own) + 1);
    return own;
  }
  const std::atomic<std::uint64_t>& word = start.header().reproducible;
  const auto is_set = [&] {
    const bool is_remote = ranks.is_first_here() && !ranks.hosts().is_here(kSumsLikeRank);
    if (is_remote) start.network()->awaits(kSumsLikeRank);
    return word.load(std::memory_order_acquire) != 0;
  };
  UNISONO_TRY(start.await(is_set, [] { return "rank 0 did not say how it sums"; }));
  const auto all = static_cast<base::Reproducible>(word.load(std::memory_order_acquire) - 1);
  if (own == all || !start.settings().is_set(base::Setting::reproducible)) return all;
  return base::Error{
      base::Code::argument,
      fmt::format("rank {}: UNISONO_REPRODUCIBLE is {}, but rank 0 has {}; set it alike on all "
                  "ranks, or on rank 0 only",
                  ranks.own(), name_of(own), name_of(all))};
}

}  // namespace unisono::job

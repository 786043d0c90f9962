// SPDX-License-Identifier: BSD-3-Clause
// How all ranks of a job get the first rank's UNISONO_REPRODUCIBLE and UNISONO_HETEROGENEOUS: each
// in a word of every host's memory. All plan alike by them, so that a rank with another setting of
// its own cannot take part.
#include <fmt/format.h>

#include "job/start/exchanges.hpp"

namespace unisono::job {
namespace {

constexpr int kLikeRank = 0;

using Word = std::atomic<std::uint64_t>;

void share(const StartUp& start, Word& word, std::uint64_t value) {
  word.store(value, std::memory_order_release);
  for (const int first : start.ranks().hosts().firsts_elsewhere()) {
    start.network()->put(
        {.target = first, .flag = reinterpret_cast<std::uint64_t*>(&word), .flag_value = value});
  }
}

// The first rank's value of a setting. `own`: this rank's, and name_of() says how it is written.
// The word is that value + 1, once it is there.
base::Result<std::uint64_t> value_of_rank_zero(StartUp& start, const bootstrap::JobInfo& info,
                                               base::Setting setting, Word& word, std::uint64_t own,
                                               std::string_view (*name_of)(std::uint64_t)) {
  const Ranks& ranks = start.ranks();
  if (!info.shares_machine) return own;  // nor anything else
  if (ranks.own() == kLikeRank) {
    share(start, word, own + 1);
    return own;
  }
  const std::string_view name = base::setting_row(setting).name;
  const auto is_set = [&] {
    const bool is_remote = ranks.is_first_here() && !ranks.hosts().is_here(kLikeRank);
    if (is_remote) start.network()->awaits(kLikeRank);
    return word.load(std::memory_order_acquire) != 0;
  };
  UNISONO_TRY(start.await(is_set, [&] { return fmt::format("rank 0 did not tell its {}", name); }));
  const std::uint64_t all = word.load(std::memory_order_acquire) - 1;
  if (own == all || !start.settings().is_set(setting)) return all;
  return base::Error{base::Code::argument,
                     fmt::format("rank {}: {} is {}, but rank 0 has {}; set it alike on all ranks, "
                                 "or on rank 0 only",
                                 ranks.own(), name, name_of(own), name_of(all))};
}

std::string_view name_of_sums(std::uint64_t how) {
  constexpr std::string_view kNames[] = {"0", "1", "ranks"};
  return kNames[how];
}

std::string_view name_of_switch(std::uint64_t value) { return value == 0 ? "off" : "on"; }

}  // namespace

base::Result<base::Reproducible> agree_on_sums(StartUp& start, const bootstrap::JobInfo& info) {
  UNISONO_ASSIGN(const std::uint64_t all,
                 value_of_rank_zero(
                     start, info, base::Setting::reproducible, start.header().reproducible,
                     static_cast<std::uint64_t>(start.settings().reproducible()), name_of_sums));
  return static_cast<base::Reproducible>(all);
}

base::Result<bool> agree_on_heterogeneity(StartUp& start, const bootstrap::JobInfo& info) {
  const bool own = start.settings().toggle(base::Setting::heterogeneous) == base::Toggle::on;
  UNISONO_ASSIGN(const std::uint64_t all,
                 value_of_rank_zero(start, info, base::Setting::heterogeneous,
                                    start.header().heterogeneous, own ? 1 : 0, name_of_switch));
  return all != 0;
}

}  // namespace unisono::job

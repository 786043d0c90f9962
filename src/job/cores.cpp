// SPDX-License-Identifier: BSD-3-Clause
#include "job/cores.hpp"

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "topology/spare_core.hpp"
#include "wait/short_slices.hpp"

namespace unisono::job {
namespace {

topology::UsableCores published_by(const RankHeader& entry) {
  topology::UsableCores cores;
  for (std::size_t w = 0; w < cores.mask.size(); ++w) {
    cores.mask[w] = entry.cores[w].load(std::memory_order_relaxed);
  }
  cores.quota = entry.quota_millicores.load(std::memory_order_relaxed) / 1000.0;
  return cores;
}

wait::WaitTimes wait_times_of(const model::Machine& machine) {
  const auto ns = [&](model::Constant constant) {
    constexpr double kMost = base::kSecond;  // what counts of a file's number, which may be any
    return static_cast<std::int64_t>(std::min(model::constant_of(machine, constant).ns(), kMost));
  };
  return {.spin_ns = ns(model::Constant::rank_spin),
          .turn_ns = ns(model::Constant::rank_turn),
          .background_spin_ns = ns(model::Constant::background_spin)};
}

}  // namespace

void Cores::publish(const Ranks& ranks) {
  const topology::UsableCores cores = topology::usable_cores();
  RankHeader& own = ranks.entry(ranks.own());
  for (std::size_t w = 0; w < cores.mask.size(); ++w) {
    own.cores[w].store(cores.mask[w], std::memory_order_relaxed);
  }
  own.quota_millicores.store(static_cast<std::uint32_t>(cores.quota * 1000),
                             std::memory_order_relaxed);
}

void Cores::settle(const Ranks& ranks, bool has_network, int shared_by_hosts,
                   const base::Settings& settings, const model::Machine& machine) {
  shared_by_hosts_ = shared_by_hosts;
  for (const int r : ranks.hosts().here()) {
    if (r == ranks.own()) place_ = here_.size();
    here_.push_back(published_by(ranks.entry(r)));
  }
  const double per_core = topology::ranks_per_core(here_);
  oversubscribed_ = per_core > 1;
  suffice_for_agents_ = 2 * per_core <= 1;
  ranks_per_core_ = std::max(1, static_cast<int>(std::ceil(per_core)));
  contention_.expect_turns_of(ranks_per_core_);
  count_ = topology::count_cores(topology::all_cores(here_));
  // A look at the network is a system call: nothing is won by not giving the core away in between.
  wait_policy_ =
      wait::WaitPolicy::for_ranks(wait_times_of(machine), oversubscribed_ || has_network,
                                  settings.time_ns(base::Setting::spin), ranks_per_core_);
  const base::Toggle short_slices = settings.toggle(base::Setting::short_slices);
  if (short_slices == base::Toggle::off) wait_policy_.short_slices = wait::ShortSlices::never;
  if (short_slices == base::Toggle::on) wait_policy_.short_slices = wait::ShortSlices::at_once;
  if (short_slices == base::Toggle::on && !wait::ask_for_short_slices()) {
    base::log(base::LogLevel::warn, "job",
              "UNISONO_SHORT_SLICES=on: this kernel grants no slices of {} us (Linux 6.12 does)",
              wait::kShortSliceNs / 1000);
  }
}

std::optional<int> Cores::place_of_agent() const {
  if (!topology::fills_its_cores(here_, place_)) return std::nullopt;
  return topology::spare_core(here_, place_, topology::allowed_cores());
}

}  // namespace unisono::job

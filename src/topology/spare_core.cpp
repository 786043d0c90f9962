// SPDX-License-Identifier: BSD-3-Clause
#include "topology/spare_core.hpp"

#include <algorithm>
#include <bit>

namespace unisono::topology {
namespace {

int count(const UsableCores& cores) {
  int found = 0;
  for (const std::uint64_t word : cores.mask) found += std::popcount(word);
  return found;
}

std::vector<int> list(const UsableCores& cores) {
  std::vector<int> found;
  for (int core = 0; core < kMostCores; ++core) {
    if ((cores.mask[static_cast<std::size_t>(core / 64)] >> (core % 64) & 1U) != 0) {
      found.push_back(core);
    }
  }
  return found;
}

bool get_affinity(cpu_set_t& set) {
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0;
}

bool set_affinity(const cpu_set_t& set) { return sched_setaffinity(0, sizeof set, &set) == 0; }

}  // namespace

bool fills_its_cores(const std::vector<UsableCores>& ranks, std::size_t own) {
  const UsableCores& mine = ranks[own];
  const auto is_mine = [&mine](const UsableCores& other) { return other.mask == mine.mask; };
  return count(mine) <= std::ranges::count_if(ranks, is_mine);
}

std::optional<int> spare_core(const std::vector<UsableCores>& ranks, std::size_t own,
                              const UsableCores& allowed) {
  if (!fills_its_cores(ranks, own)) return std::nullopt;
  // Ranks that use up the quota leave no time on any core.
  const double quota = ranks[own].quota;
  if (quota > 0 && quota < static_cast<double>(ranks.size()) + 1) return std::nullopt;
  UsableCores spare = allowed;
  for (const UsableCores& rank : ranks) {
    for (std::size_t w = 0; w < spare.mask.size(); ++w) spare.mask[w] &= ~rank.mask[w];
  }
  const std::vector<int> free = list(spare);
  if (free.empty()) return std::nullopt;
  // Each rank gets a core of its own as long as there are enough.
  return free[own % free.size()];
}

UsableCores allowed_cores() {
  cpu_set_t before;
  cpu_set_t all;
  if (!get_affinity(before)) return {};
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  UsableCores allowed;
  if (set_affinity(all)) allowed.mask = usable_cores().mask;
  set_affinity(before);
  return allowed;
}

WithCore::WithCore(std::optional<int> core) {
  if (!core || !get_affinity(before_)) return;
  cpu_set_t wider = before_;
  CPU_SET(static_cast<std::size_t>(*core), &wider);
  added_ = set_affinity(wider);
}

WithCore::~WithCore() {
  if (added_) set_affinity(before_);
}

}  // namespace unisono::topology

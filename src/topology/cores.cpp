// SPDX-License-Identifier: BSD-3-Clause
#include "topology/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace unisono::topology {
namespace {

using Mask = std::array<std::uint64_t, kMostCores / 64>;

int count(const Mask& mask) {
  int cores = 0;
  for (const std::uint64_t word : mask) cores += std::popcount(word);
  return cores;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

UsableCores usable_cores() {
  UsableCores cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < kMostCores && core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        cores.mask[static_cast<std::size_t>(core / 64)] |= std::uint64_t{1} << (core % 64);
      }
    }
  }
  if (const auto file = read_file("/proc/self/cgroup")) {
    cores.quota = cgroup_quota("/sys/fs/cgroup", *file).value_or(0);
  }
  return cores;
}

int count_cores(const UsableCores& cores) {
  int cores_of_mask = count(cores.mask);
  if (cores.quota > 0) {
    cores_of_mask = std::min(cores_of_mask, static_cast<int>(std::ceil(cores.quota)));
  }
  return std::max(1, cores_of_mask);
}

std::optional<double> cgroup_quota(const std::string& mount, const std::string& cgroup_file) {
  std::istringstream lines(cgroup_file);
  std::string path;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::")) path = line.substr(3);  // the cgroup v2 entry
  }
  if (path.empty()) return std::nullopt;
  std::optional<double> tightest;
  for (;;) {
    if (const auto text = read_file(mount + path + "/cpu.max")) {
      std::istringstream fields(*text);
      double quota = 0, period = 0;
      if (fields >> quota >> period && period > 0) {  // "max 100000" has no number first
        tightest = std::min(tightest.value_or(quota / period), quota / period);
      }
    }
    const auto slash = path.find_last_of('/');
    if (path == "/" || slash == std::string::npos) return tightest;
    path.resize(slash == 0 ? 1 : slash);
  }
}

UsableCores all_cores(const std::vector<UsableCores>& ranks) {
  UsableCores all;
  for (const UsableCores& cores : ranks) {
    for (std::size_t w = 0; w < all.mask.size(); ++w) all.mask[w] |= cores.mask[w];
    if (cores.quota > 0 && (all.quota == 0 || cores.quota < all.quota)) all.quota = cores.quota;
  }
  return all;
}

double ranks_per_core(const std::vector<UsableCores>& ranks) {
  const auto number = static_cast<double>(ranks.size());
  const UsableCores all = all_cores(ranks);
  double most = number / std::max(1, count(all.mask));
  if (all.quota > 0) most = std::max(most, number / all.quota);
  std::map<Mask, int> groups;
  for (const UsableCores& cores : ranks) ++groups[cores.mask];
  for (const auto& [mask, members] : groups) {
    most = std::max(most, static_cast<double>(members) / std::max(1, count(mask)));
  }
  return most;
}

}  // namespace unisono::topology

// SPDX-License-Identifier: BSD-3-Clause
// The cores that ranks may really use: limited by the affinity mask and by the cgroup's quota, not
// only by the machine. Control path; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace unisono::topology {

inline constexpr int kMostCores = 1024;

struct UsableCores {
  std::array<std::uint64_t, kMostCores / 64> mask{};  // cores that the calling thread may run on
  double quota = 0;  // CPU time that the cgroup grants, in cores; 0: no limit
};

// The cores of the calling thread.
UsableCores usable_cores();

// How many they are; at least 1. Half a core's time still runs one thread.
int count_cores(const UsableCores& cores);

// The tightest "max period" quota of a cgroup v2 path and its parents, in cores. `mount` is where
// the cgroup file system is mounted; `cgroup_file` has the contents of /proc/self/cgroup.
std::optional<double> cgroup_quota(const std::string& mount, const std::string& cgroup_file);

// The cores of these ranks together, and the tightest of their quotas.
UsableCores all_cores(const std::vector<UsableCores>& ranks);

// The largest number of ranks for a core; above 1 they outnumber their cores. Three limits count:
// the union of their masks, the quota, and the cores of any group of ranks bound to the same few
// cores.
double ranks_per_core(const std::vector<UsableCores>& ranks);

}  // namespace unisono::topology

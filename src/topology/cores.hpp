// SPDX-License-Identifier: BSD-3-Clause
// Cores that ranks may really use: the affinity mask and the cgroup's quota count, not only what
// the machine has. Control path; any thread.
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
  double quota = 0;  // cores' worth of time that the cgroup grants; 0: no limit
};

// Of the calling thread.
UsableCores usable_cores();

// The tightest "max period" quota of a cgroup v2 path and its parents, in cores. `mount` is where
// the cgroup file system is mounted; `cgroup_file` has the contents of /proc/self/cgroup.
std::optional<double> cgroup_quota(const std::string& mount, const std::string& cgroup_file);

// Whether these ranks outnumber their cores: there are more of them than cores in the union of
// their masks, than the quota grants, or than fit where some are bound to the same few cores.
bool oversubscribed(const std::vector<UsableCores>& ranks);

}  // namespace unisono::topology

// SPDX-License-Identifier: BSD-3-Clause
// Ranks on hosts as options take them: "4x2" for four hosts of two ranks each, "3,1,2" for hosts
// with three, one and two ranks. The ranks of a host are consecutive or, with ":cyclic" at the end,
// dealt out in turn. Errors say what is wrong and what would be right. Any thread.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "topology/host_map.hpp"

namespace unisono::tools {

base::Result<topology::HostMap> parse_hosts(int ranks, std::string_view text);

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// Ranks on hosts as options take them: "4x2" for four hosts of two ranks each, "3,1,2" for hosts of
// so many ranks; ranks of a host follow one another, or, with ":cyclic" behind it, are dealt out in
// turn. The error says what is wrong and what would be right. Any thread.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "topology/host_map.hpp"

namespace unisono::tools {

base::Result<topology::HostMap> parse_hosts(int ranks, std::string_view text);

}  // namespace unisono::tools

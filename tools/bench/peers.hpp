// SPDX-License-Identifier: BSD-3-Clause
// unisono bench --peers: hands over to the script that runs other libraries by turns with this one.
// One thread, before any rank is started.
#pragma once

#include <string>
#include <vector>

namespace unisono::tools::bench {

// Replaces this process by the script, to which it gives `words` and the path of this binary.
// Returns only if that fails, and has said why: the exit status.
int compare_with_peers(const std::vector<std::string>& words);

}  // namespace unisono::tools::bench

// SPDX-License-Identifier: BSD-3-Clause
// What went otherwise than on a network without losses, strangers and full buffers, for people who
// look for why their job is slow, or for who else is there. Control path; any thread, while nobody
// else uses the Reliable.
#pragma once

#include <string>

#include "reliable/reliable.hpp"

namespace unisono::reliable {

// "3 packets repeated, 2 requests sent; dropped: tag 12"; empty if nothing did.
std::string trouble_text(Reliable& reliable);

}  // namespace unisono::reliable

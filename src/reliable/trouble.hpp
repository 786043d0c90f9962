// SPDX-License-Identifier: BSD-3-Clause
// Differences from a network without losses, foreign packets and full buffers, for people who look
// for the reason of a slow job, or for other senders. Control path; any thread, while no other uses
// the Reliable.
#pragma once

#include <string>

#include "reliable/reliable.hpp"

namespace unisono::reliable {

// "3 packets repeated, 2 requests sent; dropped: tag 12"; empty if nothing did.
std::string trouble_text(Reliable& reliable);

}  // namespace unisono::reliable

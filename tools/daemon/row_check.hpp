// SPDX-License-Identifier: BSD-3-Clause
// Which rows an unprivileged process may have: the program believes what a row says, so its numbers
// must be within the limits of tables.h, and its packets go out from this host's address to hosts
// of its own network only. Pure; any thread.
#pragma once

#include "base/result.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// The row with everything in it that is not for the process to say: whose address packets carry.
base::Result<unisono_nic_row> checked_row(const unisono_nic_row& asked, const nic::Served& served);

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
// Checks the rows that an unprivileged process asks for. The program trusts its rows. So the
// numbers in a row must be within the limits of tables.h. Its packets must go from this host's
// address to hosts of its own network only. Pure; any thread.
#pragma once

#include "base/result.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// The row, completed with the fields that the process may not choose: the source address of
// packets.
base::Result<unisono_nic_row> checked_row(const unisono_nic_row& asked, const nic::Served& served);

}  // namespace unisono::daemon

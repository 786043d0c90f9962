// SPDX-License-Identifier: BSD-3-Clause
// A rank that is a client of its host's daemon, for tests: an allreduce of all hosts, many times.
#pragma once

#include <cstdint>
#include <string>

#include "nic/program/tables.h"

namespace unisono::nic::test {

inline constexpr unisono_nic_id kReduceId = {99, 1};  // of its group
inline constexpr std::uint64_t kReductions = 200;

// Each rank gives its number + ten times the operation's. 0: all sums were right. Ranks tell each
// other that they are there by files beside the socket.
int reduce_as(const std::string& path, int rank);

}  // namespace unisono::nic::test

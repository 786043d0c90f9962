// SPDX-License-Identifier: BSD-3-Clause
// A sleep on descriptors. Any thread.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace unisono::network {

// Sleeps until one of them is readable (-1: there is none), or the time is over; at most a second.
// Bit i: the i-th is readable.
unsigned sleep_on(std::initializer_list<int> descriptors, std::int64_t timeout_ns);

}  // namespace unisono::network

// SPDX-License-Identifier: BSD-3-Clause
// Counts and indices of schedules are signed, those of the standard library are not. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::base {

// The number must not be negative.
constexpr std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace unisono::base

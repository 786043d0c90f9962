// SPDX-License-Identifier: BSD-3-Clause
// Failure: how a communicator tells all its members, in shared memory, that it cannot go on, why,
// and from which operation on. The first to find out writes; the others read. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace unisono::group {

struct alignas(64) FailureRecord {
  std::atomic<std::uint32_t> state;  // 0: none, 1: being written, 2: there
  std::int32_t code;
  std::uint64_t index;  // the first operation that fails
  char text[496];       // ends with a zero
};

struct Failure {
  std::uint64_t index = 0;
  base::Error error;
};

// False if another failure was there before.
bool report_failure(FailureRecord& record, const Failure& failure);
std::optional<Failure> read_failure(const FailureRecord& record);

}  // namespace unisono::group

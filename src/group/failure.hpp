// SPDX-License-Identifier: BSD-3-Clause
// Failure: how a communicator tells all its members, in shared memory, that it cannot go on, why,
// and from which operation on. The first to find out writes why; who finds that an earlier
// operation fails too lowers the number. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace unisono::group {

struct alignas(64) FailureRecord {
  std::atomic<std::uint32_t> state;  // of the text; 0: none, 1: being written, 2: there
  std::int32_t code;
  std::uint64_t cause;             // the operation that the text is about
  std::atomic<std::uint64_t> end;  // the first operation that fails, plus 1; 0: none
  char text[488];                  // ends with a zero
};

struct Failure {
  std::uint64_t index = 0;  // the first operation that fails
  base::Error error;
  std::uint64_t cause = index;  // the operation that the error is about
};

// False if it was known before that operation `failure.index` fails.
bool report_failure(FailureRecord& record, const Failure& failure);
std::optional<Failure> read_failure(const FailureRecord& record);

}  // namespace unisono::group

// SPDX-License-Identifier: BSD-3-Clause
// Reading call records (size_queue.hpp), which their owners may be writing. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/size_queue.hpp"

namespace unisono::engine {

// A call record as it was at one moment.
struct RecordCopy {
  std::uint64_t sequence = 0, index = 0;
  std::int64_t count = 0;
  std::uint32_t digest = 0;
  std::int32_t root = 0, type = 0, op = 0, collective = 0;
};

// nullopt while its owner writes.
std::optional<RecordCopy> read_record(const CallRecord& record);
// The records of a rank that are still there.
std::vector<RecordCopy> read_records(const SizeQueue& size_queue, int rank);

}  // namespace unisono::engine

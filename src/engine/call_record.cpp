// SPDX-License-Identifier: BSD-3-Clause
#include "engine/call_record.hpp"

namespace unisono::engine {

std::optional<RecordCopy> read_record(const CallRecord& record) {
  constexpr auto acquire = std::memory_order_acquire;
  const std::uint64_t before = record.sequence.load(acquire);
  const RecordCopy copy{before,
                        record.index.load(acquire),
                        record.count.load(acquire),
                        record.digest.load(acquire),
                        record.root.load(acquire),
                        record.type.load(acquire),
                        record.op.load(acquire),
                        record.collective.load(acquire)};
  if (before == 0 || record.sequence.load(acquire) != before) return std::nullopt;
  return copy;
}

std::vector<RecordCopy> read_records(const SizeQueue& size_queue, int rank) {
  std::vector<RecordCopy> records;
  for (int c = 0; c < size_queue.geometry().slot_indexes; ++c) {
    const auto copy = read_record(size_queue.record(static_cast<std::uint64_t>(c), rank));
    if (copy) records.push_back(*copy);
  }
  return records;
}

}  // namespace unisono::engine

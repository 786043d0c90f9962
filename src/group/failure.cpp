// SPDX-License-Identifier: BSD-3-Clause
#include "group/failure.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::group {

bool report_failure(FailureRecord& record, const Failure& failure) {
  std::uint32_t none = 0;
  if (!record.state.compare_exchange_strong(none, 1, std::memory_order_acquire)) return false;
  record.code = static_cast<std::int32_t>(failure.error.code);
  record.index = failure.index;
  const std::size_t length = std::min(failure.error.message.size(), sizeof record.text - 1);
  std::memcpy(record.text, failure.error.message.data(), length);
  record.text[length] = '\0';
  record.state.store(2, std::memory_order_release);
  return true;
}

std::optional<Failure> read_failure(const FailureRecord& record) {
  if (record.state.load(std::memory_order_acquire) != 2) return std::nullopt;
  return Failure{record.index, {static_cast<base::Code>(record.code), record.text}};
}

}  // namespace unisono::group

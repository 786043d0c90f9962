// SPDX-License-Identifier: BSD-3-Clause
#include "job/failure_record.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::job {
namespace {

// False if it was as low already.
bool lower_end(std::atomic<std::uint64_t>& word, std::uint64_t end) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen == 0 || end < seen) {
    if (word.compare_exchange_weak(seen, end, std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace

bool report_failure(FailureRecord& record, const Failure& failure) {
  std::uint32_t none = 0;
  if (record.state.compare_exchange_strong(none, 1, std::memory_order_acquire)) {
    record.code = static_cast<std::int32_t>(failure.error.code);
    record.cause = failure.index;
    record.rank = failure.rank;
    const std::size_t length = std::min(failure.error.message.size(), sizeof record.text - 1);
    std::memcpy(record.text, failure.error.message.data(), length);
    record.text[length] = '\0';
    lower_end(record.end, failure.index + 1);
    record.state.store(2, std::memory_order_release);
    return true;
  }
  return lower_end(record.end, failure.index + 1);
}

void report_left(FailureRecord& record, std::uint64_t index) {
  lower_end(record.left_end, index + 1);
}

bool claim_passing_on(FailureRecord& record, std::uint64_t index) {
  return lower_end(record.passed_on, index + 1);
}

std::optional<Failure> read_failure(const FailureRecord& record) {
  if (record.state.load(std::memory_order_acquire) != 2) return std::nullopt;
  const std::uint64_t end = record.end.load(std::memory_order_acquire);
  return Failure{end - 1,
                 {static_cast<base::Code>(record.code), record.text},
                 record.cause,
                 static_cast<int>(record.rank)};
}

bool is_being_reported(const FailureRecord& record) {
  return record.state.load(std::memory_order_acquire) == 1;
}

FailureNotice::Text notice_text(const Failure& failure) {
  FailureNotice::Text text{};
  text.code = static_cast<std::int32_t>(failure.error.code);
  text.rank = failure.rank;
  text.cause = failure.cause;
  failure.error.message.copy(text.text, sizeof text.text - 1);
  return text;
}

std::optional<Failure> read_notice(const FailureNotice& notice) {
  if (notice.ends[0].load(std::memory_order_acquire) == 0) return std::nullopt;
  std::uint64_t end = 0;
  for (const auto& word : notice.ends) {
    const std::uint64_t reported = word.load(std::memory_order_acquire);
    if (reported != 0 && (end == 0 || reported < end)) end = reported;
  }
  const FailureNotice::Text& text = notice.text;
  return Failure{end - 1, {static_cast<base::Code>(text.code), text.text}, text.cause, text.rank};
}

}  // namespace unisono::job

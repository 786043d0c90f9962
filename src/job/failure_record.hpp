// SPDX-License-Identifier: BSD-3-Clause
// Failure: a communicator's report to all its members that it cannot go on, why, and from which
// operation on. Members of a host share a record in memory; others get notices. The first rank that
// finds a failure writes the reason. A rank that finds that an earlier operation fails too lowers
// the number. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace unisono::job {

struct alignas(64) FailureRecord {
  std::atomic<std::uint32_t> state;  // of the text; 0: none, 1: being written, 2: complete
  std::int32_t code;
  std::uint64_t cause;                   // the operation that the text is about
  std::int64_t rank;                     // as Failure::rank
  std::atomic<std::uint64_t> end;        // the first operation that fails, plus 1; 0: none
  std::atomic<std::uint64_t> passed_on;  // as end: the value that other hosts have been informed of
  std::atomic<std::uint64_t> left_end;   // as end: the first that a member left unfinished
  char text[464];                        // ends with a zero
};

// The report of a rank of another host; it is written by puts. Text and numbers are there when the
// first of the ends is, which a later one may overtake. A rank reports again when it finds that an
// earlier operation fails. If it does so too often, the last report is about all operations.
inline constexpr int kMostReports = 4;
struct alignas(64) FailureNotice {
  struct Text {
    std::int32_t code;
    std::int32_t rank;  // as Failure::rank
    std::uint64_t cause;
    char text[432];  // ends with a zero
  };
  std::atomic<std::uint64_t> ends[kMostReports];  // as FailureRecord::end
  Text text;
};

struct Failure {
  std::uint64_t index = 0;  // the first operation that fails
  base::Error error;
  std::uint64_t cause = index;  // the operation that the error is about
  int rank = -1;                // the member that is the cause; -1: not a single one, or unknown
};

// False if it was known before that operation `failure.index` fails.
bool report_failure(FailureRecord& record, const Failure& failure);
std::optional<Failure> read_failure(const FailureRecord& record);
// A member ends the communicator, and operation `index` will not be completed by it. That fails
// only for those who need its part.
void report_left(FailureRecord& record, std::uint64_t index);
// Whether the caller is the one of its host that tells other hosts that operation `index` fails.
bool claim_passing_on(FailureRecord& record, std::uint64_t index);
// A rank has begun to write one: read_failure finds it soon, if that rank lives.
bool is_being_reported(const FailureRecord& record);
FailureNotice::Text notice_text(const Failure& failure);
std::optional<Failure> read_notice(const FailureNotice& notice);

}  // namespace unisono::job

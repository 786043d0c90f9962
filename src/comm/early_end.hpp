// SPDX-License-Identifier: BSD-3-Clause
// EarlyEnd: why a call has ended that waits for other ranks without an operation (a shrink, a
// query), before it was complete: the time limit of operations, a deadline of the front end, or an
// interrupt by the application. Such an end is this rank's alone. A value; any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/text.hpp"

namespace unisono::comm {

class EarlyEnd {
 public:
  static EarlyEnd after(std::int64_t limit_ns) {
    return {base::Code::timeout, fmt::format("was not complete after {} (UNISONO_TIMEOUT)",
                                             base::format_time_ns(limit_ns))};
  }
  static EarlyEnd at_deadline() {
    return {base::Code::timeout, "was not complete at this rank's deadline"};
  }
  static EarlyEnd by_interrupt() { return {base::Code::cancelled, "was interrupted"}; }

  // `call`: the rank and its call. `missing`: for whom it waited, as a clause.
  base::Error error(const std::string& call, const std::string& missing) const {
    return {code_, fmt::format("{} {}: {}", call, what_, missing)};
  }

 private:
  EarlyEnd(base::Code code, std::string what) : code_(code), what_(std::move(what)) {}

  base::Code code_;
  std::string what_;
};

}  // namespace unisono::comm

// SPDX-License-Identifier: BSD-3-Clause
#include "wait/core_contention.hpp"

#include <algorithm>

namespace unisono::wait {

void CoreContention::lost_slice(std::int64_t from_ns, std::int64_t to_ns,
                                std::int64_t thread_time_ns) {
  const std::int64_t slice_ns = to_ns - from_ns;
  const std::int64_t since_ns = from_ns - last_slice_ns_.get();
  std::int64_t slices = 1, lost_ns = slice_ns, away_ns = slice_ns, worked_ns = 0;
  if (since_ns <= kMemoryNs) {
    slices += slices_.get();
    lost_ns += lost_ns_.get();
    away_ns = away_ns_.get();
    // Work during assumed contention does not count, nor that of another thread.
    const std::int64_t time_ns = thread_time_ns - thread_time_ns_.get();
    worked_ns = worked_ns_.get() + std::max<std::int64_t>(std::min(time_ns, since_ns), 0);
  }
  // The others may have worked as long as this rank. Short yields account for a part of that.
  const std::int64_t others_ns =
      std::max<std::int64_t>(other_ranks_.get() * worked_ns - (away_ns - lost_ns), 0);
  if (slices >= kSlices && lost_ns >= away_ns / 2 && lost_ns > kWorkOfOthers * others_ns) {
    assume(slices > kSlices, to_ns);
    last_slice_ns_.set(until_ns_.get());
  } else {
    if (!is_there(to_ns)) hold_ns_.set(0);
    last_slice_ns_.set(to_ns);
  }
  if (away_ns > kWindowNs) {
    lost_ns /= 2;
    away_ns /= 2;
    worked_ns /= 2;
  }
  slices_.set(slices);
  lost_ns_.set(lost_ns);
  away_ns_.set(away_ns);
  thread_time_ns_.set(thread_time_ns);
  worked_ns_.set(worked_ns);
}

void CoreContention::count_late(std::int64_t late_ns, std::int64_t now_ns) {
  if (is_there(now_ns)) return;
  const bool again = hold_ns_.get() != 0 && now_ns - until_ns_.get() < kAgainNs;
  // From the end of assumed contention on, time counts against it.
  const std::int64_t since_ns = now_ns - std::max(last_late_ns_.get(), until_ns_.get());
  std::int64_t sum_ns = late_ns_.get() - since_ns / kShareOfTime;
  // Soon after its end one slice is enough, but not if there was none for long enough before it.
  if (!again) sum_ns = std::max<std::int64_t>(sum_ns, 0);
  sum_ns += std::min(late_ns, kMostLateNs);
  last_late_ns_.set(now_ns);
  late_ns_.set(sum_ns);
  if (sum_ns < (again ? kSliceNs : kLateNs)) return;
  assume(again, now_ns);
  late_ns_.set(0);
}

void CoreContention::assume(bool again, std::int64_t now_ns) {
  const std::int64_t before_ns = hold_ns_.get();
  const bool grows = again && before_ns != 0;
  const std::int64_t hold_ns = grows ? std::min(2 * before_ns, kLongestHoldNs) : kHoldNs;
  hold_ns_.set(hold_ns);
  until_ns_.set(now_ns + hold_ns);
}

}  // namespace unisono::wait

// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/single_calls.hpp"

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "bench/measure/cpu_clock.hpp"

namespace unisono::tools::bench {

std::vector<double> SingleCalls::times_us() const {
  std::vector<double> times;
  times.reserve(enter_ns.size());
  for (std::size_t i = 0; i < enter_ns.size(); ++i) {
    times.push_back(static_cast<double>(leave_ns[i] - enter_ns[i]) * 1e-3);
  }
  return times;
}

base::Result<double> SingleCalls::mean_cpu_us(const Place& place) const {
  std::vector<std::int64_t> spent{cpu_ns};
  UNISONO_TRY(combine(place, spent, UNISONO_SUM));
  const auto calls = static_cast<std::int64_t>(enter_ns.size()) * place.ranks;
  return calls == 0 ? 0 : static_cast<double>(spent[0]) * 1e-3 / static_cast<double>(calls);
}

base::Result<SingleCalls> call_singly(const Place& place, Cell& cell, std::int64_t calls,
                                      std::int64_t& phase) {
  SingleCalls done;
  for (auto* list : {&done.enter_ns, &done.leave_ns}) {
    list->reserve(static_cast<std::size_t>(calls));
  }
  std::int64_t shortest_reading_ns = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t i = 0; i < calls; ++i, ++phase) {
    cell.prepare(0, phase);
    UNISONO_TRY(to_status(unisono_barrier(place.measured)));
    const std::int64_t reading_ns = read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t cpu_start_ns = read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::int64_t enter_ns = base::now_ns();
    const int code = cell.call(0);
    const std::int64_t leave_ns = base::now_ns();
    done.cpu_ns += read_cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start_ns;
    shortest_reading_ns = std::min(shortest_reading_ns, cpu_start_ns - reading_ns);
    UNISONO_TRY(to_status(code));
    done.enter_ns.push_back(enter_ns);
    done.leave_ns.push_back(leave_ns);
    done.wrong += cell.wrong(0, phase);
  }
  if (calls > 0) done.cpu_ns = std::max<std::int64_t>(0, done.cpu_ns - calls * shortest_reading_ns);
  return done;
}

}  // namespace unisono::tools::bench

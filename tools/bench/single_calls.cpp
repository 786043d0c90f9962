// SPDX-License-Identifier: BSD-3-Clause
#include "bench/single_calls.hpp"

#include "base/clock.hpp"

namespace unisono::tools::bench {

std::vector<double> SingleCalls::times_us() const {
  std::vector<double> times;
  times.reserve(enter_ns.size());
  for (std::size_t i = 0; i < enter_ns.size(); ++i) {
    times.push_back(static_cast<double>(leave_ns[i] - enter_ns[i]) * 1e-3);
  }
  return times;
}

base::Result<SingleCalls> call_singly(const Place& place, Cell& cell, std::int64_t calls,
                                      std::int64_t& phase) {
  SingleCalls done;
  for (auto* list : {&done.enter_ns, &done.leave_ns}) {
    list->reserve(static_cast<std::size_t>(calls));
  }
  for (std::int64_t i = 0; i < calls; ++i, ++phase) {
    cell.prepare(0, phase);
    UNISONO_TRY(to_status(unisono_barrier(place.measured)));
    const std::int64_t enter_ns = base::now_ns();
    const int code = cell.call(0);
    const std::int64_t leave_ns = base::now_ns();
    UNISONO_TRY(to_status(code));
    done.enter_ns.push_back(enter_ns);
    done.leave_ns.push_back(leave_ns);
    done.wrong += cell.wrong(0, phase);
  }
  return done;
}

}  // namespace unisono::tools::bench

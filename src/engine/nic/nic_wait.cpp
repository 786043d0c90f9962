// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"

namespace unisono::engine {

using namespace nic_patience;

base::Status run_in_nic(NicGroup& group, const plan::NicCall& call, const void* input, void* output,
                        std::int64_t deadline_ns) {
  UNISONO_TRY(group.start(call, input, output));
  std::int64_t sleep_ns = kFirstSleep;
  for (int turn = 0;; ++turn) {
    UNISONO_ASSIGN(const bool done, group.poll());
    if (done) return group.take();
    if (turn < kSpins) continue;
    if (turn < kSpins + kYields) {
      std::this_thread::yield();
      continue;
    }
    UNISONO_TRY(group.repair());
    const std::int64_t now = base::now_ns();
    if (now >= deadline_ns) {
      return group.give_up(
          {base::Code::timeout, fmt::format("NIC path: {} in time", group.describe())});
    }
    group.sleep(std::min(sleep_ns, deadline_ns - now));
    sleep_ns = std::min(2 * sleep_ns, kLongestSleep);
  }
}

}  // namespace unisono::engine

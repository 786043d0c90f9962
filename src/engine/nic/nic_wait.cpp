// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "engine/nic/nic_patience.hpp"
#include "wait/wait_until.hpp"

namespace unisono::engine {

using namespace nic_patience;

base::Status run_in_nic(NicGroup& group, const plan::NicCall& call, const void* input, void* output,
                        std::int64_t deadline_ns) {
  NicFlight* flight = nullptr;
  std::optional<base::Status> result;
  const auto turn = [&] {
    if (result) return true;
    if (flight == nullptr) {
      if (!group.may_start(call)) return false;
      const base::Result<NicFlight*> started = group.start(call, input, output);
      if (!started) {
        result = started.error();
        return true;
      }
      flight = *started;
    }
    const base::Result<bool> done = group.poll(*flight);
    if (!done) {
      result = done.error();
    } else if (*done) {
      result = group.take(*flight);
    }
    return result.has_value();
  };
  std::int64_t sleep_ns = kFirstSleep;
  const auto sleep = [&] {
    const std::int64_t now = base::now_ns();
    NicFlight& awaited = flight != nullptr ? *flight : group.oldest();
    if (const base::Status repaired = group.repair(); !repaired) {
      result = repaired;
    } else if (now >= deadline_ns) {
      result = group.give_up(
          {base::Code::timeout, fmt::format("NIC path: {} in time", awaited.describe())});
    } else {
      group.sleep(awaited, std::min(sleep_ns, deadline_ns - now));
      sleep_ns = std::min(2 * sleep_ns, kLongestSleep);
    }
    return false;
  };
  wait::CoreContention contention;
  wait::Waiter waiter({.short_slices = wait::ShortSlices::never}, contention);
  wait::wait_until(
      waiter, turn, [] { return false; }, sleep);
  return *result;
}

}  // namespace unisono::engine

// SPDX-License-Identifier: BSD-3-Clause
// Silence: how long a rank of another host may leave questions unanswered. A network can be out for
// some seconds (a virtual machine moves, a switch learns a new spanning tree). So a silent rank is
// suspected first, which is logged, and declared lost later. A process whose end its own host sees
// is not silent but dead, and lost at once (liveness.hpp). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/settings/settings.hpp"

namespace unisono::job {

struct SilenceLimits {
  std::int64_t suspect_ns = 0;  // at least half of lost_ns before it
  std::int64_t lost_ns = 0;

  static SilenceLimits of(const base::Settings& settings) {
    const std::int64_t lost_ns = settings.time_ns(base::Setting::detect_timeout_hosts);
    return {.suspect_ns = std::min(settings.time_ns(base::Setting::detect_timeout), lost_ns / 2),
            .lost_ns = lost_ns};
  }
};

}  // namespace unisono::job

// SPDX-License-Identifier: BSD-3-Clause
// RetryTimer: when to request a missing packet, or request it again. The first delay is drawn at
// random from [first, 2 first), so that many ranks that lack the same do not ask at once. Each
// further one is twice as long, up to a limit. Knows no clock: time is a parameter. A value type;
// one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/prng.hpp"

namespace unisono::reliable {

struct RetryDelays {
  std::int64_t first_ns = 0;
  std::int64_t most_ns = 0;
};

class RetryTimer {
 public:
  // From now on, if it does not run yet.
  void start(std::int64_t now_ns, const RetryDelays& delays, base::Prng& prng) {
    if (runs_) return;
    delay_ns_ = delays.first_ns;
    begin(now_ns, prng);
  }
  void stop() { runs_ = false; }
  // After it was due: the next, longer delay.
  void again(std::int64_t now_ns, const RetryDelays& delays, base::Prng& prng) {
    delay_ns_ = std::min(2 * delay_ns_, std::max(delays.most_ns, delays.first_ns));
    begin(now_ns, prng);
  }

  bool runs() const { return runs_; }
  bool is_due(std::int64_t now_ns) const { return runs_ && now_ns >= deadline_ns_; }
  std::int64_t deadline_ns() const { return deadline_ns_; }

 private:
  void begin(std::int64_t now_ns, base::Prng& prng) {
    runs_ = true;
    const auto spread = static_cast<std::uint64_t>(std::max<std::int64_t>(delay_ns_, 1));
    deadline_ns_ = now_ns + delay_ns_ + static_cast<std::int64_t>(prng.below(spread));
  }

  bool runs_ = false;
  std::int64_t delay_ns_ = 0;
  std::int64_t deadline_ns_ = 0;
};

}  // namespace unisono::reliable

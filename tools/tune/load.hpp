// SPDX-License-Identifier: BSD-3-Clause
// Load: whether other programs, or the host of a virtual machine, took so much of the processors
// during a measurement that its times are theirs, too. Decided from the kernel's processor times
// and from the spread of the samples. Control path; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "topology/cores.hpp"

namespace unisono::tools::tune {

// Times of the usable cores since the machine's start, in seconds.
struct CoreTimes {
  double busy_s = 0;    // by any program
  double stolen_s = 0;  // by the host of this virtual machine

  bool operator==(const CoreTimes&) const = default;
};
// From the text of /proc/stat; nullopt if it does not name one of these cores.
std::optional<CoreTimes> parse_core_times(std::string_view text, const topology::UsableCores& cores,
                                          double ticks_per_second);

// A moment of a measurement; times are seconds since fixed points.
struct Moment {
  std::optional<CoreTimes> cores;  // none: the kernel does not tell
  double own_s = 0;  // of this process and the children that it has waited for, on all cores
  double wall_s = 0;
};
Moment moment_now();

// The limits: shares of the usable cores' time, and of a sample's time.
inline constexpr double kMostForeign = 0.1, kMostSpread = 0.5;
// A virtual processor that sleeps is woken by its host, and the time that this takes is counted as
// stolen, too. So parts of the measurement that sleep may have more, if their samples agree.
inline constexpr double kMostStolen = 0.25, kMostSpreadOfStolen = 0.2;

// Why the times between two moments are not of this process alone; empty: nothing says so.
// `spreads` are those of the samples in between: half their range over their median.
std::string why_disturbed(const Moment& begin, const Moment& end, int cores,
                          std::span<const double> spreads);

}  // namespace unisono::tools::tune

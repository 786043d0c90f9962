// SPDX-License-Identifier: BSD-3-Clause
// Noise: times at which the system takes a rank's core away (detours), as a trace that repeats.
// Each rank begins at a place of its own in it. Detours at fixed distances, at random ones and
// measured ones are all such traces. A value; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sim/program/program.hpp"

namespace unisono::sim {

class Noise {
 public:
  // None.
  Noise() = default;
  // A detour of `length` every `period`.
  static base::Result<Noise> fixed(Time period, Time length);
  // Detours of `length` at exponential distances, `period` on average.
  static base::Result<Noise> random(Time period, Time length, std::uint64_t seed);
  // Lines "start length" in nanoseconds, ascending; # begins a comment. It repeats after the last
  // detour's end. Damaged text is refused with file, line and what was expected.
  static base::Result<Noise> parse(std::string_view text, std::string_view file);

  bool given() const { return !detours_.empty(); }
  Time period() const { return period_; }
  double share() const;  // of the time that detours take

  // When work that begins at `start` and takes `work` of the core ends, for a rank whose trace is
  // ahead by `offset`.
  Time end_of(Time start, Time work, Time offset) const;

 private:
  struct Detour {
    Time start = 0, length = 0;
  };
  static base::Result<Noise> of(std::vector<Detour> detours, Time period);

  std::vector<Detour> detours_;  // ascending, apart from each other
  Time period_ = 0;
};

}  // namespace unisono::sim

// SPDX-License-Identifier: BSD-3-Clause
// CarryOn: a function of the library's caller that a waiting rank calls now and then, so that the
// caller's own communication goes on meanwhile. A rank that waits in a collective then holds up no
// rank that waits for it elsewhere, for instance in MPI_Ssend. A value.
#pragma once

#include <cstdint>

namespace unisono::wait {

struct CarryOn {
  // Often enough for long messages in many parts, and rare beside a look at a flag.
  static constexpr std::uint32_t kTurns = 64;
  // A sleeping rank wakes up for it, at first soon, then more and more rarely.
  static constexpr std::int64_t kFirstSleepNs = 50'000;
  static constexpr std::int64_t kLongestSleepNs = 1'000'000;

  void (*function)(void* user) = nullptr;  // null: there is none
  void* user = nullptr;

  explicit operator bool() const { return function != nullptr; }
  void operator()() const { function(user); }
};

}  // namespace unisono::wait

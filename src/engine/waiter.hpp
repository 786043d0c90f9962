// SPDX-License-Identifier: BSD-3-Clause
// Waiter: what a blocked rank does next: spin while the answer may come at once, then spin and give
// the core away by turns (the scheduler may have put the awaited rank on this core, cores enough or
// not), then sleep. With more ranks than cores it never spins. One Waiter per wait; a value.
#pragma once

#include <cstdint>

namespace unisono::engine {

struct WaitPolicy {
  std::int64_t spin_ns = 2'000;
  std::int64_t yield_ns = 450'000;  // together below 1 ms, after which an idle rank uses no core

  static WaitPolicy for_ranks(bool oversubscribed, std::int64_t spin_setting_ns);
};

class Waiter {
 public:
  explicit Waiter(const WaitPolicy& policy) : policy_(policy) {}

  enum class Next : std::uint8_t { spin, yield, sleep };
  Next next();
  // After a sleep: what woke the rank may be followed by more.
  void woken() { started_ns_ = 0; }

 private:
  WaitPolicy policy_;
  std::int64_t started_ns_ = 0;
  int spins_ = 0;
};

// One pause of a spinning core.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace unisono::engine

// SPDX-License-Identifier: BSD-3-Clause
#include "tune/probes/memory_probes.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "arith/kernel.hpp"
#include "tune/probes/bound_thread.hpp"

namespace unisono::tools::tune {
namespace {

using Flag = std::atomic<std::int32_t>;  // a futex

// Not those of std::atomic: they spin for a while first, so that a partner that is quick enough
// would never sleep.
void sleep_while(Flag& flag, std::int32_t value) {
  syscall(SYS_futex, &flag, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(Flag& flag) { syscall(SYS_futex, &flag, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

// As the library waits: spinning, then yielding, so that threads on one core make progress.
constexpr int kSpins = 2000;

// Whether the flag came; false if it was told to stop.
bool await(const Flag& flag, std::int32_t value, int spins) {
  for (int i = 0;; ++i) {
    const std::int32_t now = flag.load(std::memory_order_acquire);
    if (now == value) return true;
    if (now < 0) return false;
    if (i >= spins) sched_yield();
  }
}

// A partner thread that answers each flag, and the two buffers between them.
class Partner {
 public:
  // At a place among the cores that the calling thread may use; the caller is at place 0.
  Partner(std::int64_t bytes, int spins, bool sleeps, int place)
      : bytes_(static_cast<std::size_t>(bytes)),
        spins_(spins),
        sleeps_(sleeps),
        there_(bytes_),
        back_(bytes_),
        own_(bytes_),
        usable_(BoundThread::usable()),
        bound_(usable_, 0),
        thread_([this, place] {
          const BoundThread bound(usable_, place);
          answer();
        }) {}
  ~Partner() {
    post(to_, -1);
    thread_.join();
  }

  void round_trips(std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) {
      ++number_;
      std::memcpy(there_.data(), own_.data(), bytes_);
      post(to_, number_);
      see(from_, number_);
      std::memcpy(own_.data(), back_.data(), bytes_);
    }
  }

 private:
  void post(Flag& flag, std::int32_t value) const {
    flag.store(value, std::memory_order_release);
    if (sleeps_) wake(flag);
  }
  bool see(Flag& flag, std::int32_t value) const {
    if (!sleeps_) return await(flag, value, spins_);
    for (;;) {
      const std::int32_t now = flag.load(std::memory_order_acquire);
      if (now == value) return true;
      if (now < 0) return false;
      sleep_while(flag, now);
    }
  }
  void answer() {
    std::vector<std::byte> own(bytes_);
    for (std::int32_t number = 1; see(to_, number); ++number) {
      std::memcpy(own.data(), there_.data(), bytes_);
      std::memcpy(back_.data(), own.data(), bytes_);
      post(from_, number);
    }
  }

  std::size_t bytes_;
  int spins_;
  bool sleeps_;
  std::vector<std::byte> there_, back_, own_;
  alignas(64) Flag to_{0};
  alignas(64) Flag from_{0};
  std::int32_t number_ = 0;
  cpu_set_t usable_;
  BoundThread bound_;
  std::thread thread_;
};

Sample half(Sample whole) { return {whole.ns / 2, whole.plus_minus / 2}; }

}  // namespace

Sample flight(std::int64_t bytes, std::int64_t budget_ns) {
  Partner partner(bytes, kSpins, false, 1);
  return half(sample(budget_ns, [&](std::int64_t calls) { partner.round_trips(calls); }));
}

Sample sending(std::int64_t bytes, std::int64_t budget_ns) {
  std::vector<std::byte> from(static_cast<std::size_t>(bytes)), to(from.size());
  Flag flag{0};
  return sample(budget_ns, [&](std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) {
      std::memcpy(to.data(), from.data(), from.size());
      flag.store(static_cast<std::int32_t>(i), std::memory_order_release);
    }
  });
}

Sample copying(std::int64_t bytes, std::int64_t budget_ns) { return sending(bytes, budget_ns); }

Sample combining(arith::Operator op, arith::Type type, std::int64_t bytes, std::int64_t budget_ns) {
  // Zero bytes are a number of every type.
  std::vector<std::byte> left(static_cast<std::size_t>(bytes)), right(left.size());
  const arith::Kernel kernel = arith::find_kernel(op, type);
  const auto count = bytes / static_cast<std::int64_t>(arith::type_size(type));
  return sample(budget_ns, [&](std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) {
      kernel(left.data(), left.data(), right.data(), count, nullptr);
    }
  });
}

Sample handing_over(std::int64_t budget_ns) {
  Partner partner(0, 0, false, 0);
  return half(sample(budget_ns, [&](std::int64_t calls) { partner.round_trips(calls); }));
}

Sample waking_up(std::int64_t budget_ns) {
  Partner partner(0, 0, true, 1);
  return half(sample(budget_ns, [&](std::int64_t calls) { partner.round_trips(calls); }));
}

}  // namespace unisono::tools::tune

// SPDX-License-Identifier: BSD-3-Clause
// Disturbance: stops its thread for a while again and again, wherever it is, as a kernel does that
// gives the core to others. A timer sends the thread a signal, and the handler sleeps. So steps
// that follow one another at once in most runs have others in between. One for a thread. For tests
// only.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace unisono::test::programs {

class Disturbance {
 public:
  // After each stop the thread has up to `most_us` and at least a quarter of it for itself. A stop
  // is a third as long.
  explicit Disturbance(long most_us) {
    most_us_ = most_us;
    struct sigaction action {};
    action.sa_handler = &stop;
    action.sa_flags = SA_RESTART;
    sigaction(kSignal, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal;
    event._sigev_un._tid = static_cast<int>(syscall(SYS_gettid));
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
      throw std::system_error(errno, std::generic_category(), "timer_create");
    }
    is_on_ = true;
    wind_up();
  }
  ~Disturbance() {
    is_on_ = false;
    timer_delete(timer_);
  }
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

 private:
  static constexpr int kSignal = SIGURG;  // ignored by default, should one come late

  static long draw(long most) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return 1 + static_cast<long>((state_ >> 33) % static_cast<std::uint64_t>(most));
  }
  static void wind_up() {
    const itimerspec times{{0, 0}, {0, (most_us_ / 4 + draw(most_us_ * 3 / 4)) * 1000}};
    timer_settime(timer_, 0, &times, nullptr);
  }
  static void stop(int) {
    const int error = errno;
    const timespec pause{0, draw(most_us_ * 333)};
    nanosleep(&pause, nullptr);
    if (is_on_) wind_up();
    errno = error;
  }

  static inline thread_local timer_t timer_{};
  static inline thread_local volatile bool is_on_ = false;
  static inline thread_local std::uint64_t state_ = 1;
  static inline thread_local long most_us_ = 1;
};

}  // namespace unisono::test::programs

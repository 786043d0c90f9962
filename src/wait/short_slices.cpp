// SPDX-License-Identifier: BSD-3-Clause
#include "wait/short_slices.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace unisono::wait {
namespace {

// The kernel's struct sched_attr in its first version, which no header of Debian 12 has.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // for ordinary policies: the slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

constexpr std::uint64_t kResetOnFork = 1;  // SCHED_FLAG_RESET_ON_FORK

bool ask() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return false;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH) return false;
  // Kernels without settable slices report 0.
  if (attributes.runtime_ns == 0) return false;
  if (attributes.runtime_ns <= static_cast<std::uint64_t>(kShortSliceNs)) return true;
  attributes.size = sizeof attributes;
  // Threads that the application starts should not inherit it. Setting the flag would reset a
  // negative nice value in them, so it is not set then.
  if (attributes.nice >= 0) attributes.flags |= kResetOnFork;
  attributes.runtime_ns = kShortSliceNs;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

bool ask_for_short_slices() {
  thread_local const bool granted = ask();
  return granted;
}

}  // namespace unisono::wait

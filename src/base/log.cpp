// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "base/life/lasting.hpp"

namespace unisono::base {
namespace {

std::atomic<LogLevel> process_level{LogLevel::warn};
thread_local int thread_rank = -1;

const std::string& host_name() {
  static const std::string& name = lasting([] {
    utsname names{};
    return uname(&names) == 0 ? std::string(names.nodename) : std::string("localhost");
  }());
  return name;
}

}  // namespace

void set_log_level(LogLevel level) { process_level.store(level, std::memory_order_relaxed); }

void set_log_rank(int rank) { thread_rank = rank; }

bool log_enabled(LogLevel level) { return level <= process_level.load(std::memory_order_relaxed); }

void write_log_line(std::string_view component, std::string_view text) {
  const std::string rank = thread_rank < 0 ? "-" : std::to_string(thread_rank);
  const std::string line =
      fmt::format("{}:{}:{} [{}] {}\n", host_name(), getpid(), rank, component, text);
  // A failed write to stderr cannot be reported anywhere.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace unisono::base

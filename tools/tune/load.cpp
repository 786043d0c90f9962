// SPDX-License-Identifier: BSD-3-Clause
#include "tune/load.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <sstream>
#include <vector>

namespace unisono::tools::tune {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// The processor time of the children that have ended and that this process has waited for.
double seconds_of_children() {
  rusage usage{};
  if (::getrusage(RUSAGE_CHILDREN, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool contains(const topology::UsableCores& cores, std::size_t core) {
  return core / 64 < cores.mask.size() && (cores.mask[core / 64] >> (core % 64) & 1) != 0;
}

// The number of a line "cpuN ..."; nullopt: it is another line.
std::optional<std::size_t> core_of(const std::string& name) {
  if (!name.starts_with("cpu") || name.size() < 4 || name.size() > 8) return std::nullopt;
  std::size_t core = 0;
  for (const char digit : name.substr(3)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    core = core * 10 + static_cast<std::size_t>(digit - '0');
  }
  return core;
}

std::optional<double> median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

}  // namespace

std::optional<CoreTimes> parse_core_times(std::string_view text, const topology::UsableCores& cores,
                                          double ticks_per_second) {
  // user, nice, system, idle, iowait, irq, softirq, steal. Guests count as users.
  enum { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal, kColumns };
  CoreTimes times;
  topology::UsableCores missing = cores;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto core = core_of(name);
    if (!core || !contains(missing, *core)) continue;
    std::array<std::uint64_t, kColumns> ticks{};
    for (std::uint64_t& each : ticks) words >> each;
    if (!words) return std::nullopt;
    missing.mask[*core / 64] &= ~(std::uint64_t{1} << (*core % 64));
    const std::uint64_t busy =
        ticks[kUser] + ticks[kNice] + ticks[kSystem] + ticks[kIrq] + ticks[kSoftIrq];
    times.busy_s += static_cast<double>(busy) / ticks_per_second;
    times.stolen_s += static_cast<double>(ticks[kSteal]) / ticks_per_second;
  }
  if (missing.mask != topology::UsableCores{}.mask) return std::nullopt;
  return times;
}

Moment moment_now() {
  Moment moment;
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();
  if (file) {
    moment.cores = parse_core_times(text.str(), topology::usable_cores(),
                                    static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  moment.own_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + seconds_of_children();
  moment.wall_s = seconds_of(CLOCK_MONOTONIC);
  return moment;
}

std::string why_disturbed(const Moment& begin, const Moment& end, int cores,
                          std::span<const double> spreads) {
  const double all_s = (end.wall_s - begin.wall_s) * cores;
  const std::optional<double> spread = median(spreads);
  if (begin.cores && end.cores && all_s > 0) {
    const double own_s = end.own_s - begin.own_s;
    const double foreign = (end.cores->busy_s - begin.cores->busy_s - own_s) / all_s;
    if (foreign > kMostForeign) {
      return fmt::format("other programs took {:.0f} % of the processor time, at most {:.0f} % may",
                         100 * foreign, 100 * kMostForeign);
    }
    const double stolen = (end.cores->stolen_s - begin.cores->stolen_s) / all_s;
    const bool agree = spread && *spread <= kMostSpreadOfStolen;
    const double most_stolen = agree ? kMostStolen : kMostForeign;
    if (stolen > most_stolen) {
      return fmt::format(
          "the host of this virtual machine took {:.0f} % of the processor time, at most {:.0f} % "
          "may",
          100 * stolen, 100 * most_stolen);
    }
  }
  if (!spread || *spread <= kMostSpread) return {};
  return fmt::format("repetitions deviate by {:.0f} % in the median, at most {:.0f} % may",
                     100 * *spread, 100 * kMostSpread);
}

}  // namespace unisono::tools::tune

// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>

#include "topology/cores.hpp"

namespace unisono::tools {
namespace {

std::string processor_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel_name() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + " " + name.release;
}

std::string compiler_name() {
#ifdef __clang__
  return __VERSION__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

Machine describe_machine() {
  return {processor_name(), static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), usable_cores(),
          kernel_name(), compiler_name()};
}

int usable_cores() {
  const topology::UsableCores cores = topology::usable_cores();
  int count = 0;
  for (const std::uint64_t word : cores.mask) count += std::popcount(word);
  // Half a core's time still runs one thread.
  if (cores.quota > 0) count = std::min(count, static_cast<int>(std::ceil(cores.quota)));
  return std::max(1, count);
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <unistd.h>

#include "topology/cores.hpp"
#include "topology/processor.hpp"

namespace unisono::tools {
namespace {

std::string compiler_name() {
#ifdef __clang__
  return __VERSION__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

Machine describe_machine() {
  return {topology::processor_name(), static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          usable_cores(), topology::kernel_name(), compiler_name()};
}

int usable_cores() { return topology::count_cores(topology::usable_cores()); }

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/quota.hpp"

#include <algorithm>

namespace unisono::daemon {
namespace {

// Descriptors of the program, its links and its maps, the listener and the standard streams. Also
// those opened for a moment, to read an interface or to refuse a connection.
constexpr std::uint64_t kOwnDescriptors = 64;

}  // namespace

Capacity Capacity::of_descriptors(std::uint64_t limit, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = UNISONO_NIC_ROWS_MAX * (2 + UNISONO_NIC_WAITERS_MAX);
  const std::uint64_t left = limit > kOwnDescriptors ? limit - kOwnDescriptors : 0;
  Capacity capacity;
  capacity.bytes = bytes;
  capacity.descriptors = static_cast<std::uint32_t>(std::min(left - left / 4, kMost));
  capacity.connections =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(left / 4, std::uint64_t{1} << 16));
  return capacity;
}

}  // namespace unisono::daemon

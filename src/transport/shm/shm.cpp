// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/shm.hpp"

#include <atomic>
#include <cstring>

namespace unisono::transport {

const Capabilities& SharedMemory::capabilities() const {
  static const Capabilities kCapabilities{
      .name = "shm", .multicast = true, .shared_windows = true, .direct = true};
  return kCapabilities;
}

void SharedMemory::put(const Put& message) {
  if (message.bytes != 0) std::memcpy(message.place, message.source, message.bytes);
  if (message.flag != nullptr) {
    std::atomic_ref(*message.flag).store(message.flag_value, std::memory_order_release);
  }
}

}  // namespace unisono::transport

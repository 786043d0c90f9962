// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/retained.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "base/log.hpp"

namespace unisono::daemon {

Retained::Retained() : watched_(epoll_create1(EPOLL_CLOEXEC)) {}

void Retained::add(std::uint32_t user, std::uint64_t bytes, const nic::GroupMaps& maps) {
  const std::uint64_t number = next_++;
  bool watches = false;
  const auto watch = [&](int descriptor) {
    epoll_event event = {};
    event.data.u64 = number;
    if (descriptor >= 0 && epoll_ctl(watched_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) {
      watches = true;
    }
  };
  watch(maps.slots);
  watch(maps.blocks);
  for (const int ring : maps.wakes) watch(ring);
  if (watches) memory_[number] = {user, bytes};
}

void Retained::refresh() {
  if (memory_.empty()) return;
  std::ifstream entries(fmt::format("/proc/self/fdinfo/{}", watched_.get()));
  if (!entries) {
    base::log(base::LogLevel::error, "unisonod",
              "/proc is not to be read: memory that processes keep after their groups have ended "
              "is not counted");
    memory_.clear();
    return;
  }
  std::set<std::uint64_t> there;
  std::string line;
  while (std::getline(entries, line)) {
    std::uint64_t number = 0;
    if (std::sscanf(line.c_str(), "tfd: %*d events: %*x data: %" SCNx64, &number) == 1) {
      there.insert(number);
    }
  }
  std::erase_if(memory_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

std::uint64_t Retained::bytes(std::uint32_t user) const {
  std::uint64_t sum = 0;
  for (const auto& [number, memory] : memory_) sum += memory.user == user ? memory.bytes : 0;
  return sum;
}

std::uint64_t Retained::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [number, memory] : memory_) sum += memory.bytes;
  return sum;
}

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
#include "network/sleep_on.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::network {
namespace {

constexpr std::int64_t kLongestSleepNs = base::kSecond;
constexpr std::size_t kMostDescriptors = 4;

}  // namespace

// A list and not an array of a fixed size: an array would fill up with 0, which is standard input.
unsigned sleep_on(std::initializer_list<int> descriptors, std::int64_t timeout_ns) {
  std::array<pollfd, kMostDescriptors> sources{};
  UNISONO_CHECK(descriptors.size() <= sources.size(), "descriptors to sleep on");
  nfds_t count = 0;
  for (const int descriptor : descriptors) sources[count++] = {descriptor, POLLIN, 0};
  const std::int64_t limit = std::clamp<std::int64_t>(timeout_ns, 0, kLongestSleepNs);
  const timespec time{.tv_sec = limit / base::kSecond, .tv_nsec = limit % base::kSecond};
  if (ppoll(sources.data(), count, &time, nullptr) <= 0) return 0;
  unsigned readable = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (sources[i].revents != 0) readable |= 1U << i;
  }
  return readable;
}

}  // namespace unisono::network

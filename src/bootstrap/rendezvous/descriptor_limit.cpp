// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/descriptor_limit.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace unisono::bootstrap {
namespace {

// For descriptors that other threads open meanwhile.
constexpr rlim_t kSpareDescriptors = 64;

}  // namespace

bool DescriptorLimit::raise() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(before + wanted_ + kSpareDescriptors, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (raised_ == 0) before_ = before;
  raised_ = limit.rlim_cur;
  base::log(base::LogLevel::info, "rendezvous",
            "raised the limit of file descriptors from {} to {} for the start", before, raised_);
  return true;
}

void DescriptorLimit::keep_room_beyond(int newest) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (static_cast<rlim_t>(newest) + kSpareDescriptors >= limit.rlim_cur) raise();
}

DescriptorLimit::~DescriptorLimit() {
  rlimit limit{};
  if (raised_ == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur != raised_) return;
  limit.rlim_cur = std::min(before_ + left_open_, raised_);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace unisono::bootstrap

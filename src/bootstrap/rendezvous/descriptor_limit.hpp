// SPDX-License-Identifier: BSD-3-Clause
// DescriptorLimit: where a process serves so many connections that file descriptors run short, it
// raises the soft limit of them (ulimit -n), as far as the hard limit goes. At its end the limit is
// as it was, and higher by the connections that stay open: the application has as many as before.
// The limit is the process': what somebody else has set meanwhile stays. Control path; any thread.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace unisono::bootstrap {

class DescriptorLimit {
 public:
  // `wanted`: how many there may have to be, beyond the limit as it is.
  explicit DescriptorLimit(std::size_t wanted) : wanted_(wanted) {}
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  // False if it is as high as it may be.
  bool raise();
  // Raises it if a new descriptor's number, which is the least free one, comes near to it.
  void keep_room_beyond(int newest);
  // So many stay open.
  void leave_open(std::size_t count) { left_open_ += count; }

 private:
  std::size_t wanted_;
  std::size_t left_open_ = 0;
  rlim_t before_ = 0;
  rlim_t raised_ = 0;  // 0: was not
};

}  // namespace unisono::bootstrap

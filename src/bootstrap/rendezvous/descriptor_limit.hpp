// SPDX-License-Identifier: BSD-3-Clause
// DescriptorLimit: raises the soft limit of file descriptors (ulimit -n), as far as the hard limit
// allows, where a process serves so many connections that descriptors run short. The destructor
// restores the limit, increased by the connections that stay open, so that the application has as
// many descriptors as before. If other code has set the limit meanwhile, its value stays. Control
// path; any thread.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace unisono::bootstrap {

class DescriptorLimit {
 public:
  // `wanted`: how many descriptors may be needed beyond the present limit.
  explicit DescriptorLimit(std::size_t wanted) : wanted_(wanted) {}
  ~DescriptorLimit();
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  // False if the limit is at its maximum.
  bool raise();
  // Raises the limit if the number of a new descriptor, the lowest free one, is close to it.
  void keep_room_beyond(int newest);
  // So many connections stay open.
  void leave_open(std::size_t count) { left_open_ += count; }

 private:
  std::size_t wanted_;
  std::size_t left_open_ = 0;
  rlim_t before_ = 0;
  rlim_t raised_ = 0;  // 0: never
};

}  // namespace unisono::bootstrap

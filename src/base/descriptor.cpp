// SPDX-License-Identifier: BSD-3-Clause
#include "base/descriptor.hpp"

#include <unistd.h>

#include <cerrno>

namespace unisono::base {

void Descriptor::reset(int number) noexcept {
  const int old = std::exchange(number_, number);
  if (old < 0) return;
  const int kept = errno;
  close(old);  // not repeated on EINTR: on Linux the number is free already
  errno = kept;
}

}  // namespace unisono::base

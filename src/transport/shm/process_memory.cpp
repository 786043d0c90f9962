// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/process_memory.hpp"

#include <sys/uio.h>

#include <cerrno>

namespace unisono::transport {

int read_process(pid_t process, std::uint64_t address, std::byte* target, std::size_t bytes) {
  while (bytes != 0) {
    const iovec local{.iov_base = target, .iov_len = bytes};
    const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
    const ssize_t read = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (read < 0) return errno;
    if (read == 0) return EFAULT;
    target += read;
    address += static_cast<std::uint64_t>(read);
    bytes -= static_cast<std::size_t>(read);
  }
  return 0;
}

}  // namespace unisono::transport

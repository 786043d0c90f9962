// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/shm.hpp"

#include <cerrno>
#include <system_error>

#include "transport/shm/process_memory.hpp"

namespace unisono::transport {

thread_local int SharedMemory::pull_errno_ = 0;

void SharedMemory::put(const Put& message) { store(message); }

bool SharedMemory::try_pull(pid_t process, std::uint64_t address, std::byte* target,
                            std::size_t bytes) {
  return read_process(process, address, target, bytes) == 0;
}

void SharedMemory::allow_pulls(std::span<const pid_t> processes) {
  processes_.assign(processes.begin(), processes.end());
  capabilities_.pull = true;
}

Pulled SharedMemory::pull(const Pull& message) {
  const pid_t process = processes_[static_cast<std::size_t>(message.source)];
  // The system call also serves ranks that are threads of this process. If an operation fails, the
  // peer's buffer may be freed already: the call reports that, a plain copy would crash.
  pull_errno_ = read_process(process, message.address, message.target, message.bytes);
  if (pull_errno_ == 0) return Pulled::done;
  return pull_errno_ == ESRCH ? Pulled::gone : Pulled::failed;
}

std::string SharedMemory::pull_error() const {
  return std::generic_category().message(pull_errno_);
}

}  // namespace unisono::transport

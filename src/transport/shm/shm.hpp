// SPDX-License-Identifier: BSD-3-Clause
// Shared memory: a put is a copy and a release store. The job's memory file is mapped once per
// process, so a receive buffer has one address for all threads of it. A pull is one copy from the
// other process's memory, where the job has found that the system allows it. Any thread.
#pragma once

#include <sys/types.h>

#include <vector>

#include "transport/transport.hpp"

namespace unisono::transport {

class SharedMemory final : public Transport {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }
  void put(const Put& message) override;
  bool try_pull(pid_t process, std::uint64_t address, std::byte* target,
                std::size_t bytes) override;
  void allow_pulls(std::span<const pid_t> processes) override;
  Pulled pull(const Pull& message) override;
  std::string pull_error() const override;
  int progress() override { return 0; }

 private:
  Capabilities capabilities_{
      .name = "shm", .multicast = true, .shared_receive_buffers = true, .direct = true};
  std::vector<pid_t> processes_;  // by rank in the job
  static thread_local int pull_errno_;
};

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// Identity of a host and of its machine, and random numbers. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace unisono::bootstrap {

using Nonce = std::array<char, 16>;  // random, used once

// The running kernel and a network namespace, which is as far as abstract Unix sockets reach. A
// hostname would not do: two hosts may share one.
using HostId = std::array<char, 16>;
// The identity of the calling thread's host and network namespace.
base::Result<HostId> own_host_id();

// The running kernel and its cores. Hosts that are network namespaces or containers of one machine
// have the same. Hosts that are virtual machines have not, so that their machine stays unknown.
struct Kernel {
  std::uint64_t id = 0;     // not 0
  std::uint32_t cores = 0;  // online, whoever may use them

  bool operator==(const Kernel&) const = default;
};
base::Result<Kernel> own_kernel();

// From the kernel's random number generator.
base::Result<Nonce> random_nonce();
base::Result<std::uint64_t> random_number();
// 32 hexadecimal digits, fit for UNISONO_JOB_KEY.
base::Result<std::string> random_job_key();

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// What the kernel has of the NIC path: programs on an interface, and the maps, programs and links
// that a process has descriptors of. For tests of what is left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace unisono::nic::test {

// How many programs look at what leaves u0 of the calling thread's host, or comes in.
int programs_on_egress();
int programs_on_ingress();
// What is attached to u0 of the calling thread's host, as `ip` and `tc` show it: "xdp", "clsact",
// and programs by number. Empty: nothing.
std::string attached_to_u0();

// By the kernel's ids, which are not used again soon.
struct KernelObjects {
  std::vector<std::uint32_t> maps;
  std::vector<std::uint32_t> programs;
  std::vector<std::uint32_t> links;
};
KernelObjects objects_of(pid_t process);
bool map_exists(std::uint32_t map);
bool any_exists(const KernelObjects& objects);

}  // namespace unisono::nic::test

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
// Detaches one of its programs from the interface, as an administrator can; in the order in which
// it has attached them: 0 looks at what comes in at first, 1 at what leaves.
bool detach_program(pid_t daemon, std::size_t number);
bool map_exists(std::uint32_t map);
// The state of a process ('S': it sleeps, 'T': it is stopped) and its parent, as /proc has them.
struct ProcessState {
  char state = 0;
  pid_t parent = -1;
};
ProcessState state_of(pid_t process);
// The one process that this one has started; -1 if there is none.
pid_t child_of(pid_t process);
// Whether a process of a group that this daemon has is to be woken: whether the bit is set by which
// the program knows that. It stays set while the process is stopped.
bool has_armed_waiter(pid_t daemon);
bool any_exists(const KernelObjects& objects);

}  // namespace unisono::nic::test

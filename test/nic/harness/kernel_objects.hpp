// SPDX-License-Identifier: BSD-3-Clause
// The kernel's objects of the NIC path: programs on an interface, and the maps, programs and links
// of which a process has descriptors. For tests of the remains.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace unisono::nic::test {

// The number of programs on u0 of the calling thread's host, for outgoing and incoming packets.
int programs_on_egress();
int programs_on_ingress();
// The attachments to u0 of the calling thread's host, as `ip` and `tc` show them: "xdp", "clsact",
// and programs by number. Empty: none.
std::string attached_to_u0();

// By the kernel's ids, which are not reused soon.
struct KernelObjects {
  std::vector<std::uint32_t> maps;
  std::vector<std::uint32_t> programs;
  std::vector<std::uint32_t> links;
};
KernelObjects objects_of(pid_t process);
// Detaches one of its programs from the interface, as an administrator can. `number`: in the order
// of attaching; 0 handles incoming packets first, 1 outgoing ones.
bool detach_program(pid_t daemon, std::size_t number);
bool map_exists(std::uint32_t map);
// The state of a process ('S': it sleeps, 'T': it is stopped) and its parent, as /proc has them.
struct ProcessState {
  char state = 0;
  pid_t parent = -1;
};
ProcessState state_of(pid_t process);
// How often the scheduler has given a core to any thread of the process and taken it away again.
std::uint64_t context_switches_of(pid_t process);
// The one process that this one has started; -1 if there is none.
pid_t child_of(pid_t process);
// Whether a process of this daemon's groups wants to be woken: its bit for the program is set. It
// stays set while the process is stopped.
bool has_armed_waiter(pid_t daemon);
bool any_exists(const KernelObjects& objects);

}  // namespace unisono::nic::test

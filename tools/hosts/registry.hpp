// SPDX-License-Identifier: BSD-3-Clause
// The sets of test hosts: a file for each in /run/unisono/hosts, locked (flock) by the set's own
// processes as long as one of them lives. A file that can be locked belongs to a dead set, whatever
// killed it; the next user removes it. Any thread; needs root.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "hosts/plan.hpp"

namespace unisono::tools {

struct HostEntry {
  std::string name;
  std::string address;
  pid_t pid = 0;  // as the set's own processes number it
};

// One set, as its file tells.
struct HostsRecord {
  std::string name;
  pid_t keeper = 0;          // process 1 of the set, as the machine numbers it
  std::uint64_t inside = 0;  // the set's pid namespace: st_ino of /proc/self/ns/pid
  std::string shape;
  std::string rate;  // "none", or as tc(8) writes it
  std::vector<HostEntry> hosts;
};

std::string format_record(const HostsRecord& record);
// nullopt if it is not whole: the set is being made.
std::optional<HostsRecord> parse_record(const std::string& name, const std::string& text);

// Takes the name for a new set: the file, empty and locked. state: the name is taken.
base::Result<base::Descriptor> claim_hosts(const std::string& name);
// Removes the file of a set that the caller has claimed.
void forget_hosts(const std::string& name);

// All that live and are complete; files of dead sets are removed.
base::Result<std::vector<HostsRecord>> list_hosts();
// The set of that name, or the only one if it is empty.
base::Result<HostsRecord> find_hosts(const std::string& name);

// Kills the set and returns when all its processes are gone.
base::Status remove_hosts(const HostsRecord& record);

}  // namespace unisono::tools

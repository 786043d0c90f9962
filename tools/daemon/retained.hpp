// SPDX-License-Identifier: BSD-3-Clause
// Retained: memory of groups that are gone, as long as a process still has it mapped or a
// descriptor of it: the kernel keeps it, so it still counts for the user who had the group.
//
// An epoll instance holds the files without owning them: the kernel takes a file off it when the
// last descriptor and mapping of that file is gone, in whatever process. Which are still there is
// what /proc says of the instance. A map that a user has pinned to a file system of its own (bpffs
// in a user namespace) is not seen; the unit's MemoryMax= bounds that. One thread.
#pragma once

#include <cstdint>
#include <map>

#include "base/descriptor.hpp"
#include "nic/memory/group_mapping.hpp"

namespace unisono::daemon {

class Retained {
 public:
  Retained();

  // A group's memory; before the daemon closes its own descriptors of it.
  void add(std::uint32_t user, std::uint64_t bytes, const nic::GroupMaps& maps);
  // Forgets what nobody has any more.
  void refresh();
  std::uint64_t bytes(std::uint32_t user) const;
  std::uint64_t bytes() const;

 private:
  struct Memory {
    std::uint32_t user = 0;
    std::uint64_t bytes = 0;
  };

  base::Descriptor watched_;  // epoll; its entries bear the numbers of this map
  std::map<std::uint64_t, Memory> memory_;
  std::uint64_t next_ = 0;
};

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
// Retained: memory of removed groups, as long as a process has it mapped or holds a descriptor of
// it. The kernel keeps that memory, so it still counts for the group's user.
//
// An epoll instance holds the files without owning them. The kernel removes a file from it when the
// last descriptor and mapping of that file is gone, in any process. /proc lists the files that
// remain. A map that a user has pinned to a file system of its own (bpffs in a user namespace) is
// not seen; the unit's MemoryMax= bounds that. One thread.
#pragma once

#include <cstdint>
#include <map>

#include "base/descriptor.hpp"
#include "nic/memory/group_mapping.hpp"

namespace unisono::daemon {

class Retained {
 public:
  Retained();

  // A group's memory; called before the daemon closes its own descriptors of it.
  void add(std::uint32_t user, std::uint64_t bytes, const nic::GroupMaps& maps);
  // Forgets memory that no process has any more.
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

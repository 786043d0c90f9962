// SPDX-License-Identifier: BSD-3-Clause
// Groups: which connection has which groups of the device, and how much each user has. A group is
// its connection's, and nobody else can remove it. Knows no sockets. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "nic/device.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// Of each user, all processes together.
struct Quota {
  std::uint32_t groups = 64;
  std::uint64_t bytes = std::uint64_t{32} << 20;
  std::uint32_t connections = 256;
};

// Who asks: the kernel's word.
struct Client {
  int connection = -1;  // names it while it lasts
  std::uint32_t user = 0;
  std::uint32_t process = 0;
};

class Groups {
 public:
  // The device outlives this.
  Groups(nic::Device& device, const Quota& quota) : device_(device), quota_(quota) {}

  // `row` has been checked (row_check.hpp). Its index.
  base::Result<std::uint32_t> join(const Client& client, const unisono_nic_row& row);
  // The index of a group that a process of the same user has. Who does not know its key is told as
  // little as if there were none.
  base::Result<std::uint32_t> share(const Client& client, const nic::Share& asked) const;
  base::Status leave(const Client& client, std::uint32_t index);
  // The connection is closed: its groups go.
  void drop(const Client& client);

  std::uint32_t count() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint64_t bytes() const;
  // What a user may still have.
  std::uint32_t groups_left(std::uint32_t user) const;
  std::uint64_t bytes_left(std::uint32_t user) const;
  // A user's; root's question is answered with those of all. At most kMostGroupLines.
  std::vector<nic::GroupLine> lines_for(std::uint32_t user) const;

 private:
  struct Group {
    Client client;
    nic::GroupLine line;
  };
  struct Share {
    std::uint32_t groups = 0;
    std::uint64_t bytes = 0;
  };
  Share share_of(std::uint32_t user) const;
  void remove(const std::vector<std::uint32_t>& gone);

  nic::Device& device_;
  const Quota quota_;
  std::map<std::uint32_t, Group> groups_;  // by index
};

}  // namespace unisono::daemon

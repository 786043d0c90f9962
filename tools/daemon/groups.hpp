// SPDX-License-Identifier: BSD-3-Clause
// Groups: the devices' groups by connection, and the resources of each user. A group belongs to its
// connection, and no other can remove it. Its resources count for its user until its device has
// released its entry and no process has its memory. Knows no sockets. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "daemon/devices.hpp"
#include "daemon/quota.hpp"
#include "daemon/retained.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

// The client's identity, from the kernel.
struct Client {
  int connection = -1;  // names it while it lasts
  std::uint32_t user = 0;
  std::uint32_t process = 0;
  std::size_t interface = 0;  // the position of the one that it has chosen
};

class Groups {
 public:
  Groups(Devices devices, const Quota& quota, const Capacity& capacity = {})
      : devices_(std::move(devices)), quota_(quota), capacity_(capacity) {}

  // On the client's interface. `row` has been checked (row_check.hpp). The group's number.
  base::Result<std::uint32_t> join(const Client& client, const unisono_nic_row& row);
  // The number of a group that a process of the same user has. A client with a wrong key gets the
  // same error as for a missing group.
  base::Result<std::uint32_t> share(const Client& client, const nic::Share& asked) const;
  base::Status leave(const Client& client, std::uint32_t number);
  // The connection is closed: its groups go.
  void drop(const Client& client);

  // The group was joined, and has not ended.
  const unisono_nic_row& row(std::uint32_t number) const { return devices_.row(number); }
  nic::GroupMaps maps(std::uint32_t number) const { return devices_.maps(number); }

  // Whether there are groups that a device could not remove; try_again() does.
  bool has_leaving() const { return !leaving_.empty(); }
  void try_again() { remove({}); }
  // Call it before each request: processes release memory without notice.
  void refresh() { retained_.refresh(); }

  std::uint32_t count() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint64_t bytes() const;
  // Memory of ended groups that processes still have; known since the last refresh().
  std::uint64_t retained_bytes() const { return retained_.bytes(); }
  // How much more a user may have.
  std::uint32_t groups_left(std::uint32_t user) const;
  std::uint64_t bytes_left(std::uint32_t user) const;
  // A user's; root's question is answered with those of all. At most kMostGroupLines.
  std::vector<nic::GroupLine> lines_for(std::uint32_t user) const;

 private:
  struct Group {
    Client client;
    nic::GroupLine line;
    std::uint32_t descriptors = 0;  // of the daemon
  };
  struct Share {
    std::uint32_t groups = 0;
    std::uint32_t descriptors = 0;
    std::uint64_t bytes = 0;
  };
  Share share_of(std::uint32_t user) const;
  // The sum over all users.
  Share whole() const;
  base::Status check_quota(std::uint32_t user, const unisono_nic_row& row) const;
  base::Status check_capacity(std::uint32_t user, const unisono_nic_row& row) const;
  void remove(const std::vector<std::uint32_t>& gone);

  const Devices devices_;
  const Quota quota_;
  const Capacity capacity_;
  std::map<std::uint32_t, Group> groups_;   // by number
  std::map<std::uint32_t, Group> leaving_;  // groups whose removal failed
  bool removal_failed_ = false;             // since the last success; logged once
  Retained retained_;
};

}  // namespace unisono::daemon

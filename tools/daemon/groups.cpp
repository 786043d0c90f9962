// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/groups.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "nic/group_mapping.hpp"

namespace unisono::daemon {

using base::Code;
using base::Error;

base::Result<std::uint32_t> Groups::join(const Client& client, const unisono_nic_row& row) {
  const Share share = share_of(client.user);
  const std::uint64_t bytes = nic::memory_bytes(row);
  if (share.groups >= quota_.groups) {
    return Error{Code::resources,
                 fmt::format("unisonod: user {} has {} groups in the NIC path, which is all that "
                             "one user may have; free communicators, or start unisonod with a "
                             "larger --groups-per-user",
                             client.user, share.groups)};
  }
  if (bytes > quota_.bytes - share.bytes) {
    return Error{
        Code::resources,
        fmt::format("unisonod: user {} has {} KiB in the NIC path and asks for {} KiB; one "
                    "user may have {} KiB; free communicators, or start unisonod with a "
                    "larger --memory-per-user",
                    client.user, share.bytes / 1024, bytes / 1024, quota_.bytes / 1024)};
  }
  UNISONO_ASSIGN(const std::uint32_t index, device_.add_group(row));
  const nic::GroupLine line = {client.user, client.process, row.id.job, row.id.communicator,
                               row.rank,    row.children,   bytes};
  groups_[index] = {client, line};
  return index;
}

base::Result<std::uint32_t> Groups::share(const Client& client, const nic::Share& asked) const {
  for (const auto& [index, group] : groups_) {
    const unisono_nic_row& row = device_.row(index);
    if (group.client.user != client.user || row.id.job != asked.id.job ||
        row.id.communicator != asked.id.communicator) {
      continue;
    }
    if (row.key.low == asked.key.low && row.key.high == asked.key.high) return index;
  }
  return Error{Code::argument, fmt::format("unisonod: user {} has no group {:08x}/{} with this key",
                                           client.user, asked.id.job, asked.id.communicator)};
}

base::Status Groups::leave(const Client& client, std::uint32_t index) {
  const auto found = groups_.find(index);
  if (found == groups_.end() || found->second.client.connection != client.connection) {
    return Error{Code::argument,
                 fmt::format("unisonod: group {} is not one of this connection's", index)};
  }
  remove(std::vector{index});
  return base::success();
}

void Groups::drop(const Client& client) {
  std::vector<std::uint32_t> own;
  for (const auto& [index, group] : groups_) {
    if (group.client.connection == client.connection) own.push_back(index);
  }
  remove(own);
}

void Groups::remove(const std::vector<std::uint32_t>& gone) {
  for (const std::uint32_t index : gone) groups_.erase(index);
  const base::Status removed = device_.remove_groups(gone);
  if (!removed.ok()) base::log(base::LogLevel::error, "unisonod", "{}", removed.error().message);
}

Groups::Share Groups::share_of(std::uint32_t user) const {
  Share share;
  for (const auto& [index, group] : groups_) {
    if (group.client.user != user) continue;
    ++share.groups;
    share.bytes += group.line.bytes;
  }
  return share;
}

std::uint32_t Groups::groups_left(std::uint32_t user) const {
  return quota_.groups - share_of(user).groups;
}

std::uint64_t Groups::bytes_left(std::uint32_t user) const {
  return quota_.bytes - share_of(user).bytes;
}

std::uint64_t Groups::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [index, group] : groups_) sum += group.line.bytes;
  return sum;
}

std::vector<nic::GroupLine> Groups::lines_for(std::uint32_t user) const {
  std::vector<nic::GroupLine> lines;
  for (const auto& [index, group] : groups_) {
    if (lines.size() == nic::kMostGroupLines) break;
    if (user == 0 || group.client.user == user) lines.push_back(group.line);
  }
  return lines;
}

}  // namespace unisono::daemon

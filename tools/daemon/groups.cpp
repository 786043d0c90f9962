// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/groups.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "nic/memory/group_mapping.hpp"

namespace unisono::daemon {

using base::Code;
using base::Error;

namespace {

// Descriptors of a group's maps.
std::uint32_t descriptors_of(const unisono_nic_row& row) { return 2 + row.waiters; }

base::Error refusal(const std::string& why, const char* option) {
  return {Code::resources,
          fmt::format("unisonod: {}; free communicators, or start unisonod with a larger {}", why,
                      option)};
}

}  // namespace

base::Status Groups::check_quota(std::uint32_t user, const unisono_nic_row& row) const {
  const Share share = share_of(user);
  const std::uint64_t bytes = nic::memory_bytes(row);
  if (share.groups >= quota_.groups) {
    return refusal(fmt::format("user {} has {} groups in the NIC path, which is all that one user "
                               "may have",
                               user, share.groups),
                   "--groups-per-user");
  }
  if (share.bytes > quota_.bytes || bytes > quota_.bytes - share.bytes) {
    const std::uint64_t retained = retained_.bytes(user) / 1024;
    const std::string kept =
        retained == 0 ? "" : fmt::format(", {} KiB of it in groups that it has left", retained);
    return refusal(fmt::format("user {} has {} KiB in the NIC path{} and asks for {} KiB; one user "
                               "may have {} KiB",
                               user, share.bytes / 1024, kept, bytes / 1024, quota_.bytes / 1024),
                   "--memory-per-user");
  }
  if (share.descriptors + descriptors_of(row) > quota_.descriptors) {
    return refusal(fmt::format("the groups of user {} have {} file descriptors, and {} more are "
                               "asked for; one user may have {}",
                               user, share.descriptors, descriptors_of(row), quota_.descriptors),
                   "--descriptors-per-user");
  }
  return base::success();
}

base::Status Groups::check_capacity(std::uint32_t user, const unisono_nic_row& row) const {
  const Share all = whole();
  const std::uint32_t own = share_of(user).groups;
  const auto refuse = [&](std::uint64_t used, std::uint64_t total, const char* what) {
    return Error{Code::resources,
                 fmt::format("unisonod: all users together have {} of {} {}, of which {} are kept "
                             "for users with fewer than {} groups; free other communicators",
                             used, total, what, reserve_of(total), kLittle)};
  };
  if (!has_room(all.groups, 1, capacity_.groups, own)) {
    return refuse(all.groups, capacity_.groups, "groups");
  }
  if (!has_room(all.bytes, nic::memory_bytes(row), capacity_.bytes, own)) {
    return refuse(all.bytes / 1024, capacity_.bytes / 1024, "KiB (--memory)");
  }
  if (!has_room(all.descriptors, descriptors_of(row), capacity_.descriptors, own)) {
    return refuse(all.descriptors, capacity_.descriptors,
                  "file descriptors for groups (ulimit -n, LimitNOFILE= of the unit)");
  }
  return base::success();
}

base::Result<std::uint32_t> Groups::join(const Client& client, const unisono_nic_row& row) {
  refresh();
  UNISONO_TRY(check_quota(client.user, row));
  UNISONO_TRY(check_capacity(client.user, row));
  UNISONO_ASSIGN(const std::uint32_t number, devices_.add_group(client.interface, row));
  const nic::GroupLine line = {client.user,           client.process, row.id.job,
                               row.id.communicator,   row.rank,       row.children,
                               nic::memory_bytes(row)};
  groups_[number] = {client, line, descriptors_of(row)};
  return number;
}

base::Result<std::uint32_t> Groups::share(const Client& client, const nic::Share& asked) const {
  for (const auto& [number, group] : groups_) {
    const unisono_nic_row& row = devices_.row(number);
    if (group.client.user != client.user || row.id.job != asked.id.job ||
        row.id.communicator != asked.id.communicator) {
      continue;
    }
    if (row.key.low == asked.key.low && row.key.high == asked.key.high) return number;
  }
  return Error{Code::argument, fmt::format("unisonod: user {} has no group {:08x}/{} with this key",
                                           client.user, asked.id.job, asked.id.communicator)};
}

base::Status Groups::leave(const Client& client, std::uint32_t number) {
  const auto found = groups_.find(number);
  if (found == groups_.end() || found->second.client.connection != client.connection) {
    return Error{Code::argument,
                 fmt::format("unisonod: group {} is not one of this connection's", number)};
  }
  remove(std::vector{number});
  return base::success();
}

void Groups::drop(const Client& client) {
  std::vector<std::uint32_t> own;
  for (const auto& [number, group] : groups_) {
    if (group.client.connection == client.connection) own.push_back(number);
  }
  remove(own);
}

// Also retries those whose removal failed before.
void Groups::remove(const std::vector<std::uint32_t>& gone) {
  for (const std::uint32_t number : gone) {
    const auto found = groups_.find(number);
    retained_.add(found->second.client.user, found->second.line.bytes, devices_.maps(number));
    leaving_.insert(groups_.extract(found));
  }
  if (leaving_.empty()) return;
  base::Status outcome = base::success();
  for (std::size_t position = 0; position < devices_.count(); ++position) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, group] : leaving_) {
      if (Devices::position_of(number) == position) numbers.push_back(number);
    }
    if (numbers.empty()) continue;
    const base::Status removed = devices_.remove_groups(position, numbers);
    if (removed.ok()) {
      for (const std::uint32_t number : numbers) leaving_.erase(number);
    } else if (outcome.ok()) {
      outcome = removed;
    }
  }
  if (!outcome.ok() && !removal_failed_) {
    base::log(base::LogLevel::error, "unisonod", "{}; it is tried again", outcome.error().message);
  }
  removal_failed_ = !outcome.ok();
}

Groups::Share Groups::share_of(std::uint32_t user) const {
  Share share;
  share.bytes = retained_.bytes(user);
  for (const auto& [number, group] : groups_) {
    if (group.client.user != user) continue;
    ++share.groups;
    share.descriptors += group.descriptors;
    share.bytes += group.line.bytes;
  }
  for (const auto& [number, group] : leaving_) {
    if (group.client.user != user) continue;
    ++share.groups;
    share.descriptors += group.descriptors;
  }
  return share;
}

Groups::Share Groups::whole() const {
  Share all;
  all.groups = static_cast<std::uint32_t>(groups_.size() + leaving_.size());
  all.bytes = retained_.bytes() + bytes();
  for (const auto& [number, group] : groups_) all.descriptors += group.descriptors;
  for (const auto& [number, group] : leaving_) all.descriptors += group.descriptors;
  return all;
}

std::uint32_t Groups::groups_left(std::uint32_t user) const {
  const std::uint32_t groups = share_of(user).groups;
  return groups < quota_.groups ? quota_.groups - groups : 0;
}

std::uint64_t Groups::bytes_left(std::uint32_t user) const {
  const std::uint64_t bytes = share_of(user).bytes;
  return bytes < quota_.bytes ? quota_.bytes - bytes : 0;
}

std::uint64_t Groups::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [number, group] : groups_) sum += group.line.bytes;
  return sum;
}

std::vector<nic::GroupLine> Groups::lines_for(std::uint32_t user) const {
  std::vector<nic::GroupLine> lines;
  for (const auto& [number, group] : groups_) {
    if (lines.size() == nic::kMostGroupLines) break;
    if (user == 0 || group.client.user == user) lines.push_back(group.line);
  }
  return lines;
}

}  // namespace unisono::daemon

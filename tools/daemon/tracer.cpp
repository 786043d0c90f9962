// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tracer.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace unisono::daemon {
namespace {

using base::Code;
using base::Error;
using base::Status;

// So that others are served as well, however many packets there are.
constexpr std::size_t kMostAtOnce = 8 * nic::kMostRecords;

// The supplementary groups of the peer.
std::vector<gid_t> more_groups(int connection) {
  std::vector<gid_t> groups(NGROUPS_MAX);
  auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  const int outcome = getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  groups.resize(outcome == 0 ? bytes / sizeof(gid_t) : 0);
  return groups;
}

}  // namespace

Status check_may_trace(int connection) {
  ucred peer = {};
  socklen_t bytes = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) {
    const bool is_own = peer.uid == 0 || peer.uid == geteuid() || peer.gid == getegid();
    if (is_own || std::ranges::count(more_groups(connection), getegid()) > 0) {
      return base::success();
    }
  }
  return Error{Code::unsupported,
               fmt::format("unisonod: user {} may not trace, as it shows what other users do; root "
                           "may, and members of group {}, which unisonod runs as",
                           peer.uid, getegid())};
}

Status Tracer::start(int connection, std::uint32_t every) {
  UNISONO_TRY(check_may_trace(connection));
  if (connection_ >= 0) {
    return Error{Code::state, "unisonod: another process traces; one at a time may"};
  }
  UNISONO_TRY(device_.trace(every));
  connection_ = connection;
  lost_ = 0;
  return base::success();
}

void Tracer::stop(int connection) {
  if (connection_ != connection || connection < 0) return;
  connection_ = -1;
  static_cast<void>(device_.trace(0));  // switching it off cannot fail
}

bool Tracer::hand_out() {
  bool listens = true;
  std::size_t taken = 0;
  nic::Records records;
  const Status read = device_.read_trace([&](const unisono_nic_trace& record) {
    lost_ += record.lost;
    records.records.push_back(record);
    if (records.records.size() == nic::kMostRecords) listens = send(records) && listens;
    return ++taken < kMostAtOnce;
  });
  if (!records.records.empty()) listens = send(records) && listens;
  return read.ok() && listens;
}

// Empties it, whether it could be sent or not.
bool Tracer::send(nic::Records& records) {
  records.lost = lost_;
  const std::vector<std::byte> bytes = nic::encode(records);
  const bool sent =
      ::send(connection_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  const bool is_full = !sent && (errno == EAGAIN || errno == ENOBUFS);
  lost_ = sent ? 0 : lost_ + records.records.size();
  records.records.clear();
  return sent || is_full;
}

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/multicast/group_datagrams.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread_signals.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/udp/options.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::LogLevel;
using base::Status;

constexpr std::uint32_t kLooksForOneLookAtEvents = 1024;
// An urgent datagram in so many to one rank goes the other way, in case its device is lost.
constexpr std::uint32_t kUrgentForOneOther = 4;
// Queue keys with the highest bit are the system's.
constexpr std::uint32_t kUserKeys = 0x7fff'ffff;
// Nobody sends to the socket of the membership.
constexpr int kMembershipBufferBytes = 4096;

constexpr int kCardQueueBits = 24;

}  // namespace

base::Result<base::Descriptor> join_by_socket(const IpAddress& local, const MulticastGroup& group) {
  UNISONO_ASSIGN(const std::vector<LocalAddress> locals, local_addresses());
  const auto at = std::ranges::find(locals, local, &LocalAddress::address);
  if (at == locals.end()) {
    return Error{Code::system, fmt::format("no interface has the address {}", ip_text(local))};
  }
  return open_group(*at, group, kMembershipBufferBytes);
}

base::Result<std::unique_ptr<VerbsGroupDatagrams>> VerbsGroupDatagrams::over(
    std::unique_ptr<JobDatagrams> inner, VerbsMulticastOptions options,
    const base::Result<VerbsLibrary>& library, GroupMembership membership) {
  std::unique_ptr<VerbsGroupDatagrams> made(new VerbsGroupDatagrams(
      std::move(inner), std::move(options), library, std::move(membership)));
  if (!made->sleeper_.valid()) {
    return Error{Code::system, fmt::format("epoll_create1: {}", std::strerror(errno))};
  }
  if (made->inner_->descriptor() >= 0) UNISONO_TRY(made->watch(made->inner_->descriptor()));
  return made;
}

VerbsGroupDatagrams::VerbsGroupDatagrams(std::unique_ptr<JobDatagrams> inner,
                                         VerbsMulticastOptions options,
                                         const base::Result<VerbsLibrary>& library,
                                         GroupMembership membership)
    : inner_(std::move(inner)),
      options_(std::move(options)),
      library_(library),
      membership_(std::move(membership)),
      limits_(inner_->limits()),
      sleeper_(epoll_create1(EPOLL_CLOEXEC)) {}

VerbsGroupDatagrams::~VerbsGroupDatagrams() {
  if (!by_verbs_) return;
  base::log(LogLevel::info, "verbs",
            "rank {}: multicast by verbs: {} datagrams sent, {} of them urgent ones to one rank, "
            "{} received, {} refused",
            rank(), counts_.sent, urgent_, counts_.received, counts_.refused);
  close();
}

Status VerbsGroupDatagrams::watch(int descriptor) const {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(sleeper_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return base::success();
  return Error{Code::system, fmt::format("verbs: epoll_ctl: {}", std::strerror(errno))};
}

// ---- the group ---------------------------------------------------------------------------------

Status VerbsGroupDatagrams::meet(std::span<const Endpoint> peers, std::size_t max_payload) {
  UNISONO_TRY(inner_->meet(peers, max_payload));
  for (const Endpoint& peer : peers) members_.push_back({.address = peer.address});
  refresh_limits();
  return base::success();
}

Status VerbsGroupDatagrams::join_multicast(std::uint32_t job) {
  job_ = job;
  UNISONO_ASSIGN(auto group, multicast_group(options_.network, job, endpoint().address));
  if (!group) return inner_->join_multicast(job);
  group->local = false;         // no other rank of this host is a member
  const base::NoSignals quiet;  // providers may have threads
  const Status opened = open(*group);
  if (!opened.ok()) {
    base::log(LogLevel::info, "verbs", "rank {}: multicast goes by IP, not by verbs: {}", rank(),
              opened.error().message);
    close();
    UNISONO_TRY(inner_->join_multicast(job));
    refresh_limits();
    return base::success();
  }
  by_verbs_ = true;
  refresh_limits();
  base::log(LogLevel::info, "verbs",
            "rank {}: multicast by verbs to {} on {}, {} bytes a datagram, {} receives", rank(),
            ip_text(group->endpoint.address), queue_->name(), limits_.max_group_payload,
            queue_->receives());
  return base::success();
}

Status VerbsGroupDatagrams::open(const MulticastGroup& group) {
  if (!library_.ok()) return library_.error();
  UNISONO_ASSIGN(queue_,
                 VerbsGroupQueue::open(
                     *library_, {.port = {.device = options_.device, .address = endpoint().address},
                                 .group = group.endpoint.address,
                                 .hops = static_cast<std::uint8_t>(std::max(group.ttl, 1)),
                                 .key = job_ & kUserKeys}));
  // The kernel gives a device only packets of groups that its interface has joined.
  UNISONO_ASSIGN(membership_socket_, membership_(endpoint().address, group));
  UNISONO_TRY(watch(queue_->channel()));
  return watch(queue_->events());
}

void VerbsGroupDatagrams::close() {
  for (Member& member : members_) member.way.reset();
  queue_.reset();
  membership_socket_.reset();
}

void VerbsGroupDatagrams::refresh_limits() {
  limits_ = inner_->limits();
  if (!by_verbs_) return;
  limits_.multicast = true;
  if (queue_ != nullptr) {
    limits_.max_group_payload = std::min(limits_.max_payload, queue_->max_payload());
  }
}

void VerbsGroupDatagrams::give_up_multicast(std::string note) {
  if (!by_verbs_) {
    inner_->give_up_multicast(std::move(note));
  } else {
    by_verbs_ = false;
    note_ = std::move(note);
    close();
  }
  refresh_limits();
}

const std::string& VerbsGroupDatagrams::multicast_note() const {
  return note_.empty() ? inner_->multicast_note() : note_;
}

void VerbsGroupDatagrams::take_other_multicast() {
  if (!by_verbs_) return;
  by_verbs_ = false;
  close();
  const Status joined = inner_->join_multicast(job_);
  if (!joined.ok()) note_ = joined.error().message;
  refresh_limits();
}

std::uint64_t VerbsGroupDatagrams::multicast_card() const {
  if (queue_ == nullptr) return 0;
  return std::uint64_t{queue_->max_payload()} << kCardQueueBits | queue_->number();
}

// The card has the tag of the job's key, as each probe.
void VerbsGroupDatagrams::meet_member(int rank, std::uint64_t card) {
  if (queue_ == nullptr || card == 0) return;
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.queue = static_cast<std::uint32_t>(card & ((1U << kCardQueueBits) - 1));
  limits_.max_group_payload =
      std::min(limits_.max_group_payload, static_cast<std::size_t>(card >> kCardQueueBits));
  auto way = queue_->route_to(member.address);
  if (way.ok()) {
    member.way = std::move(*way);
  } else {
    base::log(LogLevel::info, "verbs", "requests to rank {} go by UDP: {}", rank,
              way.error().message);
  }
}

void VerbsGroupDatagrams::look_for_loss() {
  if (queue_ == nullptr || !loss_.empty()) return;
  const std::string& what = queue_->look_for_loss();
  if (what.empty()) return;
  loss_ = fmt::format(
      "rank {}: verbs: {}: {}; its multicasts go one by one now, which is slower: check the link "
      "(`rdma link`), or set UNISONO_MULTICAST_BY=ip",
      rank(), queue_->name(), what);
  base::log(LogLevel::warn, "verbs", "{}", loss_);
}

// ---- datagrams ---------------------------------------------------------------------------------

bool VerbsGroupDatagrams::goes_by_verbs(const Outgoing& datagram) {
  if (datagram.target == kGroup) return by_verbs_;
  const bool may_go = datagram.urgent && queue_ != nullptr && loss_.empty();
  if (!may_go || datagram.target < 0) return false;
  UNISONO_CHECK(static_cast<std::size_t>(datagram.target) < members_.size(),
                "target of a datagram");
  Member& member = members_[static_cast<std::size_t>(datagram.target)];
  if (member.way == nullptr ||
      datagram.head.size() + datagram.body.size() > limits_.max_group_payload) {
    return false;
  }
  return ++member.urgent % kUrgentForOneOther != 0;
}

// False: no room.
bool VerbsGroupDatagrams::send_by_verbs(const Outgoing& datagram) {
  const std::size_t length = datagram.head.size() + datagram.body.size();
  if (queue_ == nullptr || !loss_.empty()) {
    ++counts_.refused;
    return true;
  }
  UNISONO_CHECK(length != 0 && length <= queue_->max_payload(), "length of a datagram");
  const bool to_group = datagram.target == kGroup;
  Member* const member = to_group ? nullptr : &members_[static_cast<std::size_t>(datagram.target)];
  if (!queue_->send(datagram, to_group ? nullptr : member->way.get(), to_group ? 0 : member->queue,
                    datagram.urgent)) {
    return false;
  }
  ++counts_.sent;
  if (!to_group) ++urgent_;
  return true;
}

std::size_t VerbsGroupDatagrams::send(std::span<const Outgoing> datagrams) {
  lacks_room_ = false;
  if (!by_verbs_) return inner_->send(datagrams);
  std::size_t taken = 0;
  while (taken < datagrams.size()) {
    if (goes_by_verbs(datagrams[taken])) {
      if (!send_by_verbs(datagrams[taken])) {
        lacks_room_ = true;
        ++counts_.short_sends;
        break;
      }
      ++taken;
      continue;
    }
    std::size_t end = taken + 1;
    while (end < datagrams.size() && !datagrams[end].urgent && datagrams[end].target != kGroup) {
      ++end;
    }
    const std::size_t count = end - taken;
    const std::size_t sent = inner_->send(datagrams.subspan(taken, count));
    taken += sent;
    if (sent < count) break;
  }
  return taken;
}

std::size_t VerbsGroupDatagrams::receive(std::span<Incoming> datagrams) {
  if (queue_ == nullptr) return inner_->receive(datagrams);
  if (++looks_ % kLooksForOneLookAtEvents == 0) look_for_loss();
  if (!loss_.empty()) {
    close();  // a device that was removed goes when nobody has it open
    return inner_->receive(datagrams);
  }
  // Neither way may keep the other from its turn.
  inner_first_ = !inner_first_;
  std::size_t taken = inner_first_ ? inner_->receive(datagrams) : 0;
  const std::size_t by_queue = queue_->receive(datagrams.subspan(taken));
  counts_.received += by_queue;
  taken += by_queue;
  if (!inner_first_) taken += inner_->receive(datagrams.subspan(taken));
  return taken;
}

bool VerbsGroupDatagrams::may_sleep(bool only_urgent) {
  if (queue_ == nullptr) return inner_->may_sleep(only_urgent);
  look_for_loss();
  if (!loss_.empty()) return false;
  const bool nothing_there = queue_->arm(only_urgent, lacks_room_);
  return inner_->may_sleep(only_urgent) && nothing_there;
}

DatagramCounts VerbsGroupDatagrams::counts() const {
  DatagramCounts all = inner_->counts();
  all.sent += counts_.sent;
  all.received += counts_.received;
  all.short_sends += counts_.short_sends;
  all.refused += counts_.refused;
  return all;
}

}  // namespace unisono::transport

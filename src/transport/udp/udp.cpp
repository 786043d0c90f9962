// SPDX-License-Identifier: BSD-3-Clause
// How UDP is opened and meets its peers, and its two data paths (udp.hpp).
#include "transport/udp/udp.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "transport/udp/options.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::LogLevel;
using base::Result;
using base::Status;

// IP and UDP headers, without options.
std::size_t header_bytes(Family family) { return family == Family::v4 ? 20 + 8 : 40 + 8; }

// The largest payload that the interface sends unfragmented, limited by UDP's length field.
std::size_t payload_of(const LocalAddress& local) {
  const std::size_t packet = std::min<std::size_t>(static_cast<std::size_t>(local.mtu), 65535);
  const std::size_t headers = header_bytes(local.address.family);
  return packet > headers ? packet - headers : 0;
}

// Errors of a message that the interface or the kernel cannot cut. Newer kernels say EMSGSIZE if
// its datagrams are longer than the route carries. Each of them alone may pass.
bool is_of_cutting(int error_number) {
  return error_number == EIO || error_number == EINVAL || error_number == ENOPROTOOPT ||
         error_number == EMSGSIZE;
}

}  // namespace

Result<std::unique_ptr<Udp>> Udp::open(const UdpOptions& options) {
  std::unique_ptr<Udp> udp(new Udp(options));
  UNISONO_TRY(udp->bind());
  if (options.group) UNISONO_TRY(udp->join(*options.group));
  udp->announce();
  return udp;
}

Status Udp::join(const MulticastGroup& group) {
  const IpAddress& address = group.endpoint.address;
  const IpAddress& local = options_.local.address;
  if (!address.is_multicast() || address.family != local.family || group.endpoint.port == 0) {
    return Error{Code::argument,
                 fmt::format("udp: {} is no multicast group with a port for an address like {}",
                             endpoint_text(group.endpoint), ip_text(local))};
  }
  options_.group = group;
  if (Status joined = join_group(); !joined.ok()) give_up_multicast(joined.error().message);
  return base::success();
}

Status Udp::join_multicast(std::uint32_t job) {
  UNISONO_ASSIGN(auto group, multicast_group(options_.network, job, endpoint_.address));
  if (!group) return base::success();
  group->local = false;  // no other rank of this host is a member
  return join(*group);
}

Status Udp::bind() {
  UNISONO_ASSIGN(unicast_, open_unicast(options_.local, options_.port, options_.buffer_bytes));
  UNISONO_ASSIGN(endpoint_, bound_endpoint(unicast_));
  features_ = probe_features(unicast_, options_.offloads);
  const std::size_t most = payload_of(options_.local);
  std::size_t payload = options_.max_payload == 0 ? most : options_.max_payload;
  if (options_.most_payload != 0) payload = std::min(payload, options_.most_payload);
  if (payload > 65535 - header_bytes(options_.local.address.family)) {
    return Error{Code::argument, fmt::format("udp: no datagram has {} bytes; {} has room for {}",
                                             payload, options_.local.interface, most)};
  }
  limits_ = {.name = "udp", .max_payload = payload, .batch = SendBatch::kBatch};
  poller_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!poller_.valid()) return socket_error("epoll_create1", errno);
  UNISONO_TRY(watch(unicast_));
  from_peers_ =
      std::make_unique<ReceiveQueue>(ReceiveQueue::Options{.socket = unicast_.get(),
                                                           .max_payload = payload,
                                                           .coalescing = features_.coalescing,
                                                           .own = std::nullopt});
  return base::success();
}

Status Udp::join_group() {
  UNISONO_TRY(allow_multicast(unicast_, options_.local, *options_.group));
  UNISONO_ASSIGN(group_, open_group(options_.local, *options_.group, options_.buffer_bytes));
  UNISONO_TRY(watch(group_));
  group_segmentation_ = features_.segmentation;
  const bool coalesces = features_.coalescing && let_coalesce(group_);
  group_address_ = socket_address(options_.group->endpoint, options_.local.index);
  from_group_ =
      std::make_unique<ReceiveQueue>(ReceiveQueue::Options{.socket = group_.get(),
                                                           .max_payload = limits_.max_payload,
                                                           .coalescing = coalesces,
                                                           .own = endpoint_});
  limits_.multicast = true;
  return base::success();
}

Status Udp::watch(const Descriptor& socket) const {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(poller_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0) return base::success();
  return socket_error("epoll_ctl", errno);
}

void Udp::announce() const {
  std::string multicast = "no multicast";
  if (limits_.multicast) {
    const MulticastGroup& group = *options_.group;
    multicast =
        fmt::format("multicast to {} with ttl {}", endpoint_text(group.endpoint), group.ttl);
  } else if (!multicast_note_.empty()) {
    multicast += fmt::format(" ({})", multicast_note_);
  }
  base::log(LogLevel::info, "udp",
            "{} on {} ({}), {} bytes a datagram, {}, segmentation {}, coalescing {}, buffers {} "
            "and {} bytes",
            endpoint_text(endpoint_), options_.local.interface,
            options_.why.empty() ? "as told" : options_.why, limits_.max_payload, multicast,
            features_.segmentation ? "on" : "off", features_.coalescing ? "on" : "off",
            features_.receive_bytes, features_.send_bytes);
}

void Udp::give_up_multicast(std::string note) {
  limits_.multicast = false;
  multicast_note_ = std::move(note);
  from_group_.reset();
  group_.reset();  // also ends the membership
}

Status Udp::meet(std::span<const Endpoint> peers, std::size_t max_payload) {
  if (static_cast<std::size_t>(options_.rank) >= peers.size() ||
      peers[static_cast<std::size_t>(options_.rank)] != endpoint_) {
    return Error{Code::argument, fmt::format("udp: rank {} is at {}, which the others do not know",
                                             options_.rank, endpoint_text(endpoint_))};
  }
  if (max_payload == 0 || max_payload > limits_.max_payload) {
    return Error{Code::argument, fmt::format("udp: datagrams of {} bytes where {} are the most",
                                             max_payload, limits_.max_payload)};
  }
  std::vector<SocketAddress> addresses;
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    const Endpoint& peer = peers[rank];
    if (peer.address.family != endpoint_.address.family || peer.port == 0 ||
        peer.address.is_multicast()) {
      return Error{Code::argument, fmt::format("udp: rank {} cannot be at {}, seen from {}", rank,
                                               endpoint_text(peer), endpoint_text(endpoint_))};
    }
    addresses.push_back(socket_address(peer, options_.local.index));
  }
  peers_ = std::move(addresses);
  limits_.max_payload = max_payload;
  from_peers_->limit(max_payload);
  if (from_group_ != nullptr) from_group_->limit(max_payload);
  return base::success();
}

void Udp::check_legal(const Outgoing& datagram) const {
  const std::size_t length = datagram.head.size() + datagram.body.size();
  UNISONO_CHECK(length != 0 && length <= limits_.max_payload, "length of a datagram");
  if (datagram.target == kGroup) {
    UNISONO_CHECK(limits_.multicast, "a datagram to the group without multicast");
  } else {
    UNISONO_CHECK(datagram.target != options_.rank && datagram.target >= 0 &&
                      static_cast<std::size_t>(datagram.target) < peers_.size(),
                  "target of a datagram");
  }
}

std::size_t Udp::send(std::span<const Outgoing> datagrams) {
  for (const Outgoing& datagram : datagrams) check_legal(datagram);
  const std::size_t most_bytes = most_of_message(datagrams.size());
  std::size_t taken = 0;
  bool room = true;
  while (taken < datagrams.size() && room) {
    batch_.lay_out(datagrams.subspan(taken), {peers_, &group_address_},
                   {.to_peers = features_.segmentation,
                    .to_group = group_segmentation_,
                    .most_bytes = most_bytes});
    batch_sent_ = 0;
    const Sent outcome = send_batch();
    for (std::size_t i = 0; i < batch_sent_; ++i) taken += batch_.datagrams_in(i);
    room = outcome != Sent::no_room;
  }
  if (!room) ++counts_.short_sends;
  if (room == awaiting_room_) await_room(!room);
  return taken;
}

std::size_t Udp::most_of_message(std::size_t datagrams) {
  if (datagrams <= MessageLimit::kFewDatagrams) return MessageLimit::kLongest;
  return message_limit_.most(waiting_bytes(unicast_), base::now_ns());
}

// Sends until the batch is done, there is no room, or it has to be laid out again.
Udp::Sent Udp::send_batch() {
  while (batch_sent_ < batch_.message_count()) {
    const auto rest = static_cast<unsigned>(batch_.message_count() - batch_sent_);
    const int sent = sendmmsg(unicast_.get(), batch_.messages() + batch_sent_, rest, MSG_DONTWAIT);
    if (sent > 0) {
      for (int i = 0; i < sent; ++i) counts_.sent += batch_.datagrams_in(batch_sent_++);
      continue;
    }
    const Sent outcome = refused(errno);
    if (outcome != Sent::all) return outcome;
  }
  return Sent::all;
}

// Interprets the error of the batch's next message.
Udp::Sent Udp::refused(int error_number) {
  switch (error_number) {
    case EINTR:
      return Sent::all;
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
      return Sent::no_room;
    default:
      break;
  }
  const std::size_t datagrams = batch_.datagrams_in(batch_sent_);
  if (datagrams > 1 && is_of_cutting(error_number)) {
    give_up_segmentation(batch_.is_to_group(batch_sent_), error_number);
    return Sent::again;
  }
  last_errno_ = error_number;
  counts_.refused += datagrams;
  ++batch_sent_;
  return Sent::all;
}

// The interface or the kernel cannot cut, whatever the socket said.
void Udp::give_up_segmentation(bool to_group, int error_number) {
  (to_group ? group_segmentation_ : features_.segmentation) = false;
  base::log(LogLevel::info, "udp",
            "{} on {}: segmentation is off from now on for datagrams to {}: {}",
            endpoint_text(endpoint_), options_.local.interface, to_group ? "the group" : "one rank",
            std::generic_category().message(error_number));
}

void Udp::await_room(bool wanted) {
  epoll_event event{};
  event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (epoll_ctl(poller_.get(), EPOLL_CTL_MOD, unicast_.get(), &event) == 0) awaiting_room_ = wanted;
}

std::size_t Udp::receive(std::span<Incoming> datagrams) {
  // This ends the life of the datagrams handed out last. Datagrams left over by that call come
  // first.
  const bool group = from_group_ != nullptr;
  if (from_peers_->empty() && (!group || from_group_->empty())) {
    from_peers_->refill(counts_);
    if (group) from_group_->refill(counts_);
  }
  std::size_t taken = from_peers_->take(datagrams, counts_);
  if (group) taken += from_group_->take(datagrams.subspan(taken), counts_);
  return taken;
}

bool Udp::may_sleep(bool) { return descriptor_tells(); }

std::string Udp::last_error() const {
  return last_errno_ == 0 ? std::string() : std::generic_category().message(last_errno_);
}

}  // namespace unisono::transport

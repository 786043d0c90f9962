// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/multicast/group_queue.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

// Four times the packets that one rank multicasts before it asks how far all are.
constexpr std::uint32_t kMostReceives = 1024;
constexpr std::uint32_t kLeastReceives = 512;
constexpr std::uint32_t kMostSends = 256;
constexpr std::uint32_t kLeastSends = 64;
constexpr std::uint32_t kSendsForOneReport = 16;  // of a completion
// Shorter datagrams would leave little beside a packet's header.
constexpr std::size_t kLeastPayload = 1024;
constexpr std::uint32_t kToAllQueues = 0xff'ffff;
constexpr std::size_t kDatagramsAtOnce = 16;
constexpr std::int64_t kAskPortNs = base::kSecond;
constexpr std::uint8_t kHopsToRank = 64;

}  // namespace

base::Result<std::unique_ptr<VerbsGroupQueue>> VerbsGroupQueue::open(
    const VerbsLibrary& library, const VerbsGroupOptions& options) {
  std::unique_ptr<VerbsGroupQueue> queue(new VerbsGroupQueue(library, options));
  UNISONO_TRY(queue->open());
  return queue;
}

// A queue pair that is attached cannot be destroyed.
VerbsGroupQueue::~VerbsGroupQueue() {
  if (!attached_) return;
  ibv_gid group;
  std::memcpy(group.raw, group_.data(), group_.size());
  port_.library().detach_mcast(queue_pair_.get(), &group, 0);
}

// ---- opening -----------------------------------------------------------------------------------

Status VerbsGroupQueue::open() {
  UNISONO_TRY(port_.open(options_.port));
  UNISONO_TRY(check_limits());
  UNISONO_TRY(open_queues());
  return attach();
}

Status VerbsGroupQueue::check_limits() {
  const auto refuse = [this](const std::string& why) {
    return Error{Code::unsupported, fmt::format("verbs: {}: {}", port_.name(), why)};
  };
  if (!port_.is_ethernet()) return refuse("multicast by verbs is for RoCE v2, not for InfiniBand");
  if (!port_.is_at_address()) {
    return refuse(fmt::format("it is not at {}, the address of the job's network",
                              ip_text(options_.port.address)));
  }
  ibv_device_attr limits{};
  const int result = port_.library().query_device(port_.context(), &limits);
  if (result != 0) return port_.failure("ibv_query_device", result);
  if (limits.max_mcast_grp < 1 || limits.max_mcast_qp_attach < 1) {
    return refuse("the device has no multicast");
  }
  max_payload_ = std::size_t{128} << port_.mtu();
  if (max_payload_ < kLeastPayload) {
    return refuse(
        fmt::format("its datagrams have {} bytes, at least {} are needed; raise the "
                    "interface's MTU",
                    max_payload_, kLeastPayload));
  }
  const auto most = static_cast<std::uint32_t>(std::max(0, limits.max_qp_wr));
  const auto entries = static_cast<std::uint32_t>(std::max(0, limits.max_cqe));
  receives_ = std::min({kMostReceives, most, entries});
  sends_ = std::min({kMostSends, most, entries});
  if (receives_ < kLeastReceives || sends_ < kLeastSends) {
    return refuse(fmt::format("max_qp_wr is {} and max_cqe is {}, at least {} are needed",
                              limits.max_qp_wr, limits.max_cqe, kLeastReceives));
  }
  return base::success();
}

Status VerbsGroupQueue::open_queues() {
  const VerbsLibrary& library = port_.library();
  channel_ = {library.create_comp_channel(port_.context()), library.destroy_comp_channel};
  if (channel_ == nullptr) return port_.failure("ibv_create_comp_channel", errno);
  for (const int descriptor : {channel_->fd, port_.context()->async_fd}) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  domain_ = {library.alloc_pd(port_.context()), library.dealloc_pd};
  if (domain_ == nullptr) return port_.failure("ibv_alloc_pd", errno);
  const auto make_queue = [&](std::uint32_t entries) {
    return VerbsOwned<ibv_cq>{
        library.create_cq(port_.context(), static_cast<int>(entries), nullptr, channel_.get(), 0),
        library.destroy_cq};
  };
  sent_queue_ = make_queue(sends_);
  received_queue_ = make_queue(receives_);
  if (sent_queue_ == nullptr || received_queue_ == nullptr) {
    return port_.failure("ibv_create_cq", errno);
  }
  constexpr std::size_t kLine = 64;
  stride_ = (kVerbsRouteBytes + max_payload_ + kLine - 1) / kLine * kLine;
  const auto spares = static_cast<std::uint32_t>(kHandedOut);
  UNISONO_ASSIGN(memory_, enroll_verbs(library, domain_.get(), port_.name(),
                                       stride_ * (receives_ + spares + sends_)));
  ibv_qp_init_attr what{};
  what.send_cq = sent_queue_.get();
  what.recv_cq = received_queue_.get();
  what.cap = {.max_send_wr = sends_,
              .max_recv_wr = receives_,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  what.qp_type = IBV_QPT_UD;
  queue_pair_ = {library.create_qp(domain_.get(), &what), library.destroy_qp};
  if (queue_pair_ == nullptr) return port_.failure("ibv_create_qp (multicast)", errno);
  for (std::uint32_t i = 0; i < spares; ++i) spare_.push_back(receives_ + i);
  handed_.reserve(kHandedOut);
  return port_.to_ready(queue_pair_.get(), options_.key, [this] {
    for (std::uint32_t i = 0; i < receives_; ++i) post(i);
  });
}

Status VerbsGroupQueue::attach() {
  group_ = verbs_gid_of(options_.group);
  UNISONO_ASSIGN(to_group_, route(group_, options_.hops));
  ibv_gid group;
  std::memcpy(group.raw, group_.data(), group_.size());
  const int result = port_.library().attach_mcast(queue_pair_.get(), &group, 0);
  if (result != 0) {
    return port_.failure(fmt::format("ibv_attach_mcast to {}", ip_text(options_.group)), result);
  }
  attached_ = true;
  return base::success();
}

base::Result<VerbsOwned<ibv_ah>> VerbsGroupQueue::route(const VerbsGid& to,
                                                        std::uint8_t hops) const {
  ibv_ah_attr way{};
  way.is_global = 1;
  std::memcpy(way.grh.dgid.raw, to.data(), to.size());
  way.grh.sgid_index = port_.gid_index();
  way.grh.hop_limit = hops;
  way.port_num = port_.number();
  VerbsOwned<ibv_ah> made{port_.library().create_ah(domain_.get(), &way),
                          port_.library().destroy_ah};
  if (made == nullptr) return port_.failure("ibv_create_ah", errno);
  return made;
}

base::Result<VerbsOwned<ibv_ah>> VerbsGroupQueue::route_to(const IpAddress& address) const {
  return route(verbs_gid_of(address), kHopsToRank);
}

// ---- sending -----------------------------------------------------------------------------------

void VerbsGroupQueue::look_at_sends() {
  std::array<ibv_wc, kDatagramsAtOnce> done;
  int count;
  do {
    count = ibv_poll_cq(sent_queue_.get(), static_cast<int>(done.size()), done.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& each = done[static_cast<std::size_t>(i)];
      completed_ = std::max(completed_, each.wr_id);
      if (each.status != IBV_WC_SUCCESS && loss_.empty()) {
        loss_ = fmt::format("a send failed: {}", port_.library().wc_status_str(each.status));
      }
    }
  } while (count == static_cast<int>(done.size()));
}

// The device reports one completion for some sends, and each ends all before it.
bool VerbsGroupQueue::send(const Outgoing& datagram, ibv_ah* to, std::uint32_t number,
                           bool solicited) {
  if (posted_ - completed_ == sends_) look_at_sends();
  if (posted_ - completed_ == sends_) return false;
  std::byte* const from = buffer(receives_ + kHandedOut + posted_ % sends_);
  const std::size_t head = datagram.head.size();
  if (head != 0) std::memcpy(from, datagram.head.data(), head);
  if (!datagram.body.empty()) {
    std::memcpy(from + head, datagram.body.data(), datagram.body.size());
  }
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(from),
                .length = static_cast<std::uint32_t>(head + datagram.body.size()),
                .lkey = memory_.registration->lkey};
  ibv_send_wr request{};
  request.wr_id = posted_ + 1;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  if ((posted_ + 1) % kSendsForOneReport == 0) request.send_flags |= IBV_SEND_SIGNALED;
  if (solicited) request.send_flags |= IBV_SEND_SOLICITED;
  request.wr.ud.ah = to == nullptr ? to_group_.get() : to;
  request.wr.ud.remote_qpn = to == nullptr ? kToAllQueues : number;
  request.wr.ud.remote_qkey = options_.key;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(queue_pair_.get(), &request, &bad);
  if (result == ENOMEM) return false;
  if (result == 0) {
    ++posted_;
  } else if (loss_.empty()) {
    loss_ = fmt::format("a send was refused: {}", std::strerror(result));
  }
  return true;
}

// ---- receiving ---------------------------------------------------------------------------------

void VerbsGroupQueue::post(std::uint32_t index) {
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(buffer(index)),
                .length = static_cast<std::uint32_t>(kVerbsRouteBytes + max_payload_),
                .lkey = memory_.registration->lkey};
  ibv_recv_wr receive{.wr_id = index, .next = nullptr, .sg_list = &piece, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(queue_pair_.get(), &receive, &bad);
  if (result != 0 && loss_.empty()) {
    loss_ = fmt::format("a receive was refused: {}", std::strerror(result));
  }
}

std::size_t VerbsGroupQueue::poll(std::span<ibv_wc> done) {
  if (peeked_ && !done.empty()) {
    done[0] = *peeked_;
    peeked_.reset();
    return 1;
  }
  const int count = ibv_poll_cq(received_queue_.get(), static_cast<int>(done.size()), done.data());
  return static_cast<std::size_t>(std::max(count, 0));
}

// The route header has the sender's address: at its end for IPv4, else as a GID.
bool VerbsGroupQueue::is_own(const ibv_wc& done) const {
  if (done.src_qp != queue_pair_->qp_num || (done.wc_flags & IBV_WC_GRH) == 0) return false;
  const std::byte* const header = buffer(done.wr_id);
  constexpr std::size_t kSourceV4 = 32;
  constexpr std::size_t kSourceV6 = 8;
  const VerbsGid& own = port_.gid();
  const bool v4 = options_.port.address.family == Family::v4;
  return v4 ? std::memcmp(header + kSourceV4, own.data() + 12, 4) == 0
            : std::memcmp(header + kSourceV6, own.data(), own.size()) == 0;
}

bool VerbsGroupQueue::is_good(const ibv_wc& done) {
  if (done.status != IBV_WC_SUCCESS) {
    if (loss_.empty()) {
      loss_ = fmt::format("a receive failed: {}", port_.library().wc_status_str(done.status));
    }
    return false;
  }
  if (is_own(done)) return false;
  return done.byte_len > kVerbsRouteBytes && done.byte_len <= kVerbsRouteBytes + max_payload_;
}

std::size_t VerbsGroupQueue::receive(std::span<Incoming> datagrams) {
  spare_.insert(spare_.end(), handed_.begin(), handed_.end());
  handed_.clear();
  std::array<ibv_wc, kDatagramsAtOnce> done;
  std::size_t taken = 0;
  while (taken < datagrams.size() && !spare_.empty()) {
    const std::size_t most = std::min({done.size(), datagrams.size() - taken, spare_.size()});
    const std::size_t count = poll(std::span(done).first(most));
    if (count == 0) break;
    for (const ibv_wc& each : std::span(done).first(count)) {
      UNISONO_CHECK(each.wr_id < receives_ + kHandedOut, "a receive of an unknown buffer");
      const auto index = static_cast<std::uint32_t>(each.wr_id);
      post(spare_.back());
      spare_.pop_back();
      if (!is_good(each)) {
        spare_.push_back(index);
        continue;
      }
      handed_.push_back(index);
      datagrams[taken++].bytes = {buffer(index) + kVerbsRouteBytes,
                                  each.byte_len - kVerbsRouteBytes};
    }
  }
  return taken;
}

bool VerbsGroupQueue::arm(bool only_solicited, bool for_room) {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (port_.library().get_cq_event(channel_.get(), &queue, &unused) == 0) {
    port_.library().ack_cq_events(queue, 1);
  }
  if (ibv_req_notify_cq(received_queue_.get(), only_solicited ? 1 : 0) != 0) return false;
  if (for_room) {
    if (ibv_req_notify_cq(sent_queue_.get(), 0) != 0) return false;
    look_at_sends();
    if (posted_ - completed_ < sends_) return false;
  }
  if (peeked_) return false;
  ibv_wc done;
  if (ibv_poll_cq(received_queue_.get(), 1, &done) < 1) return true;
  peeked_ = done;
  return false;
}

const std::string& VerbsGroupQueue::look_for_loss() {
  for (int event = port_.next_event(); event >= 0; event = port_.next_event()) {
    const std::string_view text = verbs_loss_text(event);
    if (!text.empty() && loss_.empty()) loss_ = text;
  }
  // The kernel reports no event when a soft-RoCE device is removed.
  const std::int64_t now = base::now_ns();
  if (loss_.empty() && now - asked_ns_ > kAskPortNs) {
    asked_ns_ = now;
    if (!port_.is_active()) loss_ = "the port is no longer active, or the device was removed";
  }
  return loss_;
}

}  // namespace unisono::transport

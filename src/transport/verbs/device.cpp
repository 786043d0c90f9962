// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/device.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/ring.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

constexpr std::uint32_t kControlReceives = 64;
constexpr std::uint32_t kControlSends = 16;
constexpr std::size_t kControlBytes = 128;          // a datagram behind its global route header
constexpr std::uint32_t kControlKey = 0x0055'4e49;  // its queue key
constexpr std::uint32_t kMostSharedReceives = 1024;
constexpr std::uint32_t kLeastSharedReceives = 64;
constexpr std::uint32_t kWantedInline = 220;
constexpr std::uint32_t kLeastInline = 8;  // a count of consumed messages
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kRetriesWithoutReceive = 7;  // no limit
constexpr std::uint8_t kReceiveTimer = 12;          // 0.64 ms

}  // namespace

Status VerbsDevice::check_limits(int ranks) {
  ibv_device_attr limits{};
  const int result = library_.query_device(port_.context(), &limits);
  if (result != 0) return port_.failure("ibv_query_device", result);
  const auto require = [&](std::string_view what, int has, std::uint32_t needs) -> Status {
    if (has >= static_cast<int>(needs)) return base::success();
    return Error{Code::unsupported, fmt::format("verbs: {}: {} is {}, at least {} are needed",
                                                name(), what, has, needs)};
  };
  UNISONO_TRY(require("max_qp_wr", limits.max_qp_wr, kVerbsQueueDepth));
  UNISONO_TRY(require("max_srq_wr", limits.max_srq_wr, kLeastSharedReceives));
  UNISONO_TRY(require("max_sge", limits.max_sge, 1));
  UNISONO_TRY(require("max_qp", limits.max_qp, 3));
  UNISONO_TRY(require("max_cqe", limits.max_cqe, 2 * kVerbsQueueDepth + kControlSends));
  shared_receives_ = std::min(kMostSharedReceives, static_cast<std::uint32_t>(limits.max_srq_wr));
  const auto most = static_cast<std::uint32_t>(limits.max_cqe);
  shared_receives_ = std::min(shared_receives_, most - kControlReceives);
  // Two connections with each rank: all their requests may end with an error at once.
  const auto wanted = static_cast<std::size_t>(std::max(ranks - 1, 1)) * 2;
  most_connections_ = std::min({wanted, std::size_t{(most - kControlSends) / kVerbsQueueDepth},
                                static_cast<std::size_t>(limits.max_qp - 1)});
  completions_ = static_cast<std::uint32_t>(most_connections_) * kVerbsQueueDepth + kControlSends;
  return base::success();
}

// ---- opening -----------------------------------------------------------------------------------

Status VerbsDevice::open(const VerbsOptions& options) {
  pause_ = verbs_pause(options.silence_ns);
  UNISONO_TRY(port_.open({.device = options.device, .address = options.address}));
  address_.gid = port_.gid();
  address_.lid = port_.lid();
  UNISONO_TRY(check_limits(options.ranks));
  UNISONO_TRY(open_queues());
  return open_control();
}

Status VerbsDevice::open_queues() {
  channel_ = {library_.create_comp_channel(port_.context()), library_.destroy_comp_channel};
  if (channel_ == nullptr) return port_.failure("ibv_create_comp_channel", errno);
  for (const int descriptor : {channel_->fd, port_.context()->async_fd}) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  domain_ = {library_.alloc_pd(port_.context()), library_.dealloc_pd};
  if (domain_ == nullptr) return port_.failure("ibv_alloc_pd", errno);
  sends_ = {library_.create_cq(port_.context(), static_cast<int>(completions_), nullptr,
                               channel_.get(), 0),
            library_.destroy_cq};
  if (sends_ == nullptr) return port_.failure("ibv_create_cq", errno);
  receives_ = {
      library_.create_cq(port_.context(), static_cast<int>(shared_receives_ + kControlReceives),
                         nullptr, channel_.get(), 0),
      library_.destroy_cq};
  if (receives_ == nullptr) return port_.failure("ibv_create_cq", errno);
  ibv_srq_init_attr shared{};
  shared.attr = {.max_wr = shared_receives_, .max_sge = 1, .srq_limit = 0};
  shared_ = {library_.create_srq(domain_.get(), &shared), library_.destroy_srq};
  if (shared_ == nullptr) return port_.failure("ibv_create_srq", errno);
  post_receives(shared_receives_);
  return base::success();
}

Status VerbsDevice::open_control() {
  UNISONO_ASSIGN(control_memory_, enroll(kControlBytes * (kControlReceives + kControlSends)));
  ibv_qp_init_attr what{};
  what.send_cq = sends_.get();
  what.recv_cq = receives_.get();
  what.cap = {.max_send_wr = kControlSends,
              .max_recv_wr = kControlReceives,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  what.qp_type = IBV_QPT_UD;
  control_ = {library_.create_qp(domain_.get(), &what), library_.destroy_qp};
  if (control_ == nullptr) return port_.failure("ibv_create_qp (datagrams)", errno);
  UNISONO_TRY(port_.to_ready(control_.get(), kControlKey, [this] {
    for (std::uint64_t i = 0; i < kControlReceives; ++i) post_control(i);
  }));
  address_.control = control_->qp_num;
  return base::success();
}

base::Result<VerbsMemory> VerbsDevice::enroll(std::size_t bytes) const {
  return enroll_verbs(library_, domain_.get(), name(), bytes);
}

// ---- connections -------------------------------------------------------------------------------

base::Result<VerbsOwned<ibv_qp>> VerbsDevice::make_queue_pair() {
  ibv_qp_init_attr what{};
  what.send_cq = sends_.get();
  what.recv_cq = receives_.get();
  what.srq = shared_.get();
  what.qp_type = IBV_QPT_RC;
  VerbsOwned<ibv_qp> made{nullptr, library_.destroy_qp};
  // Devices differ in how much they take inline, and say it only by refusing.
  for (std::uint32_t most = kWantedInline; made == nullptr && most >= kLeastInline; most /= 2) {
    what.cap = {.max_send_wr = kVerbsQueueDepth,
                .max_recv_wr = 0,
                .max_send_sge = 1,
                .max_recv_sge = 0,
                .max_inline_data = most};
    made.reset(library_.create_qp(domain_.get(), &what));
    if (made != nullptr) most_inline_ = what.cap.max_inline_data;
  }
  if (made == nullptr) return port_.failure("ibv_create_qp (connection)", errno);
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_.number();
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int result = library_.modify_qp(
      made.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (result != 0) return port_.failure("ibv_modify_qp to INIT (connection)", result);
  return made;
}

ibv_ah_attr VerbsDevice::route_to(const VerbsAddress& to) const {
  ibv_ah_attr route{};
  route.is_global = 1;
  std::memcpy(route.grh.dgid.raw, to.gid.data(), to.gid.size());
  route.grh.sgid_index = port_.gid_index();
  route.grh.hop_limit = kHopLimit;
  route.dlid = static_cast<std::uint16_t>(to.lid);
  route.port_num = port_.number();
  return route;
}

Status VerbsDevice::connect(ibv_qp* queue_pair, const VerbsAddress& to, const VerbsHandshake& peer,
                            std::uint32_t own_first_packet) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(mtu(), peer.mtu));
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = peer.first_packet;
  attributes.max_dest_rd_atomic = 0;
  attributes.min_rnr_timer = kReceiveTimer;
  attributes.ah_attr = route_to(to);
  int result =
      library_.modify_qp(queue_pair, &attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (result != 0) return port_.failure("ibv_modify_qp to RTR (connection)", result);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = pause_;
  attributes.retry_cnt = kVerbsRetries;
  attributes.rnr_retry = kRetriesWithoutReceive;
  attributes.sq_psn = own_first_packet;
  result = library_.modify_qp(queue_pair, &attributes,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (result != 0) return port_.failure("ibv_modify_qp to RTS (connection)", result);
  return base::success();
}

base::Result<VerbsOwned<ibv_ah>> VerbsDevice::address_handle(const VerbsAddress& to) const {
  ibv_ah_attr route = route_to(to);
  VerbsOwned<ibv_ah> made{library_.create_ah(domain_.get(), &route), library_.destroy_ah};
  if (made == nullptr) return port_.failure("ibv_create_ah", errno);
  return made;
}

// ---- queues ------------------------------------------------------------------------------------

// Its buffer is not reused before kControlSends further ones, which the queue would refuse.
bool VerbsDevice::send_control(ibv_ah* to, std::uint32_t control,
                               const VerbsHandshakeBytes& bytes) {
  std::byte* const from =
      control_memory_.at(kControlBytes * (kControlReceives + sent_control_ % kControlSends));
  std::memcpy(from, bytes.data(), bytes.size());
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(from),
                .length = static_cast<std::uint32_t>(bytes.size()),
                .lkey = control_memory_.registration->lkey};
  ibv_send_wr request{};
  request.wr_id = ~std::uint64_t{0};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = control;
  request.wr.ud.remote_qkey = kControlKey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(control_.get(), &request, &bad) != 0) return false;
  ++sent_control_;
  return true;
}

std::span<const std::byte> VerbsDevice::control_bytes(std::uint64_t index,
                                                      std::uint32_t received) const {
  if (index >= kControlReceives || received < kVerbsRouteBytes || received > kControlBytes)
    return {};
  return {control_memory_.at(kControlBytes * index) + kVerbsRouteBytes,
          received - kVerbsRouteBytes};
}

void VerbsDevice::post_control(std::uint64_t index) {
  ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(control_memory_.at(kControlBytes * index)),
                .length = kControlBytes,
                .lkey = control_memory_.registration->lkey};
  ibv_recv_wr receive{.wr_id = index, .next = nullptr, .sg_list = &piece, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ibv_post_recv(control_.get(), &receive, &bad);
}

// Writes with immediate data take one each; no bytes go there.
void VerbsDevice::post_receives(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    ibv_recv_wr receive{
        .wr_id = kVerbsSharedReceive, .next = nullptr, .sg_list = nullptr, .num_sge = 0};
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_srq_recv(shared_.get(), &receive, &bad) != 0) return;
  }
}

bool VerbsDevice::arm() {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (library_.get_cq_event(channel_.get(), &queue, &unused) == 0) {
    library_.ack_cq_events(queue, 1);
  }
  return ibv_req_notify_cq(receives_.get(), 0) == 0 && ibv_req_notify_cq(sends_.get(), 0) == 0;
}

}  // namespace unisono::transport

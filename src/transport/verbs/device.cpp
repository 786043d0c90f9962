// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

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
constexpr std::size_t kControlBytes = 128;  // a datagram behind its global route header
constexpr std::size_t kRouteBytes = 40;
constexpr std::uint32_t kControlKey = 0x0055'4e49;  // its queue key
constexpr std::uint32_t kMostSharedReceives = 1024;
constexpr std::uint32_t kLeastSharedReceives = 64;
constexpr std::uint32_t kWantedInline = 220;
constexpr std::uint32_t kLeastInline = 8;  // a count of consumed messages
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kRetriesWithoutReceive = 7;  // no limit
constexpr std::uint8_t kReceiveTimer = 12;          // 0.64 ms

std::string_view state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_NOP:
      return "in no state";
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "not configured (no subnet manager?)";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ACTIVE_DEFER:
      return "active, deferred";
  }
  return "in an unknown state";
}

// The GID of an address: an IPv4 address is mapped into IPv6.
std::array<std::byte, 16> gid_of(const IpAddress& address) {
  std::array<std::byte, 16> gid{};
  if (address.family == Family::v4) {
    gid[10] = gid[11] = std::byte{0xff};
    for (std::size_t i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::byte>(address.bytes[i]);
  } else {
    for (std::size_t i = 0; i < 16; ++i) gid[i] = static_cast<std::byte>(address.bytes[i]);
  }
  return gid;
}

bool is_link_local(const std::array<std::byte, 16>& gid) { return gid[0] == std::byte{0xfe}; }

Error device_failure(std::string_view device, std::string_view what, int error) {
  const bool memory = error == ENOMEM;
  return Error{memory ? Code::resources : Code::system,
               fmt::format("verbs: {}: {}: {}{}", device, what, std::strerror(error),
                           memory ? "; raise `ulimit -l`, the limit of locked memory" : "")};
}

}  // namespace

Error VerbsDevice::failure(std::string_view what, int error) const {
  return device_failure(name_, what, error);
}

void VerbsMemory::Unmap::operator()(std::byte* start) const { munmap(start, length); }

base::Result<VerbsMemory> enroll_verbs(const VerbsLibrary& library, ibv_pd* domain,
                                       std::string_view device, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  VerbsMemory memory;
  void* const start =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return device_failure(device, "allocating memory", errno);
  memory.bytes = {static_cast<std::byte*>(start), VerbsMemory::Unmap{whole}};
  madvise(start, whole, MADV_DONTFORK);
  memory.registration = {
      library.reg_mr(domain, start, whole, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
      library.dereg_mr};
  if (memory.registration == nullptr) {
    return device_failure(device, fmt::format("registering {} bytes", whole), errno);
  }
  return memory;
}

// ---- choice ------------------------------------------------------------------------------------

// The port's GID of `wanted`, or its best one: of an IPv4 address, not local to the link.
bool VerbsDevice::choose_gid(const ibv_port_attr& port, std::uint8_t number,
                             const IpAddress& wanted) {
  const auto exact = gid_of(wanted);
  int best = -1;
  for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(port.gid_tbl_len); ++index) {
    ibv_gid_entry entry{};
    if (library_.query_gid_ex(context_.get(), number, index, &entry, 0, sizeof entry) != 0)
      continue;
    const bool is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (is_ethernet && entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    std::array<std::byte, 16> gid;
    std::memcpy(gid.data(), entry.gid.raw, gid.size());
    if (std::ranges::all_of(gid, [](std::byte each) { return each == std::byte{0}; })) continue;
    const bool is_exact = gid == exact;
    const int worth = is_exact ? 3 : (is_ethernet && is_link_local(gid) ? 1 : 2);
    if (worth <= best) continue;
    best = worth;
    address_.gid = gid;
    gid_index_ = static_cast<std::uint8_t>(index);
    is_at_address_ = is_exact;
  }
  return best >= 0;
}

// Success with a context if it can be used; otherwise the reason is added.
Status VerbsDevice::try_device(ibv_device* device, const VerbsOptions& options,
                               std::string& reasons) {
  const std::string name = library_.get_device_name(device);
  const auto colon = options.device.find(':');
  if (!options.device.empty() && options.device.substr(0, colon) != name) return base::success();
  const auto give_reason = [&](const std::string& reason) {
    reasons += fmt::format("{}{}{}", reasons.empty() ? "" : "; ", name, reason);
  };
  context_ = {library_.open_device(device), library_.close_device};
  if (context_ == nullptr) {
    give_reason(fmt::format(" cannot be opened: {}", std::strerror(errno)));
    return base::success();
  }
  ibv_device_attr limits{};
  library_.query_device(context_.get(), &limits);
  for (std::uint8_t number = 1; number <= limits.phys_port_cnt; ++number) {
    if (colon != std::string::npos &&
        options.device.substr(colon + 1) != std::to_string(int{number})) {
      continue;
    }
    ibv_port_attr port{};
    if (library_.query_port(context_.get(), number, &port) != 0) continue;
    if (port.state != IBV_PORT_ACTIVE) {
      give_reason(fmt::format(" port {} is {}", int{number}, state_text(port.state)));
      continue;
    }
    if (!choose_gid(port, number, options.address)) {
      give_reason(fmt::format(" port {} has no address (RoCE v2)", int{number}));
      continue;
    }
    port_ = number;
    is_ethernet_ = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    address_.lid = port.lid;
    mtu_ = static_cast<std::uint32_t>(port.active_mtu);
    name_ = fmt::format("{} port {}", name, int{number});
    return base::success();
  }
  context_.reset();
  return base::success();
}

// The device at the job's address, or the first one with an active port.
Status VerbsDevice::choose(const VerbsOptions& options) {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(library_.get_device_list(&count),
                                                                  library_.free_device_list);
  if (list == nullptr || count == 0) {
    return Error{Code::unsupported, "verbs: no RDMA device here (`rdma link` lists them)"};
  }
  std::string reasons;
  int chosen = -1;
  for (int i = 0; i < count; ++i) {
    UNISONO_TRY(try_device(list.get()[i], options, reasons));
    if (context_ == nullptr) continue;
    if (chosen < 0) chosen = i;
    if (is_at_address_) return base::success();
  }
  if (chosen < 0) {
    if (reasons.empty()) {
      reasons = fmt::format("there is no device {} (`rdma link` lists them)", options.device);
    }
    return Error{
        Code::unsupported,
        fmt::format("verbs: no usable device: {}; UNISONO_VERBS_DEVICE names one", reasons)};
  }
  return try_device(list.get()[chosen], options, reasons);
}

Status VerbsDevice::check_limits(int ranks) {
  ibv_device_attr limits{};
  const int result = library_.query_device(context_.get(), &limits);
  if (result != 0) return failure("ibv_query_device", result);
  const auto require = [&](std::string_view what, int has, std::uint32_t needs) -> Status {
    if (has >= static_cast<int>(needs)) return base::success();
    return Error{Code::unsupported, fmt::format("verbs: {}: {} is {}, at least {} are needed",
                                                name_, what, has, needs)};
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
  UNISONO_TRY(choose(options));
  UNISONO_TRY(check_limits(options.ranks));
  UNISONO_TRY(open_queues());
  return open_control();
}

Status VerbsDevice::open_queues() {
  channel_ = {library_.create_comp_channel(context_.get()), library_.destroy_comp_channel};
  if (channel_ == nullptr) return failure("ibv_create_comp_channel", errno);
  for (const int descriptor : {channel_->fd, context_->async_fd}) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  domain_ = {library_.alloc_pd(context_.get()), library_.dealloc_pd};
  if (domain_ == nullptr) return failure("ibv_alloc_pd", errno);
  sends_ = {library_.create_cq(context_.get(), static_cast<int>(completions_), nullptr,
                               channel_.get(), 0),
            library_.destroy_cq};
  if (sends_ == nullptr) return failure("ibv_create_cq", errno);
  receives_ = {
      library_.create_cq(context_.get(), static_cast<int>(shared_receives_ + kControlReceives),
                         nullptr, channel_.get(), 0),
      library_.destroy_cq};
  if (receives_ == nullptr) return failure("ibv_create_cq", errno);
  ibv_srq_init_attr shared{};
  shared.attr = {.max_wr = shared_receives_, .max_sge = 1, .srq_limit = 0};
  shared_ = {library_.create_srq(domain_.get(), &shared), library_.destroy_srq};
  if (shared_ == nullptr) return failure("ibv_create_srq", errno);
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
  if (control_ == nullptr) return failure("ibv_create_qp (datagrams)", errno);
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_;
  to.qkey = kControlKey;
  int result = library_.modify_qp(control_.get(), &to,
                                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (result != 0) return failure("ibv_modify_qp to INIT (datagrams)", result);
  for (std::uint64_t i = 0; i < kControlReceives; ++i) post_control(i);
  to.qp_state = IBV_QPS_RTR;
  result = library_.modify_qp(control_.get(), &to, IBV_QP_STATE);
  if (result != 0) return failure("ibv_modify_qp to RTR (datagrams)", result);
  to.qp_state = IBV_QPS_RTS;
  result = library_.modify_qp(control_.get(), &to, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (result != 0) return failure("ibv_modify_qp to RTS (datagrams)", result);
  address_.control = control_->qp_num;
  return base::success();
}

base::Result<VerbsMemory> VerbsDevice::enroll(std::size_t bytes) const {
  return enroll_verbs(library_, domain_.get(), name_, bytes);
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
  if (made == nullptr) return failure("ibv_create_qp (connection)", errno);
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int result = library_.modify_qp(
      made.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (result != 0) return failure("ibv_modify_qp to INIT (connection)", result);
  return made;
}

ibv_ah_attr VerbsDevice::route_to(const VerbsAddress& to) const {
  ibv_ah_attr route{};
  route.is_global = 1;
  std::memcpy(route.grh.dgid.raw, to.gid.data(), to.gid.size());
  route.grh.sgid_index = gid_index_;
  route.grh.hop_limit = kHopLimit;
  route.dlid = static_cast<std::uint16_t>(to.lid);
  route.port_num = port_;
  return route;
}

Status VerbsDevice::connect(ibv_qp* queue_pair, const VerbsAddress& to, const VerbsHandshake& peer,
                            std::uint32_t own_first_packet) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(mtu_, peer.mtu));
  attributes.dest_qp_num = peer.queue_pair;
  attributes.rq_psn = peer.first_packet;
  attributes.max_dest_rd_atomic = 0;
  attributes.min_rnr_timer = kReceiveTimer;
  attributes.ah_attr = route_to(to);
  int result =
      library_.modify_qp(queue_pair, &attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (result != 0) return failure("ibv_modify_qp to RTR (connection)", result);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = pause_;
  attributes.retry_cnt = kVerbsRetries;
  attributes.rnr_retry = kRetriesWithoutReceive;
  attributes.sq_psn = own_first_packet;
  result = library_.modify_qp(queue_pair, &attributes,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (result != 0) return failure("ibv_modify_qp to RTS (connection)", result);
  return base::success();
}

base::Result<VerbsOwned<ibv_ah>> VerbsDevice::address_handle(const VerbsAddress& to) const {
  ibv_ah_attr route = route_to(to);
  VerbsOwned<ibv_ah> made{library_.create_ah(domain_.get(), &route), library_.destroy_ah};
  if (made == nullptr) return failure("ibv_create_ah", errno);
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
  if (index >= kControlReceives || received < kRouteBytes || received > kControlBytes) return {};
  return {control_memory_.at(kControlBytes * index) + kRouteBytes, received - kRouteBytes};
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

int VerbsDevice::next_event() {
  ibv_async_event event{};
  if (library_.get_async_event(context_.get(), &event) != 0) return -1;
  library_.ack_async_event(&event);
  return static_cast<int>(event.event_type);
}

}  // namespace unisono::transport

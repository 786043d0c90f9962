// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/port.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

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

bool is_link_local(const VerbsGid& gid) { return gid[0] == std::byte{0xfe}; }

Error device_failure(std::string_view device, std::string_view what, int error) {
  const bool memory = error == ENOMEM;
  return Error{memory ? Code::resources : Code::system,
               fmt::format("verbs: {}: {}: {}{}", device, what, std::strerror(error),
                           memory ? "; raise `ulimit -l`, the limit of locked memory" : "")};
}

}  // namespace

VerbsGid verbs_gid_of(const IpAddress& address) {
  VerbsGid gid{};
  if (address.family == Family::v4) {
    gid[10] = gid[11] = std::byte{0xff};
    for (std::size_t i = 0; i < 4; ++i) gid[12 + i] = static_cast<std::byte>(address.bytes[i]);
  } else {
    for (std::size_t i = 0; i < 16; ++i) gid[i] = static_cast<std::byte>(address.bytes[i]);
  }
  return gid;
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

Error VerbsPort::failure(std::string_view what, int error) const {
  return device_failure(name_, what, error);
}

// ---- choice ------------------------------------------------------------------------------------

// The port's GID of `wanted`, or its best one: of an IPv4 address, not local to the link.
bool VerbsPort::choose_gid(const ibv_port_attr& port, std::uint8_t number,
                           const IpAddress& wanted) {
  const auto exact = verbs_gid_of(wanted);
  int best = -1;
  for (std::uint32_t index = 0; index < static_cast<std::uint32_t>(port.gid_tbl_len); ++index) {
    ibv_gid_entry entry{};
    if (library_.query_gid_ex(context_.get(), number, index, &entry, 0, sizeof entry) != 0)
      continue;
    const bool is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (is_ethernet && entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    VerbsGid gid;
    std::memcpy(gid.data(), entry.gid.raw, gid.size());
    if (std::ranges::all_of(gid, [](std::byte each) { return each == std::byte{0}; })) continue;
    const bool is_exact = gid == exact;
    const int worth = is_exact ? 3 : (is_ethernet && is_link_local(gid) ? 1 : 2);
    if (worth <= best) continue;
    best = worth;
    gid_ = gid;
    gid_index_ = static_cast<std::uint8_t>(index);
    is_at_address_ = is_exact;
  }
  return best >= 0;
}

// Success with a context if it can be used; otherwise the reason is added.
Status VerbsPort::try_device(ibv_device* device, const VerbsPortOptions& options,
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
    number_ = number;
    is_ethernet_ = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    lid_ = port.lid;
    mtu_ = static_cast<std::uint32_t>(port.active_mtu);
    name_ = fmt::format("{} port {}", name, int{number});
    return base::success();
  }
  context_.reset();
  return base::success();
}

// The device at the job's address, or the first one with an active port.
Status VerbsPort::open(const VerbsPortOptions& options) {
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

bool VerbsPort::is_active() const {
  ibv_port_attr port{};
  return library_.query_port(context_.get(), number_, &port) == 0 && port.state == IBV_PORT_ACTIVE;
}

int VerbsPort::next_event() {
  ibv_async_event event{};
  if (library_.get_async_event(context_.get(), &event) != 0) return -1;
  library_.ack_async_event(&event);
  return static_cast<int>(event.event_type);
}

IpAddress verbs_address_at(const VerbsGid& gid) {
  constexpr VerbsGid kMapped = {std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
                                std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
                                std::byte{0}, std::byte{0}, std::byte{0xff}, std::byte{0xff}};
  constexpr std::size_t kPrefix = 12;
  const bool v4 = std::memcmp(gid.data(), kMapped.data(), kPrefix) == 0;
  IpAddress address{.family = v4 ? Family::v4 : Family::v6};
  std::memcpy(address.bytes.data(), gid.data() + (v4 ? kPrefix : 0), v4 ? 4 : gid.size());
  return address;
}

std::string_view verbs_loss_text(int event) {
  switch (event) {
    case IBV_EVENT_DEVICE_FATAL:
      return "the device has failed or was removed";
    case IBV_EVENT_PORT_ERR:
      return "the port is no longer active";
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return "a queue of the device has failed";
    default:
      return {};
  }
}

base::Status VerbsPort::to_ready(ibv_qp* datagrams, std::uint32_t key,
                                 const std::function<void()>& post_receives) const {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = number_;
  to.qkey = key;
  int result = library_.modify_qp(datagrams, &to,
                                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (result != 0) return failure("ibv_modify_qp to INIT (datagrams)", result);
  post_receives();
  to.qp_state = IBV_QPS_RTR;
  result = library_.modify_qp(datagrams, &to, IBV_QP_STATE);
  if (result != 0) return failure("ibv_modify_qp to RTR (datagrams)", result);
  to.qp_state = IBV_QPS_RTS;
  result = library_.modify_qp(datagrams, &to, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (result != 0) return failure("ibv_modify_qp to RTS (datagrams)", result);
  return base::success();
}

}  // namespace unisono::transport

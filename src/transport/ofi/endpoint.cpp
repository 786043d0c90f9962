// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/endpoint.hpp"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

constexpr int kWantedModes =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

// Their endpoints have addresses of the Internet protocol; those of others are named by their
// fabric, which the machine is on or not.
bool speaks_ip(std::string_view provider) {
  for (const std::string_view name : {"tcp", "net", "sockets", "udp", "verbs"}) {
    if (provider.starts_with(name)) return true;
  }
  return false;
}

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

Info hints_for(const OfiLibrary& library, const OfiOptions& options) {
  Info hints(library.dupinfo(nullptr), library.freeinfo);
  if (hints == nullptr) return hints;
  hints->caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = kWantedModes;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  // A write is complete when its bytes are in the target's memory, not when they have gone.
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->fabric_attr->prov_name = strdup(options.provider.c_str());
  if (speaks_ip(options.provider)) {
    hints->addr_format = options.address.family == Family::v4 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
  }
  return hints;
}

base::Result<Info> find_provider(const OfiLibrary& library, const OfiOptions& options) {
  const Info hints = hints_for(library, options);
  if (hints == nullptr) return Error{Code::resources, "libfabric: no memory"};
  const std::string node = ip_text(options.address);
  const bool by_address = speaks_ip(options.provider);
  fi_info* found = nullptr;
  const int result = library.getinfo(
      FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), by_address ? node.c_str() : nullptr, nullptr,
      by_address ? FI_SOURCE | FI_NUMERICHOST : 0, hints.get(), &found);
  if (result == 0) return Info(found, library.freeinfo);
  return Error{Code::unsupported,
               fmt::format("libfabric has no provider '{}' with remote writes here "
                           "(UNISONO_OFI_PROVIDER): {}",
                           options.provider, library.strerror(-result))};
}

base::Result<std::uint64_t> random_key(std::size_t bytes) {
  std::uint64_t key = 0;
  const std::size_t wanted = std::clamp<std::size_t>(bytes, 1, sizeof key);
  if (getrandom(&key, wanted, 0) != static_cast<ssize_t>(wanted)) {
    return Error{Code::system, fmt::format("getrandom: {}", std::strerror(errno))};
  }
  return key == FI_KEY_NOTAVAIL ? key - 1 : key;
}

}  // namespace

Error OfiEndpoint::failure(std::string_view what, long result) const {
  return {Code::system, fmt::format("libfabric: {}: {}", what, text_of(result))};
}

Status OfiEndpoint::open() {
  UNISONO_ASSIGN(info_, find_provider(library_, options_));
  name_ = fmt::format("ofi/{}", info_->fabric_attr->prov_name);
  fid_fabric* fabric = nullptr;
  if (const int result = library_.fabric(info_->fabric_attr, &fabric, nullptr); result != 0) {
    return failure("fi_fabric", result);
  }
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int result = fi_domain(fabric, info_.get(), &domain, nullptr); result != 0) {
    return failure("fi_domain", result);
  }
  domain_.reset(domain);
  UNISONO_TRY(open_queue());
  UNISONO_TRY(open_endpoint());
  constexpr std::uint64_t kAll = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  UNISONO_ASSIGN(region_, enroll(options_.region, options_.region_bytes, kAll));
  return publish();
}

Status OfiEndpoint::open_queue() {
  fi_cq_attr attributes{};
  attributes.size = completions_;
  attributes.format = FI_CQ_FORMAT_CONTEXT;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  int result = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  const bool sleeps = result == 0;
  if (!sleeps) {  // not every provider has a descriptor to sleep on
    attributes.wait_obj = FI_WAIT_NONE;
    result = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  }
  if (result != 0) return failure("fi_cq_open", result);
  queue_.reset(queue);
  if (sleeps && fi_control(&queue->fid, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
  return base::success();
}

Status OfiEndpoint::open_endpoint() {
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  attributes.count = static_cast<std::size_t>(options_.ranks);
  if (info_->domain_attr->av_type != FI_AV_UNSPEC) attributes.type = info_->domain_attr->av_type;
  fid_av* addresses = nullptr;
  if (const int result = fi_av_open(domain_.get(), &attributes, &addresses, nullptr); result != 0) {
    return failure("fi_av_open", result);
  }
  addresses_.reset(addresses);
  fid_ep* endpoint = nullptr;
  if (const int result = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr); result != 0) {
    return failure("fi_endpoint", result);
  }
  endpoint_.reset(endpoint);
  if (const int result = fi_ep_bind(endpoint, &addresses->fid, 0); result != 0) {
    return failure("fi_ep_bind of the address vector", result);
  }
  if (const int result = fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV); result != 0) {
    return failure("fi_ep_bind of the completion queue", result);
  }
  if (const int result = fi_enable(endpoint); result != 0) return failure("fi_enable", result);
  return base::success();
}

// If we may choose the key, it is random, so that others cannot guess it.
base::Result<OfiOwned<fid_mr>> OfiEndpoint::enroll(void* memory, std::size_t bytes,
                                                   std::uint64_t access) {
  const int mode = info_->domain_attr->mr_mode;
  std::uint64_t key = 0;
  if ((mode & FI_MR_PROV_KEY) == 0) {
    UNISONO_ASSIGN(key, random_key(info_->domain_attr->mr_key_size));
  }
  fid_mr* made = nullptr;
  int result = fi_mr_reg(domain_.get(), memory, bytes, access, 0, key, 0, &made, nullptr);
  if (result != 0) {
    return Error{Code::resources,
                 fmt::format("libfabric: {} bytes could not be registered with provider {}: {}; "
                             "see `ulimit -l`, and UNISONO_SHARED_LIMIT",
                             bytes, info_->fabric_attr->prov_name, text_of(result))};
  }
  OfiOwned<fid_mr> registration(made);
  if ((mode & FI_MR_ENDPOINT) != 0) {
    result = fi_mr_bind(made, &endpoint_->fid, 0);
    if (result == 0) result = fi_mr_enable(made);
    if (result != 0) return failure("fi_mr_enable", result);
  }
  return registration;
}

Status OfiEndpoint::publish() {
  std::size_t bytes = card_.address.size();
  const int result = fi_getname(&endpoint_->fid, card_.address.data(), &bytes);
  if (result != 0) return failure("fi_getname", result);
  card_.address_bytes = static_cast<std::uint32_t>(bytes);
  card_.key = fi_mr_key(region_.get());
  const bool absolute = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  card_.base = absolute ? reinterpret_cast<std::uint64_t>(options_.region) : 0;
  if (!speaks_ip(options_.provider)) return base::success();
  sockaddr_storage bound{};
  std::memcpy(&bound, card_.address.data(), std::min(bytes, sizeof bound));
  if (endpoint_of(bound).address == options_.address) return base::success();
  return Error{Code::unsupported,
               fmt::format("libfabric: provider {} listens at {}, although it was told {}", name_,
                           endpoint_text(endpoint_of(bound)), ip_text(options_.address))};
}

base::Result<fi_addr_t> OfiEndpoint::address_of(int rank, const RegionCard& card) {
  if (card.address_bytes == 0 || card.address_bytes > card.address.size()) {
    return Error{Code::state, fmt::format("rank {} has no address for libfabric", rank)};
  }
  fi_addr_t address = FI_ADDR_UNSPEC;
  const int count = fi_av_insert(addresses_.get(), card.address.data(), 1, &address, 0, nullptr);
  if (count == 1) return address;
  return failure(fmt::format("fi_av_insert of rank {}", rank), count < 0 ? count : -FI_EINVAL);
}

bool OfiEndpoint::may_sleep() {
  fid* objects[] = {&queue_->fid};
  return fi_trywait(fabric_.get(), objects, 1) == 0;
}

void OfiEndpoint::close() {
  if (binds_memory()) region_.reset();
  endpoint_.reset();
}

}  // namespace unisono::transport

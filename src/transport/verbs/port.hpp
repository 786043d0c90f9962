// SPDX-License-Identifier: BSD-3-Clause
// VerbsPort: an open RDMA device with an active port and an address there. What is made on it is
// owned by VerbsOwned, and memory that the device may use is VerbsMemory. Opening is control path,
// any thread; the object belongs to its rank, one thread at a time.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/verbs/library.hpp"

namespace unisono::transport {

template <class Object>
using VerbsOwned = std::unique_ptr<Object, int (*)(Object*)>;

// The global route header before each received datagram of a UD queue pair.
inline constexpr std::size_t kVerbsRouteBytes = 40;

using VerbsGid = std::array<std::byte, 16>;
// The GID of an address: an IPv4 address is mapped into IPv6.
VerbsGid verbs_gid_of(const IpAddress& address);
IpAddress verbs_address_at(const VerbsGid& gid);

// Memory that the device may read and, with its key, another rank may write. Not inherited by
// child processes, so that their copies on write do not move its pages.
// Pages of its own: those of the heap would go on to be missing in children when it is freed.
struct VerbsMemory {
  struct Unmap {
    std::size_t length;
    void operator()(std::byte* start) const;
  };
  std::unique_ptr<std::byte, Unmap> bytes{nullptr, Unmap{0}};
  VerbsOwned<ibv_mr> registration{nullptr, nullptr};  // ends first
  std::byte* at(std::size_t offset) const { return bytes.get() + offset; }
};

// Zeroed. `device`: its name, for errors: resources, system.
base::Result<VerbsMemory> enroll_verbs(const VerbsLibrary& library, ibv_pd* domain,
                                       std::string_view device, std::size_t bytes);

// The meaning of a device's event that ends a queue, a port or the device; empty: it ends nothing.
std::string_view verbs_loss_text(int event);

struct VerbsPortOptions {
  std::string device{};  // "rxe0" or "rxe0:1", with the port; empty: the one at `address`, or any
  IpAddress address{};   // the host's on the network that the job uses
};

class VerbsPort {
 public:
  // `library` outlives it.
  explicit VerbsPort(const VerbsLibrary& library) : library_(library) {}

  // The device at the address, or the first one with an active port. Errors: unsupported.
  base::Status open(const VerbsPortOptions& options);

  const VerbsLibrary& library() const { return library_; }
  ibv_context* context() const { return context_.get(); }
  const std::string& name() const { return name_; }  // "rxe0 port 1"
  std::uint8_t number() const { return number_; }
  const VerbsGid& gid() const { return gid_; }
  std::uint8_t gid_index() const { return gid_index_; }
  std::uint32_t lid() const { return lid_; }
  std::uint32_t mtu() const { return mtu_; }  // as ibv_mtu
  bool is_ethernet() const { return is_ethernet_; }
  bool is_at_address() const { return is_at_address_; }  // the GID is that of the address

  base::Error failure(std::string_view what, int error) const;
  // Asks the device, which is a system call.
  bool is_active() const;
  // The device's next event; negative: none.
  int next_event();
  // Makes a new queue pair for datagrams of that queue key ready to send and receive.
  base::Status to_ready(ibv_qp* datagrams, std::uint32_t key,
                        const std::function<void()>& post_receives) const;

 private:
  base::Status try_device(ibv_device* device, const VerbsPortOptions& options,
                          std::string& reasons);
  bool choose_gid(const ibv_port_attr& port, std::uint8_t number, const IpAddress& wanted);

  const VerbsLibrary& library_;
  std::string name_;
  VerbsGid gid_{};
  std::uint8_t number_ = 1;
  std::uint8_t gid_index_ = 0;
  bool is_ethernet_ = false;
  bool is_at_address_ = false;
  std::uint32_t lid_ = 0;
  std::uint32_t mtu_ = 0;
  VerbsOwned<ibv_context> context_{nullptr, nullptr};
};

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// VerbsDevice: an open RDMA device with an active port, and what all connections of a rank share:
// queues of completions, a shared queue of receives, and a queue pair for datagrams that ask for
// connections. Opening is control path, any thread; the object is its rank's, one thread at a time.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "transport/verbs/handshake.hpp"
#include "transport/verbs/library.hpp"
#include "transport/verbs/port.hpp"
#include "transport/verbs/verbs.hpp"

namespace unisono::transport {

inline constexpr std::uint64_t kVerbsSharedReceive = ~std::uint64_t{0};  // all others: datagrams
inline constexpr std::uint32_t kVerbsQueueDepth = 128;  // work requests of one connection

class VerbsDevice {
 public:
  // `library` outlives it.
  explicit VerbsDevice(const VerbsLibrary& library) : library_(library), port_(library) {}

  base::Status open(const VerbsOptions& options);

  const std::string& name() const { return port_.name(); }  // "rxe0 port 1"
  const VerbsAddress& address() const { return address_; }
  std::uint32_t mtu() const { return port_.mtu(); }  // as ibv_mtu
  std::size_t most_connections() const { return most_connections_; }
  std::uint32_t most_inline() const { return most_inline_; }

  base::Result<VerbsMemory> enroll(std::size_t bytes) const;
  // A queue pair of a reliable connection that is not connected.
  base::Result<VerbsOwned<ibv_qp>> make_queue_pair();
  // `peer` is the other side's handshake, which is at `to`.
  base::Status connect(ibv_qp* queue_pair, const VerbsAddress& to, const VerbsHandshake& peer,
                       std::uint32_t own_first_packet) const;
  base::Result<VerbsOwned<ibv_ah>> address_handle(const VerbsAddress& to) const;
  // False: no room now.
  bool send_control(ibv_ah* to, std::uint32_t control, const VerbsHandshakeBytes& bytes);
  // Bytes of a received datagram, until it is posted again.
  std::span<const std::byte> control_bytes(std::uint64_t index, std::uint32_t received) const;
  void post_control(std::uint64_t index);
  void post_receives(std::size_t count);

  ibv_cq* sends() const { return sends_.get(); }
  ibv_cq* receives() const { return receives_.get(); }
  int channel() const { return channel_->fd; }
  int events() const { return port_.context()->async_fd; }
  // Wake up by the channel at the next completion. False if the device refuses.
  bool arm();
  // The device's next event; negative: none.
  int next_event() { return port_.next_event(); }
  bool is_active() const { return port_.is_active(); }  // asks it, by a system call
  const char* text_of(ibv_wc_status status) const { return library_.wc_status_str(status); }

 private:
  base::Status check_limits(int ranks);
  base::Status open_queues();
  base::Status open_control();
  ibv_ah_attr route_to(const VerbsAddress& to) const;

  const VerbsLibrary& library_;
  VerbsPort port_;  // before all that is made on it
  VerbsAddress address_;
  std::uint8_t pause_ = 0;  // before an unacknowledged write is repeated
  std::uint32_t most_inline_ = 0;
  std::uint32_t shared_receives_ = 0;
  std::uint32_t completions_ = 0;
  std::size_t most_connections_ = 0;
  VerbsOwned<ibv_comp_channel> channel_{nullptr, nullptr};  // in the order of their dependencies
  VerbsOwned<ibv_pd> domain_{nullptr, nullptr};
  VerbsOwned<ibv_cq> sends_{nullptr, nullptr};
  VerbsOwned<ibv_cq> receives_{nullptr, nullptr};
  VerbsOwned<ibv_srq> shared_{nullptr, nullptr};
  VerbsMemory control_memory_;
  VerbsOwned<ibv_qp> control_{nullptr, nullptr};
  std::uint64_t sent_control_ = 0;
};

}  // namespace unisono::transport

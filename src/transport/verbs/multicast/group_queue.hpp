// SPDX-License-Identifier: BSD-3-Clause
// VerbsGroupQueue: an unreliable-datagram queue pair of an RDMA device that is attached to a
// multicast group. A received datagram lies behind 40 bytes of a route header. Each buffer that is
// handed out is replaced in the queue first, so that the queue of receives stays full. Datagrams
// that this queue pair has sent itself are dropped. One object belongs to one rank; one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "transport/verbs/port.hpp"

namespace unisono::transport {

struct VerbsGroupOptions {
  VerbsPortOptions port{};  // the device has to be at its address
  IpAddress group{};
  std::uint8_t hops = 1;  // routers that a datagram may pass, and one more
  std::uint32_t key = 0;  // the job's: a device drops datagrams with another one
};

class VerbsGroupQueue {
 public:
  // `library` outlives it. Errors: unsupported (no such device; no multicast; limits too small),
  // resources, system.
  static base::Result<std::unique_ptr<VerbsGroupQueue>> open(const VerbsLibrary& library,
                                                             const VerbsGroupOptions& options);
  ~VerbsGroupQueue();
  VerbsGroupQueue(const VerbsGroupQueue&) = delete;
  VerbsGroupQueue& operator=(const VerbsGroupQueue&) = delete;

  const std::string& name() const { return port_.name(); }  // "rxe0 port 1"
  std::size_t max_payload() const { return max_payload_; }  // bytes of a datagram
  std::uint32_t number() const { return queue_pair_->qp_num; }
  std::uint32_t receives() const { return receives_; }  // posted while nothing is handed out

  // The way to the queue of another rank at that address.
  base::Result<VerbsOwned<ibv_ah>> route_to(const IpAddress& address) const;

  // `to`: of route_to(), with the number of the queue there; null: the group. `solicited`: it wakes
  // a receiver that sleeps for such datagrams only. False: no room now.
  bool send(const Outgoing& datagram, ibv_ah* to, std::uint32_t number, bool solicited);

  // As Datagrams::receive(). At most kHandedOut at once.
  std::size_t receive(std::span<Incoming> datagrams);
  static constexpr std::size_t kHandedOut = 64;

  // The descriptor of the channel is readable after the next datagram; `only_solicited`: after the
  // next one of these. With `for_room` also when a datagram was sent. False: one is there already.
  bool arm(bool only_solicited, bool for_room);
  int channel() const { return channel_->fd; }
  int events() const { return port_.context()->async_fd; }

  // Looks at the device's events, and returns the first failure; empty: there was none.
  const std::string& look_for_loss();

 private:
  VerbsGroupQueue(const VerbsLibrary& library, const VerbsGroupOptions& options)
      : options_(options), port_(library) {}
  base::Status open();
  base::Status check_limits();
  base::Status open_queues();
  base::Status attach();
  base::Result<VerbsOwned<ibv_ah>> route(const VerbsGid& to, std::uint8_t hops) const;
  void post(std::uint32_t buffer);
  std::size_t poll(std::span<ibv_wc> done);
  void look_at_sends();
  bool is_own(const ibv_wc& done) const;
  bool is_good(const ibv_wc& done);
  std::byte* buffer(std::uint64_t index) const {
    return memory_.at(static_cast<std::size_t>(index) * stride_);
  }

  const VerbsGroupOptions options_;
  VerbsPort port_;
  VerbsGid group_{};
  std::size_t max_payload_ = 0;
  std::size_t stride_ = 0;
  std::uint32_t receives_ = 0;
  std::uint32_t sends_ = 0;
  bool attached_ = false;
  VerbsOwned<ibv_comp_channel> channel_{nullptr, nullptr};  // in the order of their dependencies
  VerbsOwned<ibv_pd> domain_{nullptr, nullptr};
  VerbsOwned<ibv_cq> sent_queue_{nullptr, nullptr};
  VerbsOwned<ibv_cq> received_queue_{nullptr, nullptr};
  VerbsMemory memory_;  // receives, those handed out, sends
  VerbsOwned<ibv_qp> queue_pair_{nullptr, nullptr};
  VerbsOwned<ibv_ah> to_group_{nullptr, nullptr};
  std::uint64_t posted_ = 0;           // sends
  std::uint64_t completed_ = 0;        // of them
  std::vector<std::uint32_t> spare_;   // buffers that are not posted
  std::vector<std::uint32_t> handed_;  // by the last receive()
  std::optional<ibv_wc> peeked_;       // found by arm()
  std::int64_t asked_ns_ = 0;          // when the port was last asked
  std::string loss_;
};

}  // namespace unisono::transport

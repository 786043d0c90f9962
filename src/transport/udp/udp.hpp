// SPDX-License-Identifier: BSD-3-Clause
// Udp: datagrams over UDP, to one rank or by IP multicast to all others of the job. It is opened in
// two steps, because a rank needs an address before it can know the others': open() binds, meet()
// takes the peers' endpoints. It delivers every datagram that reaches the two sockets; the packet's
// tag shows whether it is genuine (wire/packet_filter.hpp). One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/network_settings.hpp"
#include "transport/job_datagrams.hpp"
#include "transport/udp/message_limit.hpp"
#include "transport/udp/receive_queue.hpp"
#include "transport/udp/send_batch.hpp"
#include "transport/udp/sockets.hpp"

namespace unisono::transport {

struct UdpOptions {
  int rank = 0;
  LocalAddress local{};    // the result of choose_address()
  std::string why{};       // ChosenAddress::why, for the log
  std::uint16_t port = 0;  // 0: any free one
  // Most bytes of a datagram; 0: as many as the interface sends unfragmented.
  std::size_t max_payload = 0;
  // No more than that, however much the interface carries; 0: no such limit.
  std::size_t most_payload = 0;
  std::optional<MulticastGroup> group{};  // none: no multicast
  NetworkSettings network{};              // for join_multicast()
  bool offloads = true;        // segmentation and coalescing by the kernel, if it has them
  int buffer_bytes = 4 << 20;  // asked of the kernel per socket and direction
};

class Udp final : public JobDatagrams {
 public:
  // Errors: argument (family or group that does not fit), system.
  static base::Result<std::unique_ptr<Udp>> open(const UdpOptions& options);
  // Joins multicast for a job whose group is known only after opening. Errors: argument. If joining
  // fails, here or in open(), there is no multicast, and multicast_note() says why.
  base::Status join(const MulticastGroup& group);

  const Endpoint& endpoint() const override { return endpoint_; }
  base::Status meet(std::span<const Endpoint> peers, std::size_t max_payload) override;
  base::Status join_multicast(std::uint32_t job) override;

  const SocketFeatures& features() const { return features_; }
  // Why there is no multicast; empty if it works or was not requested.
  const std::string& multicast_note() const override { return multicast_note_; }
  void give_up_multicast(std::string note) override;

  const DatagramLimits& limits() const override { return limits_; }
  int rank() const override { return options_.rank; }
  std::size_t send(std::span<const Outgoing> datagrams) override;
  bool joins(int target) const override {
    return target == kGroup ? group_segmentation_ : features_.segmentation;
  }
  std::size_t receive(std::span<Incoming> datagrams) override;
  bool may_sleep(bool only_urgent) override;
  bool descriptor_tells() const override {
    return from_peers_->empty() && (from_group_ == nullptr || from_group_->empty());
  }
  int descriptor() const override { return poller_.get(); }
  DatagramCounts counts() const override { return counts_; }
  std::string last_error() const override;

 private:
  explicit Udp(const UdpOptions& options) : options_(options) {}
  base::Status bind();
  base::Status join_group();
  base::Status watch(const base::Descriptor& socket) const;
  void announce() const;

  std::size_t most_of_message(std::size_t datagrams);
  enum class Sent : std::uint8_t { all, no_room, again };
  Sent send_batch();
  Sent refused(int error_number);
  void give_up_segmentation(bool to_group, int error_number);
  void await_room(bool wanted);
  void check_legal(const Outgoing& datagram) const;

  UdpOptions options_;
  DatagramLimits limits_;
  SocketFeatures features_;
  bool group_segmentation_ = false;  // features_.segmentation, for messages to the group
  Endpoint endpoint_;
  std::string multicast_note_;

  base::Descriptor unicast_;
  base::Descriptor group_;
  base::Descriptor poller_;
  std::vector<SocketAddress> peers_;  // by rank
  SocketAddress group_address_;

  SendBatch batch_;
  MessageLimit message_limit_;
  std::size_t batch_sent_ = 0;  // messages of batch_ that are done with
  bool awaiting_room_ = false;
  std::unique_ptr<ReceiveQueue> from_peers_;
  std::unique_ptr<ReceiveQueue> from_group_;

  DatagramCounts counts_;
  int last_errno_ = 0;
};

}  // namespace unisono::transport

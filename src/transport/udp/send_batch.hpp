// SPDX-License-Identifier: BSD-3-Clause
// SendBatch: datagrams laid out for one system call. Neighbours for one target and of one length
// become one message that the kernel cuts apart (UDP_SEGMENT), where it can. Refers to the
// datagrams and addresses it was made from. One thread at a time.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "transport/udp/message_limit.hpp"

namespace unisono::transport {

class SendBatch {
 public:
  static constexpr std::size_t kBatch =
      64;  // datagrams of one call; also the kernel's most segments

  struct Addresses {
    std::span<const SocketAddress> peers;  // by rank
    const SocketAddress* group = nullptr;
  };

  // Whether one message may carry many datagrams.
  struct Segmentation {
    bool to_peers = false, to_group = false;
    std::size_t most_bytes = MessageLimit::kLongest;  // limit of one message
  };

  // Takes up to kBatch datagrams from the front.
  void lay_out(std::span<const Outgoing> datagrams, const Addresses& addresses,
               const Segmentation& segmentation);

  mmsghdr* messages() { return messages_.data(); }
  std::size_t message_count() const { return messages_used_; }
  // The number of datagrams in message `i`.
  std::size_t datagrams_in(std::size_t i) const { return counts_[i]; }
  bool is_to_group(std::size_t i) const { return to_group_[i]; }

 private:
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
  };

  // How many datagrams from the front of `datagrams` one message of `most_bytes` can carry.
  static std::size_t run_length(std::span<const Outgoing> datagrams, std::size_t most_bytes);
  void add_message(std::span<const Outgoing> run, const SocketAddress& target);
  void add_vector(std::span<const std::byte> bytes);

  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, 2 * kBatch> vectors_{};
  std::array<Control, kBatch> controls_{};
  std::array<std::size_t, kBatch> counts_{};
  std::array<bool, kBatch> to_group_{};
  std::size_t messages_used_ = 0;
  std::size_t vectors_used_ = 0;
};

}  // namespace unisono::transport

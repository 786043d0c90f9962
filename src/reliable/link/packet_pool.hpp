// SPDX-License-Identifier: BSD-3-Clause
// PacketPool: sealed packets from before they are sent until their receivers have them. A fixed
// number, allocated once; if it is empty, the sender waits for an acknowledgement. One thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wire/packet_filter.hpp"

namespace unisono::reliable {

struct KeptPacket {
  wire::Envelope envelope{};
  std::uint32_t payload_bytes = 0;
  std::int32_t target = 0;   // as transport::Outgoing::target
  std::int64_t sent_ns = 0;  // the last time
  bool queued = false;       // will be looked at once more
  bool over = false;         // its receiver has it
};

class PacketPool {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  PacketPool(std::size_t packets, std::size_t payload_bytes)
      : payload_bytes_(payload_bytes),
        packets_(packets),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(packets * payload_bytes)) {
    free_.reserve(packets);
    for (std::size_t i = packets; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
  }

  // An index, or kNone if all are in use.
  std::uint32_t take() {
    if (free_.empty()) return kNone;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    packets_[index] = {};
    return index;
  }
  void give_back(std::uint32_t index) { free_.push_back(index); }

  KeptPacket& at(std::uint32_t index) { return packets_[index]; }
  const KeptPacket& at(std::uint32_t index) const { return packets_[index]; }
  // Room for its payload.
  std::span<std::byte> room(std::uint32_t index) {
    return {bytes_.get() + index * payload_bytes_, payload_bytes_};
  }
  std::span<const std::byte> payload(std::uint32_t index) const {
    return {bytes_.get() + index * payload_bytes_, packets_[index].payload_bytes};
  }

  std::size_t free() const { return free_.size(); }
  std::size_t size() const { return packets_.size(); }

 private:
  std::size_t payload_bytes_;
  std::vector<KeptPacket> packets_;
  std::unique_ptr<std::byte[]> bytes_;  // not zeroed: most jobs use few of them
  std::vector<std::uint32_t> free_;
};

}  // namespace unisono::reliable

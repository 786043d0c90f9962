// SPDX-License-Identifier: BSD-3-Clause
// ReceiveQueue: the datagrams received on one socket, one batch per system call. Batches that the
// kernel joined are cut into datagrams again. The datagrams stay where the kernel wrote them until
// the next refill(). One thread at a time.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::transport {

class ReceiveQueue {
 public:
  static constexpr std::size_t kBatch = 32;

  struct Options {
    int socket = -1;              // not owned
    std::size_t max_payload = 0;  // longer ones are dropped and counted
    bool coalescing = false;      // the socket has UDP_GRO on
    std::optional<Endpoint> own;  // datagrams from this endpoint are the rank's own and are skipped
  };
  explicit ReceiveQueue(const Options& options);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;

  // From now on; no more than at the start.
  void limit(std::size_t max_payload) { options_.max_payload = max_payload; }

  bool empty() const { return current_ == filled_; }
  // One system call; false if nothing was there. Only when empty.
  bool refill(DatagramCounts& counts);
  // Moves datagrams from the queue to `datagrams`, from the front; returns how many.
  std::size_t take(std::span<Incoming> datagrams, DatagramCounts& counts);

 private:
  // The control data that the kernel writes for a batch.
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint32_t))> bytes;
  };
  struct Buffer {
    std::size_t bytes = 0;
    std::size_t segment = 0;  // length of its datagrams; the last may be shorter
  };

  void prepare(std::size_t i);
  void inspect(std::size_t i, DatagramCounts& counts);
  void read_control(std::size_t i, DatagramCounts& counts);
  bool is_own(std::size_t i) const;
  std::byte* buffer(std::size_t i) const { return memory_.get() + i * stride_; }

  Options options_;
  std::size_t stride_;
  std::unique_ptr<std::byte[]> memory_;  // reserved address space until the kernel writes to it
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_storage, kBatch> names_{};
  std::array<Control, kBatch> controls_{};
  std::array<Buffer, kBatch> buffers_{};
  std::size_t filled_ = 0;
  std::size_t current_ = 0;  // buffer from which the next datagram comes
  std::size_t offset_ = 0;   // in it
  std::uint32_t overflowed_ = 0;
};

}  // namespace unisono::transport

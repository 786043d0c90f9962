// SPDX-License-Identifier: BSD-3-Clause
// Batches from recvmmsg(2), and UDP_GRO's joined datagrams cut apart (receive_queue.hpp). Data
// path.
#include "transport/udp/receive_queue.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace unisono::transport {
namespace {

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

// The kernel joins at most as many bytes as a 16-bit length can express.
constexpr std::size_t kMostCoalesced = 65536;

}  // namespace

ReceiveQueue::ReceiveQueue(const Options& options)
    : options_(options),
      stride_(options.coalescing ? kMostCoalesced : (options.max_payload + 63) / 64 * 64),
      memory_(std::make_unique_for_overwrite<std::byte[]>(stride_ * kBatch)) {
  for (std::size_t i = 0; i < kBatch; ++i) prepare(i);
}

void ReceiveQueue::prepare(std::size_t i) {
  vectors_[i] = {buffer(i), stride_};
  msghdr& message = messages_[i].msg_hdr;
  message = {};
  message.msg_iov = &vectors_[i];
  message.msg_iovlen = 1;
  message.msg_control = controls_[i].bytes.data();
  message.msg_controllen = controls_[i].bytes.size();
  if (options_.own) {
    message.msg_name = &names_[i];
    message.msg_namelen = sizeof(names_[i]);
  }
}

bool ReceiveQueue::refill(DatagramCounts& counts) {
  // The kernel has written into the headers that it used, and into no others.
  for (std::size_t i = 0; i < filled_; ++i) prepare(i);
  filled_ = current_ = offset_ = 0;
  int got = -1;
  do {
    got = recvmmsg(options_.socket, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  } while (got < 0 && errno == EINTR);
  // Nothing there, or an ICMP error for one of our datagrams; neither is an arrival.
  if (got <= 0) return false;
  filled_ = static_cast<std::size_t>(got);
  for (std::size_t i = 0; i < filled_; ++i) inspect(i, counts);
  return true;
}

bool ReceiveQueue::is_own(std::size_t i) const {
  if (!options_.own) return false;
  return endpoint_of(names_[i]) == *options_.own;
}

void ReceiveQueue::read_control(std::size_t i, DatagramCounts& counts) {
  msghdr& message = messages_[i].msg_hdr;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_UDP && part->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(part), sizeof(segment));
      if (segment > 0) buffers_[i].segment = static_cast<std::size_t>(segment);
    } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t overflowed = 0;
      std::memcpy(&overflowed, CMSG_DATA(part), sizeof(overflowed));
      counts.overflowed += overflowed - overflowed_;
      overflowed_ = overflowed;
    }
  }
}

void ReceiveQueue::inspect(std::size_t i, DatagramCounts& counts) {
  Buffer& one = buffers_[i];
  one.bytes = messages_[i].msg_len;
  one.segment = std::max<std::size_t>(one.bytes, 1);
  read_control(i, counts);
  if (is_own(i)) {
    one.bytes = 0;
  } else if ((messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0 ||
             one.segment > options_.max_payload) {
    counts.too_long += std::max<std::size_t>(1, (one.bytes + one.segment - 1) / one.segment);
    one.bytes = 0;
  }
}

std::size_t ReceiveQueue::take(std::span<Incoming> datagrams, DatagramCounts& counts) {
  std::size_t taken = 0;
  while (current_ < filled_ && taken < datagrams.size()) {
    const Buffer& one = buffers_[current_];
    if (offset_ >= one.bytes) {
      ++current_;
      offset_ = 0;
      continue;
    }
    const std::size_t length = std::min(one.segment, one.bytes - offset_);
    datagrams[taken++].bytes = {buffer(current_) + offset_, length};
    offset_ += length;
  }
  // So that empty() is true when nothing is left.
  while (current_ < filled_ && offset_ >= buffers_[current_].bytes) {
    ++current_;
    offset_ = 0;
  }
  counts.received += taken;
  return taken;
}

}  // namespace unisono::transport

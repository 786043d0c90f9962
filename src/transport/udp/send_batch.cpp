// SPDX-License-Identifier: BSD-3-Clause
// Layout of a batch for sendmmsg(2) (send_batch.hpp). Data path.
#include "transport/udp/send_batch.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

namespace unisono::transport {
namespace {

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

std::size_t length_of(const Outgoing& datagram) {
  return datagram.head.size() + datagram.body.size();
}

}  // namespace

std::size_t SendBatch::run_length(std::span<const Outgoing> datagrams, std::size_t most_bytes) {
  const std::size_t length = length_of(datagrams[0]);
  std::size_t total = length;
  std::size_t run = 1;
  while (run < datagrams.size() && datagrams[run].target == datagrams[0].target) {
    const std::size_t next = length_of(datagrams[run]);
    if (next > length || total + next > most_bytes) break;
    total += next;
    ++run;
    if (next < length) break;  // only the last datagram may be shorter
  }
  return run;
}

void SendBatch::add_vector(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  vectors_[vectors_used_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

void SendBatch::add_message(std::span<const Outgoing> run, const SocketAddress& target) {
  const std::size_t first_vector = vectors_used_;
  for (const Outgoing& datagram : run) {
    add_vector(datagram.head);
    add_vector(datagram.body);
  }
  msghdr& message = messages_[messages_used_].msg_hdr;
  message = {};
  message.msg_name = const_cast<sockaddr_storage*>(&target.storage);
  message.msg_namelen = target.length;
  message.msg_iov = &vectors_[first_vector];
  message.msg_iovlen = vectors_used_ - first_vector;
  if (run.size() > 1) {
    Control& control = controls_[messages_used_];
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_UDP;
    part->cmsg_type = UDP_SEGMENT;
    part->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(length_of(run[0]));
    std::memcpy(CMSG_DATA(part), &segment, sizeof(segment));
  }
  counts_[messages_used_++] = run.size();
}

void SendBatch::lay_out(std::span<const Outgoing> datagrams, const Addresses& addresses,
                        const Segmentation& segmentation) {
  messages_used_ = vectors_used_ = 0;
  datagrams = datagrams.first(std::min(datagrams.size(), kBatch));
  while (!datagrams.empty()) {
    const int target = datagrams[0].target;
    const bool to_group = target == kGroup;
    const bool cuts = to_group ? segmentation.to_group : segmentation.to_peers;
    const std::size_t run = cuts ? run_length(datagrams, segmentation.most_bytes) : 1;
    to_group_[messages_used_] = to_group;
    add_message(datagrams.first(run),
                to_group ? *addresses.group : addresses.peers[static_cast<std::size_t>(target)]);
    datagrams = datagrams.subspan(run);
  }
}

}  // namespace unisono::transport

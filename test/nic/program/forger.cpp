// SPDX-License-Identifier: BSD-3-Clause
#include "nic/program/forger.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::nic::test {
namespace {

// Those of the NIC program (enum unisono_nic_kind), and one more.
constexpr std::uint64_t kKinds = UNISONO_NIC_ASK_BLOCKS - UNISONO_NIC_GIVE + 2;

void put_packet(Frame& frame, const unisono_packet& packet) {
  std::memcpy(frame.data() + kPacket, &packet, sizeof packet);
}

}  // namespace

bool carries_packet_of(const Frame& frame, const Frame& genuine) {
  const std::size_t end = kPayload + packet_in(genuine).length;
  return genuine.size() >= end && frame.size() >= end &&
         std::equal(genuine.begin() + kPacket, genuine.begin() + static_cast<std::ptrdiff_t>(end),
                    frame.begin() + kPacket);
}

void Forger::show(Frame genuine) {
  if (genuine.size() < kPayload) return;
  if (genuine_.size() < kMost) {
    genuine_.push_back(std::move(genuine));
  } else {
    genuine_[oldest_] = std::move(genuine);
    oldest_ = (oldest_ + 1) % kMost;
  }
}

Frame Forger::next() {
  Frame frame = any();
  switch (random_.below(6)) {
    case 0:
      change_bytes(frame, kPacket);
      break;
    case 1:
      change_length(frame);
      break;
    case 2:
      sign_anew(frame);
      break;
    case 3:
      splice(frame);
      break;
    case 4:
      fill_with_noise(frame);
      break;
    default:  // the layers below as well
      change_bytes(frame, kIp);
      change_bytes(frame, kPacket);
  }
  const auto is_whole = [&](const Frame& genuine) { return carries_packet_of(frame, genuine); };
  if (std::ranges::any_of(genuine_, is_whole)) {
    frame[kPacket + offsetof(unisono_packet, tag)] ^= std::byte{1};
  }
  return frame;
}

void Forger::change_bytes(Frame& frame, std::size_t from) {
  for (std::uint64_t changes = 1 + random_.below(3); changes > 0; --changes) {
    frame[from + random_.below(frame.size() - from)] = byte();
  }
}

void Forger::change_length(Frame& frame) {
  unisono_packet packet = packet_in(frame);
  if (random_.below(2) == 0) packet.length = static_cast<std::uint16_t>(random_.below(2000));
  if (random_.below(4) == 0) packet.length &= 0xFFF8;
  put_packet(frame, packet);
  if (random_.below(2) == 0) frame.resize(20 + random_.below(1480), byte());
  if (frame.size() >= kPayload) put_packet(frame, packet);
}

// All that it says may be right, but for the key.
void Forger::sign_anew(Frame& frame) {
  unisono_packet packet = packet_in(frame);
  const std::size_t words = (frame.size() - kPayload) / 8;
  packet.length = static_cast<std::uint16_t>(8 * std::min<std::size_t>(words, packet.length / 8));
  packet.sequence += random_.below(5);
  packet.sequence -= 2;
  if (random_.below(3) == 0) packet.sender = static_cast<std::uint32_t>(random_.below(8));
  if (random_.below(3) == 0) packet.target = static_cast<std::uint32_t>(random_.below(8));
  if (random_.below(3) == 0) packet.position = static_cast<std::uint32_t>(random_.below(8));
  if (random_.below(3) == 0) packet.origin = static_cast<std::uint32_t>(random_.below(8));
  if (random_.below(3) == 0) packet.value = random_.below(256);
  if (random_.below(3) == 0)
    packet.kind = static_cast<std::uint8_t>(UNISONO_NIC_GIVE + random_.below(kKinds));
  const unisono_key key = {random_.next(), random_.next()};
  packet.tag = unisono_packet_tag(&key, &packet, payload_in(frame).data());
  put_packet(frame, packet);
}

// The header of one, and the vector of another.
void Forger::splice(Frame& frame) {
  const Frame& other = any();
  frame.resize(std::max(frame.size(), other.size()));
  std::copy(other.begin() + kPayload, other.end(), frame.begin() + kPayload);
}

void Forger::fill_with_noise(Frame& frame) {
  for (std::size_t i = kPacket; i < frame.size(); ++i) frame[i] = byte();
  unisono_packet packet = packet_in(frame);
  packet.magic = UNISONO_PACKET_MAGIC;
  packet.version = UNISONO_PACKET_VERSION;
  packet.kind = static_cast<std::uint8_t>(UNISONO_NIC_GIVE + random_.below(kKinds));
  const unisono_packet known = packet_in(any());
  if (random_.below(4) != 0) packet.job = known.job;
  if (random_.below(4) != 0) packet.communicator = known.communicator;
  if (random_.below(2) == 0) packet.length = known.length;
  put_packet(frame, packet);
}

}  // namespace unisono::nic::test

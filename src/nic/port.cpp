// SPDX-License-Identifier: BSD-3-Clause
// The process's part of the protocol of tables.h. Its order of memory: the vector and its shape,
// then the arrival bit (release); the program sees the bit and then the vector. Results the other
// way.
#include "nic/port.hpp"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

namespace unisono::nic {
namespace {

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kIpv4 = 20;
constexpr std::size_t kUdp = 8;

base::Error system_error(const char* what) {
  return {base::Code::system, fmt::format("NIC port: {}: {}", what, std::strerror(errno))};
}

}  // namespace

base::Result<std::unique_ptr<Port>> Port::open(const Device& device, std::uint32_t row) {
  // Protocol 0: it only sends.
  base::Descriptor kicker(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!kicker.valid()) return system_error("open a raw socket (it takes CAP_NET_RAW)");
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = device.interface();
  if (bind(kicker.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("bind the raw socket to the interface");
  }
  const DeviceMemory memory = device.memory();
  return std::unique_ptr<Port>(new Port(memory.rows[row], memory, std::move(kicker)));
}

Port::Port(const unisono_nic_row& row, DeviceMemory memory, base::Descriptor socket)
    : row_(row), memory_(memory), socket_(std::move(socket)) {
  prepare_frame();
}

// What the program looks at before it believes that a frame is a kick; it writes all of it anew.
void Port::prepare_frame() {
  std::byte* const heads = frame_.data();
  std::memcpy(heads, row_.own.mac, sizeof row_.own.mac);
  std::memcpy(heads + 6, row_.own.mac, sizeof row_.own.mac);
  heads[12] = std::byte{0x08};  // IPv4
  heads[kEthernet] = std::byte{0x45};
  heads[kEthernet + 9] = std::byte{IPPROTO_UDP};
  unisono_packet packet = {};
  packet.magic = UNISONO_PACKET_MAGIC;
  packet.version = UNISONO_PACKET_VERSION;
  packet.kind = UNISONO_NIC_KICK;
  packet.job = row_.id.job;
  packet.communicator = row_.id.communicator;
  std::memcpy(heads + kEthernet + kIpv4 + kUdp, &packet, sizeof packet);
}

base::Status Port::post(std::uint32_t combine, std::span<const std::uint64_t> vector) {
  UNISONO_CHECK(may_post(), "Port::post with no place free");
  UNISONO_CHECK(vector.size() <= UNISONO_NIC_WORDS_MAX, "Port::post of more than one packet");
  const std::uint64_t sequence = next_++;
  unisono_nic_block& block = own(sequence);
  std::copy(vector.begin(), vector.end(), block.data);
  block.combine = combine;
  block.words = static_cast<std::uint32_t>(vector.size());
  std::atomic_ref(block.sequence).store(sequence, std::memory_order_relaxed);
  const std::uint64_t all = (std::uint64_t{2} << row_.children) - 1;
  const std::uint64_t before =
      std::atomic_ref(slot(sequence).arrived).fetch_or(1, std::memory_order_acq_rel);
  return (before | 1) == all ? kick(sequence) : base::success();
}

base::Status Port::kick(std::uint64_t sequence) {
  std::memcpy(frame_.data() + kEthernet + kIpv4 + kUdp + offsetof(unisono_packet, sequence),
              &sequence, sizeof sequence);
  const std::size_t bytes = kHeads + own(sequence).words * sizeof(std::uint64_t);
  ++kicks_;
  // ENOBUFS is how the system tells that the program dropped a kick that was not needed.
  if (send(socket_.get(), frame_.data(), bytes, 0) < 0 && errno != ENOBUFS) {
    return system_error("send the kick");
  }
  return base::success();
}

bool Port::is_done(std::uint64_t sequence) const {
  return std::atomic_ref(slot(sequence).done).load(std::memory_order_acquire) == sequence;
}

std::int64_t Port::done_ns(std::uint64_t sequence) const {
  return static_cast<std::int64_t>(slot(sequence).done_ns);
}

bool Port::is_broken(std::uint64_t sequence) const {
  return std::atomic_ref(slot(sequence).broken).load(std::memory_order_acquire) == sequence;
}

std::span<const std::uint64_t> Port::result(std::uint64_t sequence) const {
  const unisono_nic_block& block = own(sequence);
  return {block.data, std::min<std::size_t>(block.words, UNISONO_NIC_WORDS_MAX)};
}

unisono_nic_slot& Port::slot(std::uint64_t sequence) const {
  return memory_.slots[row_.first_slot_index + (sequence & (row_.depth - 1))];
}

unisono_nic_block& Port::own(std::uint64_t sequence) const {
  return memory_.blocks[row_.first_block_index +
                        (sequence & (row_.depth - 1)) * std::uint64_t{row_.children + 1}];
}

}  // namespace unisono::nic

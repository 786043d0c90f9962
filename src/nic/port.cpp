// SPDX-License-Identifier: BSD-3-Clause
// The process's part of the protocol of tables.h. Its order of memory: the vector and its shape,
// then the arrival bit (release); the program sees the bit and then the vector. Results the other
// way.
#include "nic/port.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

namespace unisono::nic {
namespace {

// Where kicks are addressed to if the group's results are not multicast: all hosts of the link.
constexpr std::uint32_t kAllHosts = 0xE0000001;  // 224.0.0.1

base::Error system_error(const char* what) {
  return {base::Code::system, fmt::format("NIC port: {}: {}", what, std::strerror(errno))};
}

bool set(const base::Descriptor& socket, int level, int option, const void* value,
         std::size_t bytes) {
  return setsockopt(socket.get(), level, option, value, static_cast<socklen_t>(bytes)) == 0;
}

// A socket whose datagrams leave by the row's interface. They go to a multicast address, because
// that asks nobody for an Ethernet address; the program takes them off before they are on the wire,
// and if it has gone they end at this link, in hosts that nobody listens on.
base::Result<base::Descriptor> open_kicker(const unisono_nic_row& row) {
  base::Descriptor kicker(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!kicker.valid()) return system_error("open a socket");
  ip_mreqn by = {};
  by.imr_ifindex = static_cast<int>(row.interface);
  const unsigned char off = 0;
  const int on = 1;
  // The program rewrites the packet: a checksum would have to follow.
  const bool prepared = set(kicker, IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by) &&
                        set(kicker, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off) &&
                        set(kicker, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
  if (!prepared) return system_error("prepare the socket for multicast");
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = row.own.port;
  to.sin_addr.s_addr = IN_MULTICAST(ntohl(row.down.ipv4)) ? row.down.ipv4 : htonl(kAllHosts);
  if (connect(kicker.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return system_error("connect the socket to the group by its interface");
  }
  return kicker;
}

}  // namespace

base::Result<std::unique_ptr<Port>> Port::open(const Device& device, std::uint32_t row) {
  return open(device.row(row), device.memory(row));
}

base::Result<std::unique_ptr<Port>> Port::open(const unisono_nic_row& row,
                                               const GroupMemory& memory) {
  UNISONO_ASSIGN(base::Descriptor kicker, open_kicker(row));
  return std::unique_ptr<Port>(new Port(row, memory, std::move(kicker)));
}

// What the program looks at before it believes that a packet is a kick; it writes all of it anew.
Port::Port(const unisono_nic_row& row, const GroupMemory& memory, base::Descriptor socket)
    : row_(row), memory_(memory), socket_(std::move(socket)) {
  unisono_packet packet = {};
  packet.magic = UNISONO_PACKET_MAGIC;
  packet.version = UNISONO_PACKET_VERSION;
  packet.job = row_.id.job;
  packet.communicator = row_.id.communicator;
  std::memcpy(packet_.data(), &packet, sizeof packet);
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
      std::atomic_ref(slot(sequence).arrived).fetch_or(1, std::memory_order_seq_cst);
  return give(sequence, (before | 1) == all);
}

// Where ranks wait for the query, one that has come before this contribution finds nobody else who
// would send it. The program marks the query and then looks for the arrival; this is the reverse.
base::Status Port::give(std::uint64_t sequence, bool is_last) {
  const bool on_query = (row_.flags & UNISONO_NIC_ON_QUERY) != 0;
  if (on_query && (row_.flags & UNISONO_NIC_ROOT) != 0 && !is_last) {
    return send_packet(UNISONO_NIC_QUERY, sequence);
  }
  if (!is_last) return base::success();
  const bool waits =
      on_query && row_.children == 0 &&
      std::atomic_ref(slot(sequence).queried).load(std::memory_order_seq_cst) != sequence;
  return waits ? base::success() : kick(sequence);
}

base::Status Port::kick(std::uint64_t sequence) {
  ++kicks_;
  return send_packet(UNISONO_NIC_KICK, sequence);
}

base::Status Port::ask(std::uint64_t sequence) {
  // A kick that could not be sent is what it lacks, or it needs nothing more than time.
  const std::uint64_t all = (std::uint64_t{2} << row_.children) - 1;
  const std::uint64_t arrived =
      std::atomic_ref(slot(sequence).arrived).load(std::memory_order_acquire);
  if (arrived == all) return kick(sequence);
  return send_packet(UNISONO_NIC_ASK, sequence);
}

base::Result<int> Port::repair(std::int64_t now_ns, std::int64_t delay_ns) {
  const std::uint64_t before = first_waited_;
  while (first_waited_ < next_ && (is_done(first_waited_) || is_broken(first_waited_))) {
    ++first_waited_;
  }
  const bool was_idle = idle_;
  idle_ = first_waited_ == next_;
  if (first_waited_ != before || was_idle) waits_since_ns_ = now_ns;
  if (now_ns - waits_since_ns_ < delay_ns) return 0;
  int asked = 0;
  for (std::uint64_t sequence = first_waited_; sequence < next_; ++sequence) {
    if (is_done(sequence) || is_broken(sequence)) continue;
    UNISONO_TRY(ask(sequence));
    ++asked;
  }
  waits_since_ns_ = now_ns;
  return asked;
}

base::Status Port::send_packet(std::uint8_t kind, std::uint64_t sequence) {
  packet_[offsetof(unisono_packet, kind)] = std::byte{kind};
  std::memcpy(packet_.data() + offsetof(unisono_packet, sequence), &sequence, sizeof sequence);
  const std::size_t words = std::min<std::size_t>(own(sequence).words, UNISONO_NIC_WORDS_MAX);
  // ENOBUFS is how the system tells that the program dropped what it needed no longer.
  if (send(socket_.get(), packet_.data(), UNISONO_PACKET_BYTES + words * sizeof(std::uint64_t), 0) <
          0 &&
      errno != ENOBUFS) {
    return system_error(kind == UNISONO_NIC_KICK ? "send the kick" : "send a question");
  }
  return base::success();
}

// The slot may have moved on.
bool Port::is_done(std::uint64_t sequence) const {
  const std::uint64_t done = std::atomic_ref(slot(sequence).done).load(std::memory_order_acquire);
  return static_cast<std::int64_t>(done - sequence) >= 0;
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
  return memory_.slots[sequence & (row_.depth - 1)];
}

unisono_nic_block& Port::own(std::uint64_t sequence) const {
  return memory_.blocks[(sequence & (row_.depth - 1)) * std::uint64_t{row_.children + 1}];
}

}  // namespace unisono::nic

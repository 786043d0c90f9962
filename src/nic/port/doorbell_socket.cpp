// SPDX-License-Identifier: BSD-3-Clause
#include "nic/port/doorbell_socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/check.hpp"

namespace unisono::nic {
namespace {

base::Error system_error(const char* what) {
  return {base::Code::system, fmt::format("NIC port: {}: {}", what, std::strerror(errno))};
}

bool set(const base::Descriptor& socket, int level, int option, const void* value,
         std::size_t bytes) {
  return setsockopt(socket.get(), level, option, value, static_cast<socklen_t>(bytes)) == 0;
}

// Another host of the group, to which doorbell packets are addressed. The socket keeps the route to
// one host. A route to many would be looked up for each datagram, which takes a tenth of its
// sending. The program intercepts doorbell packets before they are on the wire. If the program is
// gone, they end at that host, where no process listens.
std::uint32_t other_host(const unisono_nic_row& row) {
  if (row.ranks != 0) return row.at[row.rank == 0 ? 1 : 0].ipv4;
  return (row.flags & UNISONO_NIC_ROOT) != 0 ? row.child[0].ipv4 : row.up.ipv4;
}

// A socket whose datagrams leave by the row's interface.
base::Result<base::Descriptor> open_socket(const unisono_nic_row& row) {
  base::Descriptor opened(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!opened.valid()) return system_error("open a socket");
  const auto interface = static_cast<int>(row.interface);
  const int on = 1;
  // The program rewrites the packet: a checksum would have to follow.
  const bool prepared = set(opened, SOL_SOCKET, SO_BINDTOIFINDEX, &interface, sizeof interface) &&
                        set(opened, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
  if (!prepared) return system_error("bind the socket to the group's interface");
  // Interfaces and switches hold back multicasts without a member.
  ip_mreqn by = {};
  by.imr_ifindex = interface;
  by.imr_multiaddr.s_addr = row.down.ipv4;
  if (IN_MULTICAST(ntohl(row.down.ipv4)) &&
      !set(opened, IPPROTO_IP, IP_ADD_MEMBERSHIP, &by, sizeof by)) {
    return system_error("join the group's multicast address");
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = row.own.port;
  to.sin_addr.s_addr = other_host(row);
  if (connect(opened.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return system_error("connect the socket to another host of the group by its interface");
  }
  return opened;
}

// An error of an earlier datagram that the program did not intercept. The kernel reports it once,
// instead of sending.
bool is_about_an_earlier_one(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

base::Result<std::unique_ptr<DoorbellSocket>> DoorbellSocket::open(const unisono_nic_row& row) {
  UNISONO_ASSIGN(base::Descriptor socket, open_socket(row));
  return std::unique_ptr<DoorbellSocket>(new DoorbellSocket(row, std::move(socket)));
}

// Fields that the program checks to recognize a doorbell packet of this group; it rewrites all of
// it. The kernel shows packets only to privileged processes.
DoorbellSocket::DoorbellSocket(const unisono_nic_row& row, base::Descriptor socket)
    : socket_(std::move(socket)) {
  unisono_packet packet = {};
  packet.magic = UNISONO_PACKET_MAGIC;
  packet.version = UNISONO_PACKET_VERSION;
  packet.job = row.id.job;
  packet.communicator = row.id.communicator;
  packet.tag = unisono_nic_secret(&row.key);
  std::memcpy(packet_.data(), &packet, sizeof packet);
}

base::Status DoorbellSocket::send(std::uint8_t kind, std::uint64_t sequence, std::size_t words) {
  UNISONO_CHECK(words <= UNISONO_NIC_WORDS_MAX, "DoorbellSocket::send of more than one packet");
  packet_[offsetof(unisono_packet, kind)] = std::byte{kind};
  std::memcpy(packet_.data() + offsetof(unisono_packet, sequence), &sequence, sizeof sequence);
  const std::size_t bytes = UNISONO_PACKET_BYTES + words * sizeof(std::uint64_t);
  const auto send_once = [&] { return ::send(socket_.get(), packet_.data(), bytes, MSG_DONTWAIT); };
  ssize_t sent = send_once();
  if (sent < 0 && is_about_an_earlier_one(errno)) sent = send_once();
  // The system reports ENOBUFS when the program dropped a packet that it no longer needed. If the
  // interface accepts nothing (EAGAIN), the packet is lost like any other, and repair sends it
  // again.
  if (sent < 0 && errno != ENOBUFS && errno != EAGAIN) {
    return system_error(kind == UNISONO_NIC_DOORBELL ? "send the doorbell packet"
                                                     : "send a question");
  }
  return base::success();
}

}  // namespace unisono::nic

// SPDX-License-Identifier: BSD-3-Clause
// Sockets: the two sockets of a rank, both bound to one address and never to any. The unicast
// socket has the chosen local address. The group socket has the address of the multicast group,
// joined on the chosen interface, so it receives nothing else. Both are non-blocking and
// close-on-exec. Kernel features are found by trying. Control path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::transport {

struct MulticastGroup {
  Endpoint endpoint;
  int ttl = 1;        // routers that a packet may pass, and one more
  bool local = true;  // other ranks on this host receive it too
  bool operator==(const MulticastGroup&) const = default;
};

struct SocketFeatures {
  bool segmentation = false;  // UDP_SEGMENT: one call, many datagrams of one length
  bool coalescing = false;    // UDP_GRO: the kernel hands over many as one
  int receive_bytes = 0;      // sizes granted by the kernel
  int send_bytes = 0;
};

// An error of code system: "what: errno text".
base::Error socket_error(std::string_view what, int error_number);

// `port` 0: any free one. `buffer_bytes`: asked for both directions; the kernel may grant less.
base::Result<base::Descriptor> open_unicast(const LocalAddress& local, std::uint16_t port,
                                            int buffer_bytes);
// Lets `unicast` send to the group.
base::Status allow_multicast(const base::Descriptor& unicast, const LocalAddress& local,
                             const MulticastGroup& group);
base::Result<base::Descriptor> open_group(const LocalAddress& local, const MulticastGroup& group,
                                          int buffer_bytes);

base::Result<Endpoint> bound_endpoint(const base::Descriptor& socket);
// Tries the kernel's features, and leaves coalescing on if it works and is wanted.
SocketFeatures probe_features(const base::Descriptor& unicast, bool offloads);

// Bytes that the socket has accepted and its interface has not sent yet, headers included; 0 if the
// kernel does not say. Data path: one system call.
std::size_t waiting_bytes(const base::Descriptor& socket);

// Whether the kernel hands over many datagrams as one from now on.
bool let_coalesce(const base::Descriptor& socket);

}  // namespace unisono::transport

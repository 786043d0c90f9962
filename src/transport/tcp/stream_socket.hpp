// SPDX-License-Identifier: BSD-3-Clause
// Stream sockets: non-blocking TCP sockets between one address of this host and those of others,
// with the options that streams need. Control path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::transport {

base::Error stream_error(std::string_view what, int error_number);
// The system's text for an errno.
std::string error_text(int error_number);

// Connections that may wait to be accepted; ranks whose connection finds no room repeat it.
inline constexpr int kStreamBacklog = 512;
// Listens at that address alone, at a port that the kernel chooses. Errors: system.
base::Result<base::Descriptor> listen_at(const IpAddress& address);
base::Result<Endpoint> endpoint_of_socket(const base::Descriptor& socket);

// Begins to connect from `from`. The connection is made, or has failed, when the socket is
// writable. `congestion`: its congestion control, as of choose_congestion_control(). It is set
// before the connection is made: a socket that has been with BBR is paced by the kernel ever after.
// Errors: system.
base::Result<base::Descriptor> start_to_connect(const IpAddress& from, const Endpoint& to,
                                                std::string_view congestion);

// Short segments are not delayed. An idle connection sends probes, so that firewalls keep it. It is
// an error if nothing that was sent is acknowledged for `silence_ns`.
void set_stream_options(const base::Descriptor& socket, std::int64_t silence_ns);

// The congestion control that streams of this host set for themselves, found by a trial on
// `socket`; empty: they keep the system's. They replace BBR only. It paces by a bandwidth that it
// estimates while bytes flow without a break. Messages of collectives are short and wait for each
// other, so its estimate stays too low, and links idle. cubic takes its place, or reno where this
// process may not use cubic.
std::string choose_congestion_control(const base::Descriptor& socket);
// The same for a system whose choice is `system`.
std::string choose_congestion_control(const base::Descriptor& socket, std::string_view system);
// Nothing happens if `name` is empty, or may not be used.
void set_congestion_control(const base::Descriptor& socket, std::string_view name);
std::string congestion_control_of(const base::Descriptor& socket);

// Before the socket is closed. A child that the program has forked may hold it as well. Then
// closing neither takes it out of the poller nor ends the connection.
void leave_poller(int poller, const base::Descriptor& socket);

// The error that the socket has met; 0: none.
int pending_error(const base::Descriptor& socket);
// Bytes that the other host's kernel has not acknowledged.
std::size_t unacknowledged_bytes(const base::Descriptor& socket);

}  // namespace unisono::transport

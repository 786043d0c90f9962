// SPDX-License-Identifier: BSD-3-Clause
// Udp as a row of the table of transports (transport/table.hpp). Control path; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "transport/ip/ip.hpp"
#include "transport/job_datagrams.hpp"

namespace unisono::transport {

// Without multicast, which needs the job's identity: see join_multicast().
base::Result<std::unique_ptr<JobDatagrams>> open_udp(const base::Settings& settings, int rank,
                                                     const IpAddress& towards);

// Opens sockets as a rank of a job would, and describes the result.
base::Result<std::string> describe_udp(const base::Settings& settings, const IpAddress& towards);

inline constexpr std::string_view kUdpReference =
    R"(Packets go over UDP and, where the network carries it, IP multicast. Every packet bears
a keyed tag ([packets](wire.md)).
)";

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// Multicast by verbs: a decorator of a job's datagrams that sends those to the group by an RDMA
// device (RoCE v2). Urgent ones to one rank go there as solicited events. All others go as before.
// The datagrams are the same, with the same tags. If there is no such device, the job's datagrams
// multicast themselves. Control path; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "transport/ip/network_settings.hpp"
#include "transport/job_datagrams.hpp"

namespace unisono::transport {

struct VerbsMulticastOptions {
  std::string device{};  // as in VerbsOptions
  NetworkSettings network{};
};

// Errors: argument.
base::Result<std::unique_ptr<JobDatagrams>> multicast_by_verbs(std::unique_ptr<JobDatagrams> inner,
                                                               VerbsMulticastOptions options);

// For people: the device of this machine that would carry multicast, or why there is none.
std::string verbs_multicast_description();

}  // namespace unisono::transport

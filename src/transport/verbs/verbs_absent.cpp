// SPDX-License-Identifier: BSD-3-Clause
// Built instead of the other sources of this folder where the headers of libibverbs are missing.
#include "transport/verbs/verbs.hpp"

#include <utility>

#include "base/log.hpp"
#include "transport/verbs/multicast/multicast.hpp"

namespace unisono::transport {

base::Result<std::unique_ptr<RemoteMemory>> open_verbs(const VerbsOptions&) {
  return base::Error{base::Code::unsupported,
                     "this Unisono was built without verbs; build it where the headers of "
                     "libibverbs are (Debian: libibverbs-dev)"};
}

std::string verbs_description() { return "verbs: built without (Debian: libibverbs-dev)"; }

base::Result<std::unique_ptr<JobDatagrams>> multicast_by_verbs(std::unique_ptr<JobDatagrams> inner,
                                                               VerbsMulticastOptions) {
  base::log(base::LogLevel::info, "verbs",
            "multicast goes by IP: this Unisono was built without verbs (Debian: libibverbs-dev)");
  return inner;
}

std::string verbs_multicast_description() {
  return "no: built without verbs (Debian: libibverbs-dev)";
}

}  // namespace unisono::transport

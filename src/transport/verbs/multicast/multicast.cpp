// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/multicast/multicast.hpp"

#include <fmt/format.h>

#include <utility>

#include "transport/verbs/library.hpp"
#include "transport/verbs/multicast/group_datagrams.hpp"

namespace unisono::transport {

base::Result<std::unique_ptr<JobDatagrams>> multicast_by_verbs(std::unique_ptr<JobDatagrams> inner,
                                                               VerbsMulticastOptions options) {
  UNISONO_ASSIGN(auto made, VerbsGroupDatagrams::over(std::move(inner), std::move(options),
                                                      verbs_library(), join_by_socket));
  return std::unique_ptr<JobDatagrams>(std::move(made));
}

std::string verbs_multicast_description() {
  const auto& library = verbs_library();
  if (!library.ok()) return fmt::format("no: {}", library.error().message);
  VerbsPort port(*library);
  const base::Status found = port.open({});
  if (!found.ok()) return fmt::format("no: {}", found.error().message);
  constexpr std::uint32_t kAnyJob = 0;
  const IpAddress address = verbs_address_at(port.gid());
  const auto queue = VerbsGroupQueue::open(
      *library,
      {.port = {.address = address}, .group = group_of_job(kAnyJob, address.family).address});
  if (!queue.ok()) return fmt::format("no: {}", queue.error().message);
  return fmt::format("{} at {}, {} bytes a datagram, with UNISONO_MULTICAST_BY=verbs",
                     (*queue)->name(), ip_text(address), (*queue)->max_payload());
}

}  // namespace unisono::transport

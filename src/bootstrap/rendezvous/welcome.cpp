// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/welcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "bootstrap/rendezvous/alike_settings.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using transport::endpoint_text;
using transport::Family;

// By rank.
std::vector<std::uint32_t> number_hosts(std::span<const JoinedRank> joined) {
  std::map<HostId, std::uint32_t> numbers;
  std::vector<std::uint32_t> hosts;
  for (const JoinedRank& rank : joined) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    hosts.push_back(numbers.try_emplace(rank.hello.host, next).first->second);
  }
  return hosts;
}

// By rank.
std::vector<std::string_view> settings_of(std::span<const JoinedRank> joined) {
  std::vector<std::string_view> settings;
  for (const JoinedRank& rank : joined) settings.emplace_back(rank.hello.settings);
  return settings;
}

// The cores that all hosts share; 0 if they are on several machines.
std::uint32_t shared_cores(std::span<const JoinedRank> joined) {
  std::uint32_t cores = joined.front().hello.kernel.cores;
  for (const JoinedRank& rank : joined) {
    if (rank.hello.kernel.id != joined.front().hello.kernel.id) return 0;
    cores = std::min(cores, rank.hello.kernel.cores);
  }
  return cores;
}

Status check_address(const Hello& hello) {
  if (hello.endpoint.port == 0) {
    return Error{Code::argument,
                 fmt::format("rank {} has no address for datagrams, which a job of several hosts "
                             "needs; the error of that rank says why",
                             hello.rank)};
  }
  if (hello.endpoint.address.is_loopback()) {
    return Error{
        Code::argument,
        fmt::format("rank {} is at {}, which other hosts do not reach; give UNISONO_RENDEZVOUS an "
                    "address that all hosts reach, or set UNISONO_NETWORKS",
                    hello.rank, endpoint_text(hello.endpoint))};
  }
  return base::success();
}

// Compared with rank 0, so that the error names two ranks.
Status check_likeness(const Hello& first, const Hello& hello, const std::string& differences) {
  if (hello.memory_layout != first.memory_layout) {
    return Error{
        Code::argument,
        fmt::format(
            "ranks 0 and {} would lay out their memory differently: UNISONO_BUFFERS, UNISONO_BULK, "
            "UNISONO_CHANNELS, UNISONO_FIRST_SEQUENCE and the version of Unisono must be equal on "
            "all hosts{}",
            hello.rank, differences.empty() ? "" : "; they differ: " + differences)};
  }
  if (hello.endpoint.address.family != first.endpoint.address.family) {
    return Error{
        Code::argument,
        fmt::format("rank 0 is at {} and rank {} at {}: IPv4 and IPv6 do not mix in a "
                    "job; set UNISONO_NETWORKS",
                    endpoint_text(first.endpoint), hello.rank, endpoint_text(hello.endpoint))};
  }
  return base::success();
}

}  // namespace

Result<Welcome> compose_welcome(const JobFacts& job, std::span<const JoinedRank> joined) {
  const std::vector<std::uint32_t> hosts = number_hosts(joined);
  Welcome welcome{.memory_bytes = job.memory_bytes,
                  .job = job.job,
                  .job_id = job.job_id,
                  .hosts = *std::ranges::max_element(hosts) + 1,
                  .max_payload = 0,
                  .shared_cores = 0,
                  .members = {},
                  .differing_settings = differing_settings(settings_of(joined)),
                  .warnings = joined.front().hello.warnings};
  const bool several = welcome.hosts > 1;
  if (several) {
    welcome.max_payload = kMostPayload;
    welcome.shared_cores = shared_cores(joined);
  }
  for (std::size_t rank = 0; rank < joined.size(); ++rank) {
    const Hello& hello = joined[rank].hello;
    WelcomeMember member{joined[rank].pid, hosts[rank], {}};
    if (several) {
      UNISONO_TRY(check_address(hello));
      UNISONO_TRY(check_likeness(joined[0].hello, hello, welcome.differing_settings));
      member.endpoint = hello.endpoint;
      welcome.max_payload = std::min(welcome.max_payload, hello.max_payload);
    }
    welcome.members.push_back(member);
  }
  return welcome;
}

std::vector<int> ranks_on_host(const Welcome& welcome, std::uint32_t host) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < welcome.members.size(); ++rank) {
    if (welcome.members[rank].host == host) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

wire::Key packet_key(const wire::Key& job_key, std::uint64_t job_id) {
  return {wire::hash(job_key, fmt::format("packets 1 {:016x}", job_id)),
          wire::hash(job_key, fmt::format("packets 2 {:016x}", job_id))};
}

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// The Welcome of a job whose ranks have all joined: which ranks share a host, and whether the hosts
// fit together. Also what a rank derives from it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/roster.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

struct JobFacts {
  std::string job;
  std::uint64_t job_id = 0;
  std::uint64_t memory_bytes = 0;
};

// `joined`: by rank, at least one. Errors occur in jobs on several hosts only. Error argument: two
// ranks differ in their memory's layout or address family, or a rank has no address that other
// hosts can reach.
base::Result<Welcome> compose_welcome(const JobFacts& job, std::span<const JoinedRank> joined);

// The ranks of one host, ascending.
std::vector<int> ranks_on_host(const Welcome& welcome, std::uint32_t host);

// The key of the job's packets. Two jobs have different ones, also with one UNISONO_JOB_KEY.
wire::Key packet_key(const wire::Key& job_key, std::uint64_t job_id);

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// What a job comes to when all its ranks have come: which ranks share a host, and whether hosts can
// work together. Also what a rank reads from that. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {

struct Arrival {
  Hello hello;
  std::uint32_t pid = 0;  // 0: not vouched for, on another host than the rendezvous
};

struct JobFacts {
  std::string job;
  std::uint64_t job_id = 0;
  std::uint64_t memory_bytes = 0;
};

// `arrivals` by rank, at least one. Errors, of jobs on several hosts only: argument (two ranks
// differ in their memory's layout, or in the family of their addresses; a rank has no address, or
// one that only its own host reaches).
base::Result<Welcome> compose_welcome(const JobFacts& job, std::span<const Arrival> arrivals);

// The ranks of one host, ascending.
std::vector<int> ranks_on_host(const Welcome& welcome, std::uint32_t host);

// Of the job's packets: two jobs with one job key (UNISONO_JOB_KEY) have different ones.
wire::Key packet_key(const wire::Key& job_key, std::uint64_t job_id);

}  // namespace unisono::bootstrap

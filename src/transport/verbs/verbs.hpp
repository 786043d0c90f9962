// SPDX-License-Identifier: BSD-3-Clause
// Remote memory by verbs: RDMA writes on reliable connections of InfiniBand or RoCE devices. A
// message is written to a ring in the target's memory; the target polls that memory and copies the
// message to its place. libibverbs is loaded when the first device is opened. Opening is control
// path, any thread; the object belongs to its rank, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "transport/ip/ip.hpp"
#include "transport/remote_memory.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

struct VerbsOptions {
  std::string device{};  // "rxe0" or "rxe0:1", with the port; empty: the one at `address`, or any
  IpAddress address{};   // the host's on the network that the job uses
  int rank = 0;
  int ranks = 1;
  wire::Key key{};              // the job's: requests for connections carry its tag
  std::byte* region = nullptr;  // where messages of other ranks belong
  std::size_t region_bytes = 0;
  std::int64_t silence_ns = 0;  // as long as that a peer may be silent; 0: not long
};

// Errors: unsupported (built without; not installed; no device; no active port; limits too small),
// resources (memory cannot be registered), system.
base::Result<std::unique_ptr<RemoteMemory>> open_verbs(const VerbsOptions& options);

// For people: "verbs: rxe0 port 1 active", or the reason for its absence.
std::string verbs_description();

}  // namespace unisono::transport

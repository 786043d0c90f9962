// SPDX-License-Identifier: BSD-3-Clause
// A rank's part in the rendezvous of its job: it connects to the server, sends Hello and waits for
// the Welcome, perhaps as its host's relay. Control path; blocks, with a deadline in every phase.
// Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/start_connections.hpp"

namespace unisono::bootstrap {

struct JoinRequest {
  int rank = 0;
  int ranks = 1;
  std::string server;  // for messages: the process that serves the rendezvous
  Address address;
  bool address_given = false;  // a launcher may serve there
  std::string key;
  std::int64_t timeout_ns = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_layout = 0;
  transport::Endpoint endpoint{};
  std::uint32_t max_payload = 0;
  std::string settings{};      // as Hello's
  std::uint64_t warnings = 0;  // the same
  base::Error failure{};       // this rank's own, which it tells the others; code ok: none
};

struct Joined {
  Welcome welcome;          // with pids for this host only
  base::Descriptor memory;  // this host's memory file, verified
  std::unique_ptr<StartConnections> connections;
};

// All others hear of an error of this rank alone, unless there is no way to them.
// `connected`: a connection to the address, if there is one already.
base::Result<Joined> join_rendezvous(const JoinRequest& request,
                                     base::Descriptor connected = base::Descriptor());
}  // namespace unisono::bootstrap

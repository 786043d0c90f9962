// SPDX-License-Identifier: BSD-3-Clause
// A rank's part in the rendezvous of its job: it connects to the server, sends Hello and waits for
// the Welcome, perhaps as its host's relay. Control path; blocks, with a deadline in every phase.
// Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/message.hpp"

namespace unisono::bootstrap {

struct JoinRequest {
  int rank = 0;
  int ranks = 1;
  std::string server;  // for messages: the process that serves the rendezvous
  Address address;
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
  Welcome welcome;                         // with pids for this host only
  base::Descriptor memory;                 // this host's memory file, verified
  base::Descriptor connection;             // to the server, or to the host relay
  std::vector<base::Descriptor> accepted;  // if this rank serves the rendezvous or is a relay
};

// `connected`: a connection to the address, if there is one already.
base::Result<Joined> join_rendezvous(const JoinRequest& request,
                                     base::Descriptor connected = base::Descriptor());
// Serves the rendezvous in a thread until this rank has joined it. `listener`: as of
// Rendezvous::open().
base::Result<Joined> serve_and_join(const JoinRequest& request,
                                    base::Descriptor listener = base::Descriptor());
// Joins if a process listens at the address, otherwise serves as well.
base::Result<Joined> join_or_serve(const JoinRequest& request);

}  // namespace unisono::bootstrap

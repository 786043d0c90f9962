// SPDX-License-Identifier: BSD-3-Clause
// A rank's part in the meeting of its job: connect to the rendezvous, Hello, wait, perhaps as its
// host's gate, and what it was told. Control path; blocks, with a deadline in every phase. Any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/message.hpp"

namespace unisono::bootstrap {

struct Meeting {
  int rank = 0;
  int ranks = 1;
  std::string server;  // for people: who hosts
  Address address;
  std::string key;
  std::int64_t timeout_ns = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_layout = 0;
  transport::Endpoint endpoint{};
  std::uint32_t max_payload = 0;
};

struct Outcome {
  Welcome welcome;              // with the pids of this host
  base::Descriptor memory;      // of this host; verified
  base::Descriptor connection;  // to the rendezvous, or to the gate
  std::vector<base::Descriptor>
      accepted;  // the other ends, at who hosts the rendezvous or is a gate
};

// `connected`: a connection to the address, if there is one already.
base::Result<Outcome> attend(const Meeting& meeting,
                             base::Descriptor connected = base::Descriptor());
// Opens the rendezvous, serves it in a thread until the outcome is there, and attends. `listener`:
// as Rendezvous::open().
base::Result<Outcome> host(const Meeting& meeting, base::Descriptor listener = base::Descriptor());
// Attends if somebody listens, else hosts.
base::Result<Outcome> attend_or_host(const Meeting& meeting);

}  // namespace unisono::bootstrap

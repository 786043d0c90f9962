// SPDX-License-Identifier: BSD-3-Clause
// JobDatagrams: datagrams of a job that starts. A rank has to have an address before it can know
// the others', so they are opened in steps: the table's row opens them, which gives an endpoint;
// the bootstrap tells it to all; meet() learns who the peers are. From then on they are Datagrams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"

namespace unisono::transport {

class JobDatagrams : public Datagrams {
 public:
  // What the others have to know of this rank.
  virtual const Endpoint& endpoint() const = 0;
  // The ranks' endpoints, the own one included, and the least max_payload of all of them. Before
  // the first send. Errors: argument.
  virtual base::Status meet(std::span<const Endpoint> peers, std::size_t max_payload) = 0;
  // For one rank of each host, after meet(): takes part in the multicasts of the job whose identity
  // is `job` (wire/key.hpp), unless the settings say off. If it cannot, limits() has no multicast,
  // and multicast_note() says why. Errors: argument.
  virtual base::Status join_multicast(std::uint32_t job) = 0;
};

}  // namespace unisono::transport

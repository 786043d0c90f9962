// SPDX-License-Identifier: BSD-3-Clause
// JobDatagrams: datagrams of a starting job. A rank needs an address before it can know the
// others', so there are three steps. The table's row opens the datagrams and gets an endpoint; the
// bootstrap exchanges the endpoints; meet() takes those of the peers. From then on they are
// Datagrams.
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
  // The endpoint of this rank, for the other ranks.
  virtual const Endpoint& endpoint() const = 0;
  // `peers`: the endpoints of all ranks, this one included. `max_payload`: the least value of all
  // ranks. Call it before the first send. Errors: argument.
  virtual base::Status meet(std::span<const Endpoint> peers, std::size_t max_payload) = 0;
  // For one rank of each host, after meet(): joins the multicast group of the job whose identity is
  // `job` (wire/key.hpp), unless the settings say off. If it cannot, limits() has no multicast, and
  // multicast_note() says why. Errors: argument.
  virtual base::Status join_multicast(std::uint32_t job) = 0;
};

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// Which calls go by the NIC path, on a communicator that has it. It depends on nothing that differs
// between ranks, so all decide alike. Pure; any thread.
#pragma once

#include <cstdint>

#include "arith/type.hpp"
#include "base/result.hpp"
#include "model/machine.hpp"
#include "schedule/shape.hpp"

namespace unisono::select {

struct Circumstances;
struct Choice;
struct Ruling;

// A collective as the NIC path sees it. The type does not matter if nothing is combined: elements
// are then bytes.
struct NicShape {
  schedule::Collective collective = schedule::Collective::barrier;
  arith::Operator op = arith::Operator::sum;
  arith::Type type = arith::Type::int64;
  std::int64_t count = 0;
  int root = 0;
  int ranks = 1;
  int hosts = 1;                            // where they are
  int most_a_host = 1;                      // ranks of one host, at most
  const model::Machine* machine = nullptr;  // the costs; null: the default machine
  bool asks = false;                        // a barrier by asking (nic_asks)
};
// The shape has several hosts; a reduction has a built-in type and operator.
NicShape nic_shape_of(const schedule::Shape& shape, const Circumstances& circumstances);

// Whether a barrier that goes by the NIC path asks (barrier/test-and-set). It does where hosts
// multicast, if the user wants that, or if it is cheaper and not forbidden. `choice`: as below.
bool nic_asks(const schedule::Shape& shape, const Circumstances& circumstances,
              const Choice& choice, const Ruling& ruling);

// Whether an allgather goes by the tree, as a vector with a block of each rank. Short blocks do
// where hosts have several ranks, and all blocks of more than UNISONO_NIC_RANKS_MAX hosts.
// Otherwise each host's blocks go a way of their own (engine/nic/nic_allgather.hpp).
bool nic_gathers_on_tree(const NicShape& shape);

// Code::unsupported with the reason if the NIC path cannot do it, or host processes are faster.
base::Status check_nic_shape(const NicShape& shape);

// The same for a call; also if the user prefers host processes for it. `choice`: the algorithm of
// host processes.
base::Status check_nic_call(const schedule::Shape& shape, const Circumstances& circumstances,
                            const Choice& choice);

}  // namespace unisono::select
